import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { countOf, readCorpus } from "./corpus/corpus.ts";
import { type Bench, type Benchmark, median, quantile, root } from "./frame.ts";
import { watchStolenTime } from "./stolen-time.ts";

interface Job {
  readonly status: string;
  readonly files_processed: number;
  readonly files_total: number;
  readonly started_at: string;
  readonly finished_at: string;
  readonly counts: Readonly<Record<string, number>>;
}

/** Milliseconds between two calls, as of an agent that thinks. Without a pause the calls themselves would be the load. */
const PAUSE_MS = 20;
/** Milliseconds between two looks at the job that is measured without calls. */
const QUIET_MS = 1_000;

/** Measures the calls of an agent during the first index of its project: more than 10,000 files of real code, those of the pinned corpus. */
export default {
  summary: "MCP calls while the corpus is indexed in the same process; then the same tree again, unchanged",
  values: ["--files"],
  async run(bench) {
    const dataDir = bench.scratch();
    // A folder inside the checkout would belong to the project of the checkout.
    const project = join(bench.scratch(), "corpus");
    for (const { path, content } of await readCorpus(countOf(bench.value("--files"), Number.POSITIVE_INFINITY))) {
      mkdirSync(dirname(join(project, path)), { recursive: true });
      writeFileSync(join(project, path), content);
    }
    const quiet = await startServer(bench, bench.scratch(), project);
    await quiet.call("code_index", { include_ignored: true });
    let alone = await newest(quiet.call);
    for (; isRunning(alone); alone = await newest(quiet.call)) await sleep(QUIET_MS);
    if (alone.status !== "completed" && alone.status !== "partial") throw new Error(`The index without calls ended as ${alone.status}.`);
    bench.record({ name: "first_quiet_s", value: durationOf(alone) / 1_000, unit: "s" });
    await quiet.close();
    const { call, pid } = await startServer(bench, dataDir, project);
    const calls: Record<string, (round: number) => Promise<unknown>> = {
      code_status: () => call("code_status", {}),
      checkpoint_save: (round) => call("checkpoint_save", { summary: `Round ${round}: parser done, lexer next`, tags: ["bench"] }),
      checkpoint_list: () => call("checkpoint_list", {}),
      checkpoint_search: () => call("checkpoint_search", { query: "what is next after the parser" }),
      code_usages: () => call("code_usages", { symbol: "createInterface" }),
      code_search: () => call("code_search", { query: "read a file line by line" }),
    };
    const times: Record<string, number[]> = Object.fromEntries(Object.keys(calls).map((name) => [name, []]));
    const spans: { readonly from: number; readonly to: number }[] = [];
    // The first calls load modules and open databases, which is not part of indexing.
    for (const one of Object.values(calls)) await one(0);

    const stolen = watchStolenTime();
    const begun = performance.now();
    await call("code_index", { include_ignored: true });
    const answeredMs = performance.now() - begun;
    let job = await newest(call);
    for (let round = 1; isRunning(job); round++) {
      for (const [name, one] of Object.entries(calls)) {
        const start = performance.now();
        await one(round);
        const end = performance.now();
        times[name]!.push(end - start);
        spans.push({ from: start, to: end });
        await sleep(PAUSE_MS);
      }
      job = await newest(call);
      if (round % 50 === 0) bench.log(`${job.files_processed} of ${job.files_total} files`);
    }
    if (job.status !== "completed" && job.status !== "partial") throw new Error(`The index ended as ${job.status}.`);
    const stolenShare = stolen.share();
    stolen.stop();
    const peakMb = peakRssMb(pid);
    const firstMs = durationOf(job);
    await call("code_index", { include_ignored: true, wait: true });
    const second = await newest(call);

    const all = Object.values(times).flat();
    // A search of a hundred thousand chunks takes time without indexing too: compare it with the idle index.
    const searches = times.code_search!;
    const { idle } = await bench.times({ idle: () => calls.code_search!(0) }, { rounds: 30 });
    bench.record({ name: "files", value: job.files_total, unit: "files" });
    bench.record({ name: "indexed_files", value: job.counts.indexed!, unit: "files" });
    bench.record({ name: "first_s", value: firstMs / 1_000, unit: "s" });
    bench.record({ name: "second_s", value: durationOf(second) / 1_000, unit: "s", against: "first_s" });
    bench.record({ name: "unchanged_ratio", value: durationOf(second) / firstMs, unit: "× first" });
    bench.record({ name: "code_index_ms", value: answeredMs, unit: "ms" });
    bench.record({ name: "p50_ms", value: median(all), unit: "ms", samples: all });
    bench.record({ name: "p99_ms", value: quantile(all, 0.99), unit: "ms" });
    // A virtual machine stalls when its host takes the processors. These calls ran without such a stall.
    const calm = spans.filter(({ from, to }) => stolen.isCalm(from, to)).map(({ from, to }) => to - from);
    bench.record({ name: "stolen_share", value: stolenShare, unit: "of CPU time" });
    if (calm.length > 0) bench.record({ name: "p99_undisturbed_ms", value: quantile(calm, 0.99), unit: "ms", samples: calm });
    bench.record({ name: "undisturbed_calls", value: calm.length, unit: "calls" });
    bench.record({ name: "max_ms", value: Math.max(...all), unit: "ms" });
    bench.record({ name: "calls", value: all.length, unit: "calls" });
    for (const [name, samples] of Object.entries(times))
      bench.record({ name: `${name}_p99_ms`, value: quantile(samples, 0.99), unit: "ms" });
    bench.record({ name: "search_p50_ms", value: median(searches), unit: "ms", samples: searches, against: "search_at_rest_ms" });
    bench.record({ name: "search_at_rest_ms", value: median(idle!) / 1_000, unit: "ms" });
    bench.record({ name: "peak_rss_mb", value: peakMb, unit: "MB" });
  },
} satisfies Benchmark;

type Tool = (name: string, input: Record<string, unknown>) => Promise<Record<string, unknown>>;

/** Starts `cairn mcp` for a project with a data folder of its own. */
async function startServer(bench: Bench, dataDir: string, project: string): Promise<{ call: Tool; pid: number; close(): Promise<void> }> {
  const client = new Client({ name: "bench", version: "1" });
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: dataDir,
    CAIRN_DATA_DIR: dataDir,
    CAIRN_EMBEDDER_KIND: "static",
    CAIRN_LOG_LEVEL: "warn",
  };
  const args = [join(root, "dist", "bundle", "main.cjs"), "mcp", "--project", project, "--toolsets", "core", "--toolsets", "code"];
  const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: "inherit" });
  await client.connect(transport);
  bench.defer(() => client.close());
  return {
    pid: transport.pid!,
    close: () => client.close(),
    async call(name, input) {
      const answer = await client.callTool({ name, arguments: { detail: "full", ...input } });
      if (answer.isError) throw new Error(`${name} failed: ${JSON.stringify(answer.content)}`);
      return answer.structuredContent as Record<string, unknown>;
    },
  };
}

const isRunning = ({ status }: Job) => status === "running" || status === "pending";

async function newest(call: Tool): Promise<Job> {
  return ((await call("code_status", {})).jobs as Job[])[0]!;
}

const durationOf = ({ started_at, finished_at }: Job) => Date.parse(finished_at) - Date.parse(started_at);

/** Returns the peak resident memory of a process and its threads, as Linux reports it. */
function peakRssMb(pid: number): number {
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(peak) / 1024);
}

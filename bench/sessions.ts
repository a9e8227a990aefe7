import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { type Bench, type Benchmark, median, quantile, root } from "./frame.ts";

/** Searches of each session; a p99 needs a hundred in all. */
const SEARCHES_PER_SESSION = { 1: 200, 5: 40, 20: 20 } as const;
const COUNTS = [1, 5, 20] as const;
const CHECKPOINTS = 20;

interface Session {
  readonly client: Client;
  readonly pid: number;
}

/** Measures the memory and the searches of several agents that have Cairn open on one machine, with and without a shared model. */
export default {
  summary: "memory and search time of 1, 5 and 20 `cairn mcp` processes, with a shared model and with one each",
  flags: ["--static"],
  async run(bench) {
    const kind = bench.hasFlag("--static") ? "static" : "auto";
    for (const count of COUNTS)
      for (const share of [true, false]) {
        const { mb, times } = await measure(bench, { count, share, kind });
        const name = share ? `${count}` : `alone_${count}`;
        bench.record({ name: `mb_${name}`, value: mb, unit: "MB", ...(share && { against: `mb_alone_${count}` }) });
        bench.record({
          name: `p99_ms_${name}`,
          value: quantile(times, 0.99),
          unit: "ms",
          samples: times,
          ...(share && { against: `p99_ms_alone_${count}` }),
        });
        bench.record({ name: `p50_ms_${name}`, value: median(times), unit: "ms" });
      }
  },
} satisfies Benchmark;

interface Setup {
  readonly count: keyof typeof SEARCHES_PER_SESSION;
  readonly share: boolean;
  readonly kind: string;
}

/** Starts the sessions, saves in each, then searches in all of them in turn, one search at a time, as people and their agents do. */
async function measure(bench: Bench, { count, share, kind }: Setup): Promise<{ mb: number; times: number[] }> {
  const dataDir = bench.scratch();
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: dataDir,
    CAIRN_DATA_DIR: dataDir,
    CAIRN_EMBEDDER_KIND: kind,
    CAIRN_EMBEDDER_SHARE: `${share}`,
    CAIRN_LOG_LEVEL: "warn",
  };
  const sessions: Session[] = [];
  try {
    for (let number = 0; number < count; number++) sessions.push(await start(env, bench.scratch()));
    for (const [number, session] of sessions.entries())
      for (let index = 0; index < CHECKPOINTS; index++)
        await call(session, "checkpoint_save", { summary: `Session ${number}: step ${index} of the parser is done, the lexer is next` });
    for (const session of sessions) await call(session, "checkpoint_search", { query: "warm up" });
    const times: number[] = [];
    for (let round = 0; round < SEARCHES_PER_SESSION[count]; round++)
      for (const session of sessions) {
        const begun = performance.now();
        await call(session, "checkpoint_search", { query: `what is next after step ${round} of the parser` }); // a new text, so no cache answers
        times.push(performance.now() - begun);
      }
    return { mb: sessions.reduce((sum, { pid }) => sum + treeMb(pid), 0), times };
  } finally {
    await Promise.all(sessions.map(({ client }) => client.close()));
  }
}

async function start(env: Record<string, string>, project: string): Promise<Session> {
  const args = [join(root, "dist", "bundle", "main.cjs"), "mcp", "--project", project];
  const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: "inherit" });
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(transport, { timeout: 120_000 });
  return { client, pid: transport.pid! };
}

async function call({ client }: Session, name: string, input: Record<string, unknown>): Promise<void> {
  const answer = await client.callTool({ name, arguments: input }, { timeout: 120_000 });
  if (answer.isError) throw new Error(`${name} failed: ${JSON.stringify(answer.content)}`);
}

/** Returns the memory of a process and its children, with each shared page counted in parts (PSS); where that is not known, their resident memory. */
function treeMb(pid: number): number {
  return memoryMb(pid) + childrenOf(pid).reduce((sum, child) => sum + treeMb(child), 0);
}

function memoryMb(pid: number): number {
  const read = (file: string, field: string) =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync(file, "utf8"))![1]) / 1_024;
  try {
    return read(`/proc/${pid}/smaps_rollup`, "Pss");
  } catch {
    return read(`/proc/${pid}/status`, "VmRSS");
  }
}

function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
}

import { join, resolve } from "node:path";
import { type Benchmark, quantile } from "./frame.ts";
import { measureFreshness } from "./freshness/measure.ts";
import { runGit } from "./freshness/oracle.ts";

const RECORDS = 1_000;
const COMMITS = 500;
const SEARCHES = 300;

/** Compares the marks of records with git, in the repository that `--repo` or `CAIRN_BENCH_REPOSITORY` names. */
export default {
  summary: `marks ${RECORDS} records after ${COMMITS} commits of the repository in --repo`,
  values: ["--repo"],
  async run(bench) {
    const source = bench.value("--repo") ?? process.env.CAIRN_BENCH_REPOSITORY;
    if (!source) throw new Error("Give --repo with the path of a git repository with more than 500 commits.");
    const scratch = bench.scratch();
    const clone = join(scratch, "clone");
    runGit(scratch, "clone", "-q", "--no-checkout", resolve(source), clone);
    const to = runGit(clone, "rev-parse", "HEAD").trim();
    const from = runGit(clone, "rev-list", "--first-parent", `--skip=${COMMITS}`, "--max-count=1", "HEAD").trim();
    if (from === "") throw new Error(`${source} has fewer than ${COMMITS} commits. Choose a repository with a longer history.`);
    const options = { clone, from, to, records: RECORDS, searches: SEARCHES, dataDir: join(scratch, "data") };
    const { mistakes, anchoredMs, plainMs, coldMs, warmMs, ...measured } = await measureFreshness(options);
    for (const mistake of mistakes.slice(0, 20)) bench.log(mistake);
    const overhead = anchoredMs.map((ms, index) => ms - plainMs[index]!);
    bench.record({ name: "records", value: measured.records, unit: "records" });
    bench.record({ name: "stale", value: measured.stale, unit: "records" });
    bench.record({ name: "precision", value: measured.precision, unit: "" });
    bench.record({ name: "recall", value: measured.recall, unit: "" });
    bench.record({ name: "unmarked", value: measured.unmarked, unit: "records" });
    bench.record({ name: "ms_per_answer", value: quantile(overhead, 0.5), unit: "ms", samples: overhead });
    bench.record({ name: "cpu_ms_per_answer", value: measured.cpuMs, unit: "ms" });
    bench.record({ name: "command_cold_ms", value: quantile(coldMs, 0.5), unit: "ms", samples: coldMs });
    bench.record({ name: "command_warm_ms", value: quantile(warmMs, 0.5), unit: "ms", samples: warmMs, against: "command_cold_ms" });
  },
} satisfies Benchmark;

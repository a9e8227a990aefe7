import { systemClock } from "../src/model/ids.ts";
import { open } from "../src/open/open.ts";
import { postgresStorage } from "../src/stores/postgres/storage.ts";
import { type Bench, type Benchmark, median, quantile } from "./frame.ts";
import { createDatabase } from "./nodes/database.ts";
import { fillProject } from "./nodes/fill.ts";
import { measureLoad } from "./nodes/load.ts";
import { measureProjects } from "./nodes/projects.ts";

/** Sizes of one run: calls per measurement, projects and records at which it measures. */
export interface Sizes {
  readonly calls: number;
  readonly projects: readonly number[];
  readonly records: readonly number[];
}

const SMALL: Sizes = { calls: 300, projects: [1, 10], records: [500, 2_000] };
const MEDIUM: Sizes = { calls: 1_500, projects: [1, 10, 100], records: [1_000, 10_000] };
const FULL: Sizes = { calls: 5_000, projects: [1, 10, 100, 1_000], records: [1_000, 10_000, 100_000] };

/** Measures a team: nodes on one PostgreSQL, by the number of nodes, projects and records. */
export default {
  summary: "calls per second, CPU and connections of 1 and 3 nodes; cost by projects and records (--small, --medium; default: full size)",
  flags: ["--small", "--medium"],
  async run(bench) {
    const sizes = bench.hasFlag("--small") ? SMALL : bench.hasFlag("--medium") ? MEDIUM : FULL;
    for (const nodes of [1, 3]) await measureLoad(bench, nodes, sizes.calls);
    await measureProjects(bench, sizes.projects);
    await measureRecords(bench, sizes.records);
  },
} satisfies Benchmark;

/** Queries of one to five words, as they occur in the records. */
const QUERIES = [
  "returns the error of the request",
  "stream",
  "configuration file",
  "create a new client with options",
  "deprecated method",
];

/** Compares keyword with semantic search in one project of growing size. */
async function measureRecords(bench: Bench, sizes: readonly number[]): Promise<void> {
  const { url } = await createDatabase(bench);
  const cairn = await open({ storage: url, dataDir: bench.scratch(), embedder: { kind: "static" } });
  bench.defer(() => cairn.close());
  const storage = postgresStorage({ url, now: systemClock, poolMax: 1 });
  bench.defer(() => storage.close());
  const projectPath = "/bench/records";
  let filled = 0;
  for (const size of sizes) {
    bench.log(`records: ${size}`);
    await fillProject(url, projectPath, { from: filled, to: size });
    filled = size;
    const search = (mode: "keyword" | "semantic" | "hybrid") => (round: number) =>
      cairn.checkpoints.search({ projectPath, query: QUERIES[round % QUERIES.length]!, mode, topK: 20 });
    const taken = await bench.times(
      { keyword: search("keyword"), semantic: search("semantic"), hybrid: search("hybrid") },
      { rounds: 50, warmUp: 10 },
    );
    const label = size >= 1_000 ? `${size / 1_000}k` : String(size);
    for (const [mode, us] of Object.entries(taken)) {
      const ms = us.map((value) => value / 1_000);
      bench.record({ name: `${mode}_p50_ms_${label}`, value: median(ms), unit: "ms", samples: ms });
      bench.record({ name: `${mode}_p95_ms_${label}`, value: quantile(ms, 0.95), unit: "ms" });
    }
    const bytes = (await storage.sizeBytes(projectPath))!;
    bench.record({ name: `bytes_per_record_${label}`, value: bytes / size, unit: "bytes" });
    bench.record({ name: `keyword_ratio_${label}`, value: median(taken.keyword!) / median(taken.semantic!), unit: "×" });
  }
}

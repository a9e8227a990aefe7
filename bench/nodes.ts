import type { Benchmark } from "./frame.ts";
import { measureLoad } from "./nodes/load.ts";
import { measureProjects } from "./nodes/projects.ts";
import { measureRecords } from "./nodes/records.ts";

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
  summary:
    "calls per second, CPU and connections of 1 and 3 nodes; cost by projects and records (--small, --medium; default: full size; --only load, projects or records)",
  flags: ["--small", "--medium"],
  values: ["--only"],
  async run(bench) {
    const sizes = bench.hasFlag("--small") ? SMALL : bench.hasFlag("--medium") ? MEDIUM : FULL;
    const only = bench.value("--only");
    const includes = (part: "load" | "projects" | "records") => only === undefined || only === part;
    if (includes("load")) for (const nodes of [1, 3]) await measureLoad(bench, nodes, sizes.calls);
    if (includes("projects")) await measureProjects(bench, sizes.projects);
    if (includes("records")) await measureRecords(bench, sizes.records);
  },
} satisfies Benchmark;

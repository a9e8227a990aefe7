import { randomUUID } from "node:crypto";
import { open } from "../src/index.ts";
import { type Bench, type Benchmark, median, quantile } from "./frame.ts";

/** The two calls an agent makes most, through one edge. */
interface Edge {
  save(summary: string): Promise<string>;
  get(id: string): Promise<void>;
}

const ROUNDS = 300;

/** What each edge adds to a save and a get: the same calls through the library, MCP over stdio and HTTP, in turns, each on SQLite files of its own. */
export default {
  summary: "checkpoint_save and checkpoint_get through each edge",
  async run(bench) {
    const edges: Record<string, Edge> = { library: await library(bench) };
    const ids: Record<string, string> = {};
    const perEdge = (call: (edge: Edge, name: string) => unknown) =>
      Object.fromEntries(Object.entries(edges).map(([name, edge]) => [name, () => call(edge, name)]));

    const saves = await bench.times(
      perEdge(async (edge, name) => {
        ids[name] = await edge.save(`Parser done, lexer next ${randomUUID()}`);
      }),
      { rounds: ROUNDS },
    );
    const gets = await bench.times(
      perEdge((edge, name) => edge.get(ids[name]!)),
      { rounds: ROUNDS },
    );
    for (const [verb, times] of Object.entries({ save: saves, get: gets })) report(bench, verb, times);
  },
} satisfies Benchmark;

function report(bench: Bench, verb: string, times: Record<string, number[]>): void {
  for (const [edge, samples] of Object.entries(times)) {
    const against = edge === "library" ? {} : { against: `${verb}_library_us` };
    bench.record({ name: `${verb}_${edge}_us`, value: median(samples), unit: "µs", samples, ...against });
    bench.record({ name: `${verb}_${edge}_p99_us`, value: quantile(samples, 0.99), unit: "µs" });
    const meanUs = samples.reduce((sum, us) => sum + us, 0) / samples.length;
    bench.record({ name: `${verb}_${edge}_per_s`, value: 1_000_000 / meanUs, unit: "calls/s" });
  }
}

async function library(bench: Bench): Promise<Edge> {
  const cairn = await open({ dataDir: bench.scratch() });
  bench.defer(() => cairn.close());
  const projectPath = "/bench/library";
  return {
    save: async (summary) => (await cairn.checkpoints.save({ projectPath, summary, tags: ["bench"] })).id,
    get: async (id) => void (await cairn.checkpoints.get({ projectPath, id })),
  };
}

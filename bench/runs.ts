import { statSync } from "node:fs";
import { join } from "node:path";
import { CairnSaver } from "../src/adapters/langgraph/index.ts";
import { decodeState, END, encodeState, graph, memoryRunStore, openRunStore, type RunStore } from "../src/runs.ts";
import { type Bench, type Benchmark, median } from "./frame.ts";
import { measurePostgres } from "./runs-postgres.ts";
import { cpuInTurns, type Saver, stateOf, threadOf } from "./runs-support.ts";

const benchmark: Benchmark = {
  summary: "run checkpoints compared with LangGraph's own savers, and the cost of the graph engine",
  async run(bench) {
    await measureSqlite(bench);
    await measurePostgres(bench);
    await measureEngine(bench);
    await measureLoop(bench);
  },
};
export default benchmark;

const LEASE_MS = 3_600_000;

/** Measures CPU time per call, including the kernel's share, on files with the same durability. */
async function measureSqlite(bench: Bench): Promise<void> {
  const folder = bench.scratch();
  const peer = (await bench.peer("langgraph")) as { sqliteSaver(path: string): Saver };
  const theirs = peer.sqliteSaver(join(folder, "theirs.db"));
  const saver = new CairnSaver({ storage: "sqlite", path: join(folder, "saver.db") });
  const store = await openRunStore({ storage: "sqlite", path: join(folder, "runs.db") });
  bench.defer(() => store.close());
  bench.defer(() => saver.close());
  const { fence } = await store.start({ ...FIRST, first: { nodeId: "__start__", state: encodeState({}) } });

  for (const [label, bytes] of [
    ["2k", 2_000],
    ["200k", 200_000],
  ] as const) {
    const state = stateOf(bytes);
    const theirThread = threadOf(theirs, state, label);
    const ourThread = threadOf(saver, state, label);
    let step = 0;
    const save = () => store.save({ runId: "bench", nodeId: label, nextNode: label, step: ++step, state: encodeState(state) }, { fence });
    const calls = bytes > 10_000 ? 40 : 400;
    // Sixteen concurrent runs, as on a server; and a single one, which shares no commit.
    for (const [suffix, atOnce] of [
      ["", 16],
      ["_alone", 1],
    ] as const) {
      const put = await cpuInTurns({ theirs: theirThread.put, saver: ourThread.put, store: save }, { calls, atOnce });
      bench.record({ name: `put_cpu_us_${label}${suffix}`, value: median(put.store!), unit: "µs CPU", samples: put.store! });
      bench.record({ name: `saver_put_cpu_us_${label}${suffix}`, value: median(put.saver!), unit: "µs CPU", samples: put.saver! });
      bench.record({ name: `langgraph_put_cpu_us_${label}${suffix}`, value: median(put.theirs!), unit: "µs CPU", samples: put.theirs! });
      bench.record({ name: `put_cpu_ratio_${label}${suffix}`, value: median(put.store!) / median(put.theirs!), unit: "×" });
      bench.record({ name: `saver_put_cpu_ratio_${label}${suffix}`, value: median(put.saver!) / median(put.theirs!), unit: "×" });
    }
    const read = async () => decodeState((await store.load("bench", label)).state);
    const got = await cpuInTurns(
      { theirs: theirThread.get, saver: ourThread.get, store: read },
      { calls: bytes > 10_000 ? 60 : 3_000, atOnce: 1 },
    );
    bench.record({ name: `get_cpu_us_${label}`, value: median(got.store!), unit: "µs CPU", samples: got.store! });
    bench.record({ name: `langgraph_get_cpu_us_${label}`, value: median(got.theirs!), unit: "µs CPU", samples: got.theirs! });
    bench.record({ name: `get_cpu_ratio_${label}`, value: median(got.store!) / median(got.theirs!), unit: "×" });
    bench.record({ name: `saver_get_cpu_ratio_${label}`, value: median(got.saver!) / median(got.theirs!), unit: "×" });
  }
}

const FIRST = { runId: "bench", graph: "bench", fingerprint: "", owner: "bench", leaseMs: LEASE_MS };

/** Measures the overhead of the engine on empty steps. */
async function measureEngine(bench: Bench): Promise<void> {
  const steps = 10_000;
  const idle = graph<{ readonly n: number }>()
    .node("a", ({ n }) => ({ n: n + 1 }))
    .branch("a", ({ n }) => (n < steps ? "a" : END), ["a", END])
    .entry("a")
    .compile();
  const perStep = async (store: RunStore | undefined) => {
    const before = process.cpuUsage();
    await idle.run({ n: 0 }, { store, maxIterations: steps + 1 });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / steps;
  };
  const bare: number[] = [];
  const memory: number[] = [];
  for (let round = 0; round < 8; round++) {
    const times = [await perStep(undefined), await perStep(memoryRunStore())] as const;
    if (round < 2) continue; // warm-up
    bare.push(times[0]);
    memory.push(times[1]);
  }
  bench.record({ name: "node_overhead_us", value: median(bare), unit: "µs CPU", samples: bare });
  bench.record({ name: "node_memory_us", value: median(memory), unit: "µs CPU", samples: memory });
}

/** Measures a loop of ten thousand rounds in SQLite: whether the last rounds cost as much as the first, and whether retention bounds the file. */
async function measureLoop(bench: Bench): Promise<void> {
  const rounds = 10_000;
  const folder = bench.scratch();
  const run = async (path: string, keepHistory?: number) => {
    const marks: number[] = [];
    const loop = graph<{ readonly n: number; readonly text: string }>()
      .node("a", ({ n, text }) => {
        if (n % (rounds / 10) === 0) marks.push(process.cpuUsage().user + process.cpuUsage().system);
        return { n: n + 1, text };
      })
      .branch("a", ({ n }) => (n < rounds ? "a" : END), ["a", END])
      .entry("a")
      .compile();
    const store = await openRunStore({ storage: "sqlite", path });
    await loop.run({ n: 0, text: "x".repeat(500) }, { store, runId: "loop", maxIterations: rounds + 1, keepHistory });
    marks.push(process.cpuUsage().user + process.cpuUsage().system);
    const historyLength = (await store.history("loop", { limit: rounds + 2 })).length;
    await store.close();
    return { tenths: marks.slice(1).map((mark, i) => mark - marks[i]!), historyLength, bytes: statSync(path).size };
  };
  const whole = await run(join(folder, "whole.db"));
  bench.record({ name: "loop_last_to_first", value: median(whole.tenths.slice(-3)) / median(whole.tenths.slice(1, 4)), unit: "×" });
  bench.record({ name: "loop_history", value: whole.historyLength, unit: "checkpoints" });
  bench.record({ name: "loop_bytes", value: whole.bytes, unit: "bytes" });
  const bounded = await run(join(folder, "bounded.db"), 100);
  bench.record({ name: "loop_bounded_history", value: bounded.historyLength, unit: "checkpoints" });
  bench.record({ name: "loop_bounded_bytes", value: bounded.bytes, unit: "bytes", against: "loop_bytes" });
}

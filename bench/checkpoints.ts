import { randomUUID } from "node:crypto";
import { minilmEmbedder } from "../src/embedders/local/minilm.ts";
import { staticEmbedder } from "../src/embedders/local/static.ts";
import { systemClock } from "../src/model/ids.ts";
import { open } from "../src/open/open.ts";
import type { Embedder } from "../src/ports/embedder.ts";
import { sqliteStorage } from "../src/stores/sqlite/storage.ts";
import { type Bench, type Benchmark, median, quantile } from "./frame.ts";

const QUERIES = [
  "session tests fail after token refresh",
  "where did the export lose a row",
  "slow build on another system",
  "what comes after the parser",
];

/** Measures the latency that an agent sees: save and search with the local model, in SQLite projects of several sizes. */
export default {
  summary: "checkpoint save and search with the local model, by the size of the project",
  flags: ["--quick"],
  async run(bench) {
    const embedder = minilmEmbedder();
    bench.defer(() => embedder.close());
    await embedder.embed(["warm"]);
    // Targets of the feature's first design, for comparison.
    for (const [name, value] of Object.entries({
      seed_save_low_ms: 55,
      seed_save_high_ms: 160,
      seed_search_low_ms: 60,
      seed_search_high_ms: 270,
    }))
      bench.record({ name, value, unit: "ms" });
    await saves(bench, embedder);
    for (const size of bench.hasFlag("--quick") ? [100, 10_000] : [100, 10_000, 100_000]) await atSize(bench, embedder, size, 1);
    await atSize(bench, embedder, 100, 100);
    await staticSearch(bench, bench.hasFlag("--quick") ? 10_000 : 100_000);
  },
} satisfies Benchmark;

const input = () => ({
  summary: `Parser done, lexer next ${randomUUID()}`,
  description: "Two tests are red. ".repeat(10),
  tags: ["bench"],
});

async function saves(bench: Bench, embedder: Embedder): Promise<void> {
  const withModel = await open({ dataDir: bench.scratch(), embedder: [embedder] });
  const without = await open({ dataDir: bench.scratch(), embedder: { kind: "none" } });
  bench.defer(() => withModel.close());
  bench.defer(() => without.close());
  const taken = await bench.times(
    {
      save: () => withModel.checkpoints.save({ projectPath: "/bench", ...input() }),
      save_without_embedding: () => without.checkpoints.save({ projectPath: "/bench", ...input() }),
    },
    { rounds: 100 },
  );
  for (const [name, samples] of Object.entries(taken)) report(bench, name, "", samples, "seed_save_low_ms");
}

async function atSize(bench: Bench, embedder: Embedder, size: number, projects: number): Promise<void> {
  const dataDir = bench.scratch();
  const storage = sqliteStorage({ dataDir, now: systemClock });
  for (let project = 0; project < projects; project++) await fill(storage, `/bench/${project}`, embedder, size);
  await storage.close();
  const cairn = await open({ dataDir, embedder: [embedder] });
  bench.defer(() => cairn.close());
  const projectPath = (round: number) => `/bench/${round % projects}`;
  const { search } = await bench.times(
    {
      search: (round) =>
        cairn.checkpoints.search({ projectPath: projectPath(round), query: `${QUERIES[round % QUERIES.length]} ${round}` }),
    },
    { rounds: 100 },
  );
  const { save } = await bench.times(
    { save: (round) => cairn.checkpoints.save({ projectPath: projectPath(round), ...input() }) },
    { rounds: 100 },
  );
  const label = projects > 1 ? `_${projects}_projects` : `_${size >= 1_000 ? `${size / 1_000}k` : size}`;
  report(bench, "search", label, search!, "seed_search_low_ms");
  report(bench, "save", label, save!, "seed_save_low_ms");
}

/** Measures searches with the static model: hybrid ones, and semantic ones alone. */
async function staticSearch(bench: Bench, size: number): Promise<void> {
  const dataDir = bench.scratch();
  const embedder = staticEmbedder();
  bench.defer(() => embedder.close());
  const storage = sqliteStorage({ dataDir, now: systemClock });
  await fill(storage, "/bench/static", embedder, size);
  await storage.close();
  const cairn = await open({ dataDir, embedder: [embedder] });
  bench.defer(() => cairn.close());
  const searchIn = (mode: "hybrid" | "semantic") => (round: number) =>
    cairn.checkpoints.search({ projectPath: "/bench/static", query: `${QUERIES[round % QUERIES.length]} ${round}`, mode });
  const taken = await bench.times({ static_search: searchIn("hybrid"), static_semantic: searchIn("semantic") }, { rounds: 100 });
  for (const [name, samples] of Object.entries(taken)) report(bench, name, `_${size / 1_000}k`, samples, "seed_search_low_ms");
}

/** Stores records with random vectors: the time of a search does not depend on their values. */
async function fill(storage: ReturnType<typeof sqliteStorage>, projectPath: string, embedder: Embedder, size: number): Promise<void> {
  const { checkpoints } = await storage.create(projectPath);
  const { versionId } = await checkpoints.embeddings.addVersion(embedder);
  for (let start = 0; start < size; start += 1_000)
    await Promise.all(
      Array.from({ length: Math.min(1_000, size - start) }, (_, offset) => {
        const at = new Date(Date.UTC(2026, 0, 1) + (start + offset) * 1_000).toISOString();
        const record = {
          id: randomUUID(),
          projectPath,
          summary: `Step ${start + offset} of the work`,
          description: "",
          context: {},
          tags: ["bench"],
        };
        const vector = unit(embedder.dimension);
        return checkpoints.put(
          {
            ...record,
            tokenCount: 6,
            createdAt: at,
            updatedAt: at,
            createdOrder: at,
            updatedOrder: at,
            anchors: [],
            supersededBy: "",
            revision: 1,
          },
          [{ versionId, vector }],
        );
      }),
    );
}

function unit(dimension: number): Float32Array {
  const vector = Float32Array.from({ length: dimension }, () => Math.random() - 0.5);
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

function report(bench: Bench, name: string, label: string, us: readonly number[], against: string): void {
  const ms = us.map((value) => value / 1_000);
  bench.record({ name: `${name}_p50_ms${label}`, value: median(ms), unit: "ms", samples: ms, against });
  bench.record({ name: `${name}_p99_ms${label}`, value: quantile(ms, 0.99), unit: "ms" });
}

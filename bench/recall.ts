import { join } from "node:path";
import { minilmEmbedder } from "../src/embedders/local/minilm.ts";
import { staticEmbedder } from "../src/embedders/local/static.ts";
import { embedderRegistry } from "../src/embedders/registry.ts";
import type { CheckpointStore } from "../src/ports/checkpoint-store.ts";
import type { Embedder } from "../src/ports/embedder.ts";
import { readRecordHits } from "../src/recall/record-hits.ts";
import { type SearchMode, searchRecords } from "../src/recall/search.ts";
import { sqliteStorage } from "../src/stores/sqlite/storage.ts";
import { type Bench, type Benchmark, root } from "./frame.ts";
import { dependencyCode, dependencyProse, type RecallSet, setFromFile } from "./recall-sets.ts";
import { ndcg10 } from "./scoring/ndcg.ts";

const BATCH = 64;

/** Scores rankings by nDCG@10: keyword, each local model, and hybrid, through the search on SQLite. */
export default {
  summary: "nDCG@10 of keyword, static, MiniLM and hybrid search on several sets",
  async run(bench) {
    const evaluation = join(root, "..", "shared", "eval");
    const sets = [
      setFromFile("cosqa", join(evaluation, "cosqa-dev.json")),
      setFromFile("cosqa_nodoc", join(evaluation, "cosqa_nodoc-dev.json")),
      dependencyCode(root),
      dependencyProse(root),
    ].filter((set) => set !== undefined);
    let gap = 0;
    for (const [model, embedder] of [
      ["minilm", minilmEmbedder()],
      ["static", staticEmbedder()],
    ] as const) {
      bench.defer(() => embedder.close());
      for (const set of sets) gap = Math.max(gap, await score(bench, set, model, embedder));
    }
    bench.record({ name: "hybrid_gap_max", value: gap, unit: "nDCG" });
  },
} satisfies Benchmark;

/** Scores one set with one model. Returns by how much hybrid is below the best single ranking. */
async function score(bench: Bench, set: RecallSet, model: string, embedder: Embedder): Promise<number> {
  bench.log(`${set.name} with ${model}: ${set.docs.length} texts, ${set.queries.length} questions`);
  const storage = sqliteStorage({ dataDir: bench.scratch(), now: () => new Date().toISOString() });
  const store = (await storage.create("/bench/recall")).checkpoints;
  await load(store, set, embedder);
  const only = () => [model];
  const embedders = embedderRegistry({ entries: [{ name: model, open: async () => embedder }], preferred: only, best: only });
  const backfiller = { schedule() {}, scheduleOnce() {}, close: async () => {} };
  const deps = { embedders, backfiller, redact: (text: string) => ({ text, found: [] }) };
  const figure = async (mode: SearchMode) => {
    let sum = 0;
    for (const { text, rel } of set.queries) {
      const { hits } = await searchRecords(deps, {
        ...{ collection: "checkpoints", database: set.name, store, query: text, filter: {}, topK: 10, mode },
        hydrate: (ranking) => readRecordHits(store, ranking, 10),
      });
      sum += ndcg10(
        hits.map(({ record }) => rel[record.id] ?? 0),
        Object.values(rel),
      );
    }
    return sum / set.queries.length;
  };
  const words = await figure("keyword");
  const dense = await figure("semantic");
  const hybrid = await figure("hybrid");
  await storage.close();
  const set_ = set.name.replace("cosqa_", "").replaceAll("-", "_");
  if (model === "minilm") bench.record({ name: `bm25_${set_}_ndcg10`, value: words, unit: "nDCG" });
  bench.record({ name: `${model}_${set_}_ndcg10`, value: dense, unit: "nDCG", against: `bm25_${set_}_ndcg10` });
  bench.record({ name: `hybrid_${model}_${set_}_ndcg10`, value: hybrid, unit: "nDCG", against: `${model}_${set_}_ndcg10` });
  return Math.max(words, dense) - hybrid;
}

async function load(store: CheckpointStore, set: RecallSet, embedder: Embedder): Promise<void> {
  const { versionId } = await store.embeddings.addVersion(embedder);
  for (let start = 0; start < set.docs.length; start += BATCH) {
    const batch = set.docs.slice(start, start + BATCH);
    const vectors = await embedder.embed(batch.map(({ text }) => text));
    const at = new Date().toISOString();
    const shared = {
      projectPath: "/bench/recall",
      summary: "",
      context: {},
      tags: [],
      tokenCount: 0,
      createdAt: at,
      updatedAt: at,
      createdOrder: at,
      updatedOrder: at,
      revision: 1,
    };
    await Promise.all(
      batch.map(({ id, text }, index) => store.put({ ...shared, id, description: text }, [{ versionId, vector: vectors[index]! }])),
    );
  }
}

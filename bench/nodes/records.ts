import { join } from "node:path";
import { systemClock } from "../../src/model/ids.ts";
import { open } from "../../src/open/open.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { type Bench, median, quantile, root } from "../frame.ts";
import { packageSentences } from "../vectors/texts.ts";
import { createDatabase } from "./database.ts";
import { fillProject } from "./fill.ts";

const PROJECT = "/bench/records";

/** Queries of one to five words, as they occur in the records. The last ones are in very many records. */
const QUERIES = [
  "returns the error of the request",
  "stream",
  "configuration file",
  "create a new client with options",
  "deprecated method",
  "the",
  "the value of a type",
];
/** Queries whose hits are compared with an exact ranking. */
const COMPARED = 100;
/** Hits that are compared. */
const BEST = 20;

/** Compares keyword with semantic search in one project of growing size, and its hits with those of an exact ranking. */
export async function measureRecords(bench: Bench, sizes: readonly number[]): Promise<void> {
  const { url } = await createDatabase(bench);
  const cairn = await open({ storage: url, dataDir: bench.scratch(), embedder: { kind: "static" } });
  bench.defer(() => cairn.close());
  const storage = postgresStorage({ url, now: systemClock, poolMax: 1 });
  bench.defer(() => storage.close());
  let filled = 0;
  for (const size of sizes) {
    bench.log(`records: ${size}`);
    await fillProject(url, PROJECT, { from: filled, to: size });
    filled = size;
    bench.log("searches");
    const search = (mode: "keyword" | "semantic" | "hybrid") => (round: number) =>
      cairn.checkpoints.search({ projectPath: PROJECT, query: QUERIES[round % QUERIES.length]!, mode, topK: BEST });
    const taken = await bench.times(
      { keyword: search("keyword"), semantic: search("semantic"), hybrid: search("hybrid") },
      { rounds: 10 * QUERIES.length, warmUp: 2 * QUERIES.length },
    );
    const label = size >= 1_000 ? `${size / 1_000}k` : String(size);
    for (const [mode, us] of Object.entries(taken)) {
      const ms = us.map((value) => value / 1_000);
      bench.record({ name: `${mode}_p50_ms_${label}`, value: median(ms), unit: "ms", samples: ms });
      bench.record({ name: `${mode}_p95_ms_${label}`, value: quantile(ms, 0.95), unit: "ms" });
      bench.record({ name: `${mode}_max_ms_${label}`, value: Math.max(...ms), unit: "ms" });
    }
    bench.record({ name: `keyword_ratio_${label}`, value: median(taken.keyword!) / median(taken.semantic!), unit: "×" });
    bench.record({ name: `keyword_ratio_slowest_query_${label}`, value: slowestQueryRatio(taken.keyword!, taken.semantic!), unit: "×" });
    const bytes = (await storage.sizeBytes(PROJECT))!;
    bench.record({ name: `bytes_per_record_${label}`, value: bytes / size, unit: "bytes" });
    bench.log("exact ranking");
    bench.record({ name: `keyword_exact_share_${label}`, value: await compareRankings(url), unit: "" });
  }
}

/** Returns the largest ratio of keyword to semantic search among the queries, by their medians. */
function slowestQueryRatio(keyword: readonly number[], semantic: readonly number[]): number {
  const ofQuery = (taken: readonly number[], query: number) => median(taken.filter((_, round) => round % QUERIES.length === query));
  return Math.max(...QUERIES.map((_, query) => ofQuery(keyword, query) / ofQuery(semantic, query)));
}

/** Returns the share of queries whose best hits are those of a ranking that scores every match. */
async function compareRankings(url: string): Promise<number> {
  const storages = [undefined, Number.POSITIVE_INFINITY].map((exactMax) =>
    postgresStorage({ url, now: systemClock, poolMax: 1, ...(exactMax !== undefined && { exactMax }) }),
  );
  try {
    const stores = await Promise.all(storages.map(async (storage) => (await storage.create(PROJECT)).checkpoints));
    let equal = 0;
    for (const text of comparedQueries()) {
      const best = stores.map(async (store) => (await store.candidates({ filter: {}, limit: 100, text })).keyword.slice(0, BEST));
      const [ranked, wanted] = await Promise.all(best);
      if (JSON.stringify(ranked!.map(({ id }) => id)) === JSON.stringify(wanted!.map(({ id }) => id))) equal++;
    }
    return equal / COMPARED;
  } finally {
    for (const storage of storages) await storage.close();
  }
}

/** Returns one to five words in a row from sentences of the records. */
function comparedQueries(): string[] {
  return packageSentences(join(root, "node_modules"), COMPARED).map((sentence, index) => {
    const words = sentence.split(/\s+/);
    const count = 1 + (index % 5);
    const from = (index * 7) % Math.max(1, words.length - count);
    return words.slice(from, from + count).join(" ");
  });
}

import { statSync } from "node:fs";
import { join } from "node:path";
import { minilmEmbedder } from "../src/embedders/local/minilm.ts";
import { staticEmbedder } from "../src/embedders/local/static.ts";
import type { Embedder } from "../src/ports/embedder.ts";
import { type Bench, type Benchmark, median, root } from "./frame.ts";
import { type CairnVectors, cairnVectors } from "./vectors/cairn.ts";
import { clusteredVectors, nearest, recall, row } from "./vectors/data.ts";
import { type Candidate, cpuMs } from "./vectors/measure.ts";
import { packageCode, packageSentences } from "./vectors/texts.ts";

const DIMENSION = 384;
const LIMIT = 10;
const BATCH = 1_000;

/** Compares vector search in SQLite with sqlite-vec and usearch: CPU of all threads per query, and recall. */
export default {
  summary: "vector search in SQLite, compared with sqlite-vec and usearch (--million adds 1,000,000 vectors)",
  flags: ["--million"],
  async run(bench) {
    await hundredThousand(bench);
    await real(bench);
    if (bench.hasFlag("--million")) await million(bench);
  },
} satisfies Benchmark;

async function hundredThousand(bench: Bench): Promise<void> {
  const count = 100_000;
  const vectors = clusteredVectors(count, DIMENSION, 300, 1);
  const queries = rows(clusteredVectors(100, DIMENSION, 300, 2));
  const filter = scattered(count);
  bench.log("Computing exact neighbours …");
  const right = queries.map((query) => nearest(vectors, DIMENSION, query, LIMIT));
  const rightFiltered = queries.map((query) => nearest(vectors, DIMENSION, query, LIMIT, inFilter));

  const folder = bench.scratch();
  const path = join(folder, "cairn.db");
  const cairn = await cairnVectors(path);
  bench.defer(() => cairn.close());
  const sqliteVec = open(await bench.peer("sqlite-vec"), folder);
  bench.defer(() => sqliteVec.close());
  const usearch = open(await bench.peer("usearch"), folder);
  for (const [name, candidate] of Object.entries({ cairn, sqlite_vec: sqliteVec, usearch })) {
    bench.log(`Inserting ${count} vectors into ${name} …`);
    bench.record({ name: `insert_cpu_us_${name}`, value: await insert(candidate, vectors), unit: "µs CPU/vector" });
  }
  bench.log("Building IVF lists …");
  bench.record({ name: "lists_cpu_s_100k", value: (await cpuMs(() => cairn.buildLists())) / 1_000, unit: "s CPU" });

  const searches: Record<string, Search> = {
    cairn: (query) => cairn.search(query, LIMIT),
    cairn_scan: (query) => cairn.scan(query, LIMIT),
    sqlite_vec: (query) => sqliteVec.search(query, LIMIT),
    usearch: (query) => usearch.search(query, LIMIT),
    cairn_filtered: (query) => cairn.searchAllowed!(query, LIMIT, filter),
    sqlite_vec_filtered: (query) => sqliteVec.searchAllowed!(query, LIMIT, filter),
  };
  const { found, spent } = await inTurns(searches, queries);
  for (const [name, samples] of Object.entries(spent)) {
    const against = name.endsWith("_filtered") ? "query_cpu_ms_100k_sqlite_vec_filtered" : "query_cpu_ms_100k_sqlite_vec";
    bench.record({ name: `query_cpu_ms_100k_${name}`, value: median(samples), unit: "ms CPU", samples, against });
  }
  const ratio = (name: string, key: string) => {
    const samples = spent[key]!.map((ms, i) => ms / spent.sqlite_vec![i]!);
    bench.record({ name, value: median(samples), unit: "×", samples });
  };
  ratio("cpu_ratio_to_sqlite_vec", "cairn");
  ratio("cpu_ratio_to_sqlite_vec_scan", "cairn_scan");
  bench.record({ name: "recall10_100k", value: recall(found.cairn!, right), unit: "" });
  bench.record({ name: "recall10_100k_scan", value: recall(found.cairn_scan!, right), unit: "" });
  bench.record({ name: "recall10_100k_sqlite_vec", value: recall(found.sqlite_vec!, right), unit: "" });
  bench.record({ name: "recall10_100k_usearch", value: recall(found.usearch!, right), unit: "" });
  bench.record({ name: "recall10_filter_1pct", value: recall(found.cairn_filtered!, rightFiltered), unit: "" });
  await costs(bench, cairn, "100k", vectors, queries, path);
  bench.record({ name: "delete_cpu_us_sqlite_vec", value: await remove(sqliteVec, count), unit: "µs CPU/vector" });
}

async function million(bench: Bench): Promise<void> {
  const count = 1_000_000;
  bench.log("Generating a million vectors …");
  const vectors = clusteredVectors(count, DIMENSION, 1_000, 3);
  const queries = rows(clusteredVectors(40, DIMENSION, 1_000, 4));
  const right = queries.map((query) => nearest(vectors, DIMENSION, query, LIMIT));
  const rightFiltered = queries.map((query) => nearest(vectors, DIMENSION, query, LIMIT, inFilter));
  const filter = scattered(count);
  const path = join(bench.scratch(), "million.db");
  const cairn = await cairnVectors(path);
  bench.defer(() => cairn.close());
  bench.log("Inserting them …");
  bench.record({ name: "insert_cpu_us_1m", value: await insert(cairn, vectors), unit: "µs CPU/vector" });
  bench.log("Building IVF lists …");
  bench.record({ name: "lists_cpu_s_1m", value: (await cpuMs(() => cairn.buildLists())) / 1_000, unit: "s CPU" });

  const { found, spent } = await inTurns(
    {
      lists: (query) => cairn.search(query, LIMIT),
      filtered: (query) => cairn.searchAllowed!(query, LIMIT, filter),
    },
    [...queries, ...queries],
  );
  bench.record({ name: "query_cpu_ms_1m", value: median(spent.lists!), unit: "ms CPU", samples: spent.lists! });
  bench.record({ name: "recall10_1m", value: recall(found.lists!, [...right, ...right]), unit: "" });
  bench.record({ name: "query_cpu_ms_1m_filtered", value: median(spent.filtered!), unit: "ms CPU", samples: spent.filtered! });
  bench.record({ name: "recall10_filter_1pct_1m", value: recall(found.filtered!, [...rightFiltered, ...rightFiltered]), unit: "" });
  await costs(bench, cairn, "1m", vectors, queries, path);
}

/** Repeats the measurement with vectors of real texts from the local models. */
async function real(bench: Bench): Promise<void> {
  const packages = join(root, "node_modules");
  await realSet(bench, "prose", minilmEmbedder(), packageSentences(packages, 5_000));
  await realSet(bench, "code", staticEmbedder(), packageCode(packages, 50_000));
}

async function realSet(bench: Bench, name: string, embedder: Embedder, texts: readonly string[]): Promise<void> {
  const { dimension } = embedder;
  bench.log(`Embedding ${texts.length} texts of ${name} …`);
  const embedded = await embedder.embed(texts);
  await embedder.close();
  const queries = embedded.splice(0, 100);
  const vectors = new Float32Array(embedded.length * dimension);
  for (const [i, vector] of embedded.entries()) vectors.set(vector, i * dimension);
  const right = queries.map((query) => nearest(vectors, dimension, query, LIMIT));
  const rightFiltered = queries.map((query) => nearest(vectors, dimension, query, LIMIT, inFilter));

  const filter = scattered(embedded.length);
  // IVF lists are used at any size here, to measure them.
  const cairn = await cairnVectors(join(bench.scratch(), `${name}.db`), 1_000);
  bench.defer(() => cairn.close());
  await insert(cairn, vectors, dimension);
  await cairn.buildLists();
  const { found, spent } = await inTurns(
    {
      scan: (query) => cairn.scan(query, LIMIT),
      lists: (query) => cairn.search(query, LIMIT),
      filter_1pct: (query) => cairn.searchAllowed!(query, LIMIT, filter),
    },
    queries,
  );
  bench.record({ name: `real_${name}_vectors`, value: embedded.length, unit: "" });
  for (const way of ["scan", "lists", "filter_1pct"]) {
    bench.record({ name: `query_cpu_ms_real_${name}_${way}`, value: median(spent[way]!), unit: "ms CPU", samples: spent[way]! });
    bench.record({
      name: `recall10_real_${name}_${way}`,
      value: recall(found[way]!, way === "filter_1pct" ? rightFiltered : right),
      unit: "",
    });
  }
}

type Search = (query: Float32Array) => readonly number[] | Promise<readonly number[]>;

/** Runs all searches, ten queries of each in turn, so that other load affects all equally. Returns CPU milliseconds per query. */
async function inTurns(searches: Record<string, Search>, queries: readonly Float32Array[]) {
  const SLICE = 10;
  const found: Record<string, (readonly number[])[]> = {};
  const spent: Record<string, number[]> = {};
  for (const [name, search] of Object.entries(searches)) {
    found[name] = [];
    spent[name] = [];
    for (const query of queries.slice(0, 3 * SLICE)) await search(query); // warm-up
  }
  for (let from = 0; from < queries.length; from += SLICE) {
    const slice = queries.slice(from, from + SLICE);
    for (const [name, search] of Object.entries(searches)) {
      const ms = await cpuMs(async () => {
        for (const query of slice) found[name]!.push(await search(query));
      });
      spent[name]!.push(ms / slice.length);
    }
  }
  return { found, spent };
}

/** Returns every hundredth key, as a selective filter would. */
function inFilter(index: number): boolean {
  return (Math.imul(index, 2_654_435_761) >>> 0) % 100 === 7;
}

function scattered(count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, i) => i).filter(inFilter);
}

/** Measures single changes, a cold start, memory and disk. */
async function costs(
  bench: Bench,
  cairn: CairnVectors,
  size: string,
  vectors: Float32Array,
  queries: readonly Float32Array[],
  path: string,
): Promise<void> {
  const count = vectors.length / DIMENSION;
  bench.record({ name: `process_memory_mb_${size}`, value: process.memoryUsage().rss / 1e6 - vectors.byteLength / 1e6, unit: "MB" });
  const samples: number[] = [];
  for (let i = 0; i < 10; i++) {
    cairn.forget();
    samples.push(await cpuMs(() => cairn.search(queries[i]!, LIMIT)));
  }
  bench.record({ name: `reopen_cpu_ms_${size}`, value: median(samples), unit: "ms CPU", samples });
  const singles: number[] = [];
  for (let i = 0; i < 200; i++) singles.push(await cpuMs(() => cairn.add([{ key: count + i, vector: row(vectors, i, DIMENSION) }])));
  bench.record({
    name: `insert_one_cpu_us_${size}`,
    value: (1_000 * singles.reduce((sum, ms) => sum + ms, 0)) / singles.length,
    unit: "µs CPU",
  });
  bench.record({ name: `delete_cpu_us_${size}`, value: await remove(cairn, count), unit: "µs CPU/vector" });
  bench.record({ name: `file_mb_${size}`, value: (statSync(path).size + statSync(`${path}-wal`).size) / 1e6, unit: "MB" });
}

/** Measures microseconds of CPU per vector, inserted in batches of a thousand. */
async function insert(candidate: Candidate, vectors: Float32Array, dimension = DIMENSION): Promise<number> {
  const count = vectors.length / dimension;
  const ms = await cpuMs(async () => {
    for (let from = 0; from < count; from += BATCH)
      await candidate.add(
        Array.from({ length: Math.min(BATCH, count - from) }, (_, i) => ({ key: from + i, vector: row(vectors, from + i, dimension) })),
      );
  });
  return (1_000 * ms) / count;
}

/** Measures microseconds of CPU per vector for 5,000 scattered vectors, removed in batches of a hundred. */
async function remove(candidate: Candidate, count: number): Promise<number> {
  const keys = Array.from({ length: 5_000 }, (_, i) => (i * 7_919) % count);
  const ms = await cpuMs(async () => {
    for (let from = 0; from < keys.length; from += 100) await candidate.remove(keys.slice(from, from + 100));
  });
  return (1_000 * ms) / keys.length;
}

function rows(vectors: Float32Array): Float32Array[] {
  return Array.from({ length: vectors.length / DIMENSION }, (_, i) => row(vectors, i, DIMENSION));
}

function open(peer: Record<string, unknown>, folder: string): Candidate {
  return (peer.open as (options: { folder: string; dimension: number }) => Candidate)({ folder, dimension: DIMENSION });
}

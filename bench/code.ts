import { createHash } from "node:crypto";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { EMBEDDED_AT_ONCE } from "../src/client/jobs/index-target.ts";
import { type Cairn, open } from "../src/index.ts";
import { projectDatabaseName } from "../src/model/ids.ts";
import { openSqlite } from "../src/stores/sqlite/driver/driver.ts";
import { codeFileOf } from "../src/stores/sqlite/projects/code/code-file.ts";
import { extractQueryTerms } from "../src/text/terms.ts";
import { type CorpusFile, countOf, readCorpus } from "./corpus/corpus.ts";
import { type Bench, type Benchmark, median, quantile } from "./frame.ts";

/** Files of the corpus that are indexed, unless `--files` says another number. */
const FILES = 2_500;
/** Limits of one batch. */
const BATCH = { files: 10, bytes: 1_000_000 };
const TOUCHED_SHARE = 0.01;
const PROJECT = "/bench/code";

/** Measures the whole code index: files of the pinned corpus with the static model, compared with ripgrep and a plain FTS5 table. */
export default {
  summary: "indexing and searching code, compared with ripgrep and a full-text table of whole files",
  values: ["--files"],
  async run(bench) {
    const sources = await readCorpus(countOf(bench.value("--files"), FILES));
    const bytes = sources.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0);
    bench.record({ name: "files", value: sources.length, unit: "files" });
    bench.record({ name: "mb", value: bytes / 1e6, unit: "MB" });

    const dataDir = bench.scratch();
    const file = codeFileOf(join(dataDir, "projects", `${projectDatabaseName(PROJECT)}.db`));
    const cairn = await open({ dataDir, embedder: { kind: "static" } });
    let isOpen = true;
    bench.defer(async () => {
      if (isOpen) await cairn.close();
    });
    await cairn.code.indexBatch({ projectPath: "/bench/warm-up", files: sources.slice(0, 50) });

    const before = process.cpuUsage();
    const searchable = await seconds(() => indexTree(cairn, sources));
    const cold = searchable + (await seconds(() => cairn.code.embedPending({ projectPath: PROJECT })));
    const used = process.cpuUsage(before);
    await assertComplete(cairn);
    const fts5 = await plainFullText(join(bench.scratch(), "fts5.db"), sources);
    bench.record({ name: "files_per_s_searchable", value: sources.length / searchable, unit: "files/s" });
    bench.record({ name: "files_per_s", value: sources.length / cold, unit: "files/s" });
    bench.record({ name: "cpu_ms_per_file", value: (used.user + used.system) / 1_000 / sources.length, unit: "ms" });
    bench.record({ name: "fts5_mb_per_s", value: bytes / 1e6 / fts5.seconds, unit: "MB/s" });
    bench.record({ name: "mb_per_s", value: bytes / 1e6 / cold, unit: "MB/s", against: "fts5_mb_per_s" });
    bench.record({ name: "mb_per_s_ratio", value: fts5.seconds / cold, unit: "× FTS5" });

    const unchanged = await seconds(() => indexTree(cairn, sources));
    const step = Math.round(1 / TOUCHED_SHARE);
    const touched = sources.map((source, index) =>
      index % step === 0 ? { ...source, content: `${source.content}\n// touched\n` } : source,
    );
    const incremental = await seconds(async () => {
      await indexTree(cairn, touched);
      await cairn.code.embedPending({ projectPath: PROJECT });
    });
    bench.record({ name: "unchanged_ratio", value: unchanged / cold, unit: "× cold" });
    bench.record({ name: "touched_ratio", value: incremental / cold, unit: "× cold" });
    await queries(bench, cairn, touched);
    const clone = "/bench/clone";
    const files = touched.map(({ path, content }) => ({ path, contentHash: createHash("sha256").update(content).digest("hex") }));
    const second = await seconds(async () => {
      await cairn.code.seed({ projectPath: clone, sample: files.slice(0, 50), list: async () => files });
      await indexTree(cairn, touched, clone);
    });
    bench.record({ name: "second_clone_ratio", value: second / cold, unit: "× cold" });

    const { chunks } = await cairn.code.stats({ projectPath: PROJECT });
    bench.record({ name: "chunks", value: chunks, unit: "chunks" });
    bench.record({ name: "fts5_bytes_per_source_byte", value: fts5.bytes / bytes, unit: "bytes" });
    isOpen = false;
    await cairn.close(); // a WAL checkpoint moves the log into the file
    const size = statSync(file).size;
    bench.record({ name: "bytes_per_source_byte", value: size / bytes, unit: "bytes", against: "fts5_bytes_per_source_byte" });
    const parts = await sizes(file);
    bench.record({ name: "vector_bytes_per_source_byte", value: parts.vectors / bytes, unit: "bytes" });
    bench.record({ name: "other_bytes_per_source_byte", value: (size - parts.vectors) / bytes, unit: "bytes" });
    bench.record({ name: "peak_rss_mb", value: process.resourceUsage().maxRSS / 1e3, unit: "MB" });
  },
} satisfies Benchmark;

/** Does what an index run does after reading files: hashes them, asks which changed, sends those and finishes with the manifest. */
async function indexTree(cairn: Cairn, sources: readonly CorpusFile[], projectPath = PROJECT): Promise<void> {
  const known = await cairn.code.hashes({ projectPath, paths: sources.map(({ path }) => path) });
  const changed = sources.filter(({ path, content }) => known[path] !== createHash("sha256").update(content).digest("hex"));
  const queue = batches(changed);
  const sender = async () => {
    for (const files of queue) await cairn.code.indexBatch({ projectPath, files }, { vectors: "later" });
  };
  await Promise.all(Array.from({ length: EMBEDDED_AT_ONCE }, sender));
  await cairn.code.finish({ projectPath, manifest: sources.map(({ path }) => path) });
}

/** Refuses figures of an index without some of its vectors. */
async function assertComplete(cairn: Cairn): Promise<void> {
  const { chunks, embeddings } = await cairn.code.stats({ projectPath: PROJECT });
  const vectors = embeddings.find(({ isCurrent }) => isCurrent)?.vectors;
  if (vectors !== chunks) throw new Error(`${vectors} of ${chunks} chunks have a vector.`);
}

function* batches(sources: readonly CorpusFile[]): Generator<CorpusFile[], undefined> {
  let batch: CorpusFile[] = [];
  let bytes = 0;
  for (const source of sources) {
    const size = Buffer.byteLength(source.content);
    if (batch.length > 0 && (batch.length >= BATCH.files || bytes + size > BATCH.bytes)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(source);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Fills the minimal full-text baseline: whole files in one FTS5 table, in the same durable batches, without chunks, symbols or vectors. */
async function plainFullText(path: string, sources: readonly CorpusFile[]): Promise<{ seconds: number; bytes: number }> {
  const db = await openSqlite({ path });
  await db.write((tx) => tx.exec("CREATE VIRTUAL TABLE files USING fts5 (path, content)"));
  const taken = await seconds(async () => {
    for (const batch of batches(sources))
      await db.write((tx) => {
        for (const { path, content } of batch) tx.run("INSERT INTO files (path, content) VALUES (?, ?)", path, content);
      });
  });
  db.close();
  return { seconds: taken, bytes: statSync(path).size };
}

/** Returns the bytes that vectors and their codes take in the file; the number of chunks determines them. */
async function sizes(path: string): Promise<{ vectors: number }> {
  const db = await openSqlite({ path });
  const { vectors } = db.read((tx) => tx.get<{ vectors: number }>("SELECT sum(pgsize) AS vectors FROM dbstat WHERE name LIKE '%vector%'"))!;
  db.close();
  return { vectors };
}

async function queries(bench: Bench, cairn: Cairn, sources: readonly CorpusFile[]): Promise<void> {
  const folder = bench.scratch();
  for (const { path, content } of sources) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  const ripgrep = (await bench.peer("ripgrep")) as { search(folder: string, words: readonly string[]): Promise<string> };
  const asked = (round: number) => QUERIES[round % QUERIES.length]!;
  const taken = await bench.times(
    {
      cairn: (round) => cairn.code.search({ projectPath: PROJECT, query: asked(round) }),
      keyword: (round) => cairn.code.search({ projectPath: PROJECT, query: asked(round), mode: "keyword" }),
      ripgrep: (round) => ripgrep.search(folder, extractQueryTerms(asked(round))),
    },
    { rounds: 5 * QUERIES.length, warmUp: QUERIES.length },
  );
  const [hybrid, keyword, rg] = [taken.cairn!, taken.keyword!, taken.ripgrep!].map((samples) => samples.map((us) => us / 1_000));
  bench.record({ name: "ripgrep_p50_ms", value: median(rg!), unit: "ms", samples: rg! });
  bench.record({ name: "ripgrep_p99_ms", value: quantile(rg!, 0.99), unit: "ms" });
  bench.record({ name: "query_p50_ms", value: median(hybrid!), unit: "ms", samples: hybrid!, against: "ripgrep_p50_ms" });
  bench.record({ name: "query_p99_ms", value: quantile(hybrid!, 0.99), unit: "ms", against: "ripgrep_p99_ms" });
  bench.record({ name: "keyword_query_p50_ms", value: median(keyword!), unit: "ms", samples: keyword!, against: "ripgrep_p50_ms" });
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1_000;
}

/** Typical questions about code: descriptions and symbol names. */
const QUERIES = [
  "where is the retry with backoff",
  "parse command line arguments",
  "read a file line by line",
  "connection pool with a maximum size",
  "compile a regular expression from a glob",
  "validate an email address",
  "encode as base64",
  "rate limit of requests",
  "abort signal with timeout",
  "walk the syntax tree",
  "resolve a module specifier",
  "source map of the generated code",
  "escape HTML",
  "deep equality of two objects",
  "stack trace of an error",
  "EventEmitter",
  "createServer",
  "parseInt",
  "AsyncLocalStorage",
  "readFileSync",
  "toJSON",
  "ZodError",
  "isPlainObject",
  "normalizePath",
];

import { CairnError } from "../model/errors.ts";
import { countPieces } from "../model/stored-record.ts";
import type { Embedder } from "../ports/embedder.ts";
import type { CollectionName, Embedders } from "../ports/embedders.ts";
import type { EmbeddingStore, EmbeddingVersion, VersionedVector } from "../ports/embedding-store.ts";
import type { ReadRecords } from "../ports/recall-store.ts";
import { waitLimitMs } from "../scheduling/calls.ts";
import type { Backfiller } from "./backfiller.ts";

export interface StoreDeps {
  readonly embedders: Embedders;
  readonly backfiller: Backfiller;
}

/** The collection that records are written to. */
export interface Collection {
  readonly name: CollectionName;
  readonly database: string;
  readonly embeddings: EmbeddingStore;
}

type Write = (vectors: readonly VersionedVector[]) => Promise<boolean>;

/**
 * Embeds a record's text within a bounded time and writes the record. A record that got no vector is stored all the same. The backfiller
 * embeds it then, and also the parts of a long text. Returns `undefined` if the write was refused, else whether the record has a vector in the current version.
 */
export async function storeEmbedded(
  { embedders, backfiller }: StoreDeps,
  { name, database, embeddings }: Collection,
  text: string,
  write: Write,
  signal: AbortSignal | undefined,
): Promise<boolean | undefined> {
  const { vectors, embedded } = await vectorsFor(embeddings, embedders, name, [text], { signal });
  if (!(await write(vectors[0]!))) return undefined;
  const complete = embedded && (await allCoverCurrent(embeddings, vectors));
  if (!complete || countPieces(text) > 1) backfiller.schedule(`${name} ${database}`, embeddings, { atClose: complete });
  return complete;
}

export interface ImportNew<RecordType> {
  readonly records: readonly RecordType[];
  readonly getMany: (ids: readonly string[]) => Promise<ReadRecords<RecordType>>;
  readonly textOf: (record: RecordType) => string;
  /** Returns false if the id is taken. */
  readonly put: (record: RecordType, vectors: readonly VersionedVector[] | undefined) => Promise<boolean>;
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

/** Records embedded and written together. */
const BATCH = 16;

/** Stores records under the ids that they have, in batches. Records whose id exists stay as they are, so an import can be repeated. */
export async function importNew<RecordType extends { readonly id: string }>(
  { embedders, backfiller }: StoreDeps,
  { name, database, embeddings }: Collection,
  { records, getMany, textOf, put, signal, progress }: ImportNew<RecordType>,
): Promise<{ imported: number; present: number }> {
  const existing = await getMany(records.map(({ id }) => id));
  const known = new Set([...existing.records, ...existing.damaged].map(({ id }) => id));
  const added = records.filter(({ id }) => !known.has(id) && known.add(id));
  let imported = 0;
  for (let start = 0; start < added.length; start += BATCH) {
    signal?.throwIfAborted();
    const batch = added.slice(start, start + BATCH);
    const { vectors, embedded } = await vectorsFor(embeddings, embedders, name, batch.map(textOf), { signal });
    const stored = await Promise.all(batch.map((record, index) => put(record, vectors[index])));
    imported += stored.filter(Boolean).length;
    const complete = embedded && (await allCoverCurrent(embeddings, vectors));
    const long = batch.some((record) => countPieces(textOf(record)) > 1);
    if (long || !complete) backfiller.schedule(`${name} ${database}`, embeddings, { atClose: complete });
    progress?.(start + batch.length, added.length);
  }
  return { imported, present: records.length - imported };
}

/** Milliseconds that a save waits for its vector. After that the record is stored without one and left to the backfill. */
const SAVE_EMBED_MS = 8_000;

export interface SaveVectors {
  /** One list per text. */
  readonly vectors: readonly (readonly VersionedVector[])[];
  /** Whether every text has a vector in the current version; always true when embedding is disabled. */
  readonly embedded: boolean;
  readonly failure?: string | undefined;
}

/** Embeds texts that are about to be stored: for the current version and for newer ones that an upgrade is filling. */
export async function vectorsFor(
  store: EmbeddingStore,
  embedders: Embedders,
  collection: CollectionName,
  texts: readonly string[],
  { signal, timeoutMs = SAVE_EMBED_MS }: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number } = {},
): Promise<SaveVectors> {
  const vectors: VersionedVector[][] = texts.map(() => []);
  const versions = await liveVersions(store, embedders, collection);
  if (typeof versions === "string") return { vectors, embedded: false, failure: versions };
  let failure: string | undefined;
  let embedded = true;
  for (const version of versions) {
    const embedder = await embedders.serving(version);
    const outcome = embedder
      ? await embedWithin(embedder, texts, { timeoutMs, purpose: "document", signal })
      : { failure: `the model ${version.model} is not available here`, vectors: undefined };
    if (outcome.vectors)
      for (const [index, vector] of outcome.vectors.entries()) vectors[index]!.push({ versionId: version.versionId, vector });
    else if (version.isCurrent) {
      embedded = false;
      failure = outcome.failure;
    }
  }
  return { vectors, embedded, failure };
}

/** Returns why the preferred model cannot be opened: that must not fail a save. */
function reasonOfUnavailable(error: unknown): string {
  if (error instanceof CairnError && error.code === "unavailable") return error.message;
  throw error;
}

/** Returns whether each record that was stored with these vectors has one in the current version: another version may have become current meanwhile. */
export async function allCoverCurrent(store: EmbeddingStore, records: readonly (readonly VersionedVector[])[]): Promise<boolean> {
  const current = (await store.versions()).find(({ isCurrent }) => isCurrent);
  return !current || records.every((vectors) => vectors.some(({ versionId }) => versionId === current.versionId));
}

/** Returns the current version and newer ones. A collection without a version starts with the preferred model, or returns why that cannot be opened. */
export async function liveVersions(
  store: EmbeddingStore,
  embedders: Embedders,
  collection: CollectionName,
): Promise<readonly EmbeddingVersion[] | string> {
  const versions = await store.versions();
  const current = versions.find(({ isCurrent }) => isCurrent);
  if (current) return versions.filter(({ versionId }) => versionId >= current.versionId);
  const preferred = await embedders.preferred(collection).catch(reasonOfUnavailable);
  if (preferred === undefined || typeof preferred === "string") return preferred ?? [];
  const { model, version, dimension } = preferred; // a store receives data, never an embedder
  return [await store.addVersion({ model, version, dimension })];
}

export type Embedded =
  | { readonly vectors: readonly Float32Array[]; readonly failure?: undefined }
  | { readonly failure: string; readonly vectors?: undefined };

export interface EmbedWithinOptions {
  readonly timeoutMs: number;
  readonly purpose: "query" | "document";
  readonly signal?: AbortSignal | undefined;
}

/**
 * Embeds texts within a time limit, or returns the reason of the failure: an unavailable or slow embedder degrades a search and never
 * fails a save. Only an abort by the caller is raised. The embedder pipeline has validated the vectors.
 */
export async function embedWithin(
  embedder: Embedder,
  texts: readonly string[],
  { timeoutMs, purpose, signal }: EmbedWithinOptions,
): Promise<Embedded> {
  // Half of the remaining time stays for the rest of the call, which can answer without vectors but not without time.
  const limitMs = Math.floor(Math.min(timeoutMs, waitLimitMs(Number.POSITIVE_INFINITY) / 2));
  const timeout = AbortSignal.timeout(limitMs);
  const either = signal ? AbortSignal.any([signal, timeout]) : timeout;
  try {
    const vectors = await untilAborted(embedder.embed(texts, { signal: either, purpose }), either);
    return { vectors };
  } catch (error) {
    signal?.throwIfAborted();
    if (timeout.aborted) return { failure: `no answer within ${limitMs} ms` };
    return { failure: error instanceof Error ? error.message : String(error) };
  }
}

async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    if (abort) signal.removeEventListener("abort", abort);
    work.catch(() => {}); // a failure after the time limit is ignored
  }
}

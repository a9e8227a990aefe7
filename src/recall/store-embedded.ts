import type { CollectionName, Embedders } from "../ports/embedders.ts";
import type { EmbeddingStore, VersionedVector } from "../ports/embedding-store.ts";
import type { ReadRecords } from "../ports/recall-store.ts";
import type { Backfiller } from "./backfiller.ts";
import { allCoverCurrent, vectorsFor } from "./vectors-for.ts";

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
 * Embeds a record's text within a bounded time and writes the record. A record that got no vector is stored all the same and left to
 * the backfiller. Returns `undefined` if the write was refused, else whether the record has a vector in the current version.
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
  if (!complete) backfiller.schedule(`${name} ${database}`, embeddings);
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
    if (!embedded || !(await allCoverCurrent(embeddings, vectors))) backfiller.schedule(`${name} ${database}`, embeddings);
    progress?.(start + batch.length, added.length);
  }
  return { imported, present: records.length - imported };
}

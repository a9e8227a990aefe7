import type { EmbeddingStore, EmbeddingVersion } from "../../ports/embedding-store.ts";
import type { VectorOutbox } from "../../ports/vector-outbox.ts";
import type { QdrantClient } from "./client.ts";

/** What a copy is made of. */
interface Source {
  readonly embeddings: EmbeddingStore;
  readonly outbox: VectorOutbox;
}

/** One collection of one project and its copy in Qdrant. */
export interface Mirrored {
  /** Prefix of its Qdrant collections, unique among all collections of all projects. */
  readonly prefix: string;
  /** Absent if the database is gone: its collections in Qdrant are deleted. */
  readonly source: Source | undefined;
  /** Compares point by point even where the counts agree. */
  readonly thorough?: boolean | undefined;
}

/** Returns the name of the Qdrant collection of a version. Each has its own, so that no search returns vectors of another project or model. */
export const nameOf = ({ prefix }: Pick<Mirrored, "prefix">, versionId: number): string => `${prefix}${versionId}`;

const BATCH = 256;
const PAGE = 1_000;

/**
 * Synchronises Qdrant with the database: deletes collections of deleted versions, creates missing ones, copies pending changes and,
 * where the counts still differ, finds and copies the differences. An interrupted pass is completed by the next one.
 */
export async function sync(client: QdrantClient, mirrored: Mirrored, signal: AbortSignal): Promise<void> {
  const { source, prefix } = mirrored;
  const versions = (await source?.embeddings.versions()) ?? [];
  const names = new Set(versions.map(({ versionId }) => nameOf(mirrored, versionId)));
  const there = (await client.collections(signal)).filter((name) => name.startsWith(prefix));
  for (const name of there) if (!names.has(name)) await client.deleteCollection(name, signal);
  if (!source) return;
  await source.outbox.forgetGone();
  for (const version of versions) {
    const name = nameOf(mirrored, version.versionId);
    if (!there.includes(name)) await client.createCollection(name, version.dimension, signal);
    await copyChanges(client, name, source, version, signal);
    const { vectors, partVectors } = await source.embeddings.counts(version.versionId);
    if (!mirrored.thorough && (await client.count(name, signal)) === vectors + partVectors) continue;
    await markDifferences(client, name, source, version, signal);
    await copyChanges(client, name, source, version, signal);
  }
}

/** Copies the current vectors of the database, so copying a change twice is harmless. */
async function copyChanges(
  client: QdrantClient,
  name: string,
  { outbox }: Source,
  { versionId }: EmbeddingVersion,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const changes = await outbox.pending(versionId, BATCH);
    if (changes.length === 0) return;
    const points = changes.flatMap(({ key, id, vector }) => (id !== undefined && vector ? [{ id: key, vector, payload: { id } }] : []));
    const present = new Set(points.map(({ id }) => id));
    const gone = changes.map(({ key }) => key).filter((key) => !present.has(key));
    if (points.length > 0) await client.upsert(name, points, signal);
    if (gone.length > 0) await client.remove(name, gone, signal);
    await outbox.done(versionId, changes);
  }
}

/** Records keys that only one side has as changed; copying them adds missing points and removes orphans. */
async function markDifferences(
  client: QdrantClient,
  name: string,
  { outbox }: Source,
  { versionId }: EmbeddingVersion,
  signal: AbortSignal,
): Promise<void> {
  const truth = pages((after) => outbox.keys(versionId, after, PAGE));
  const copied = points(client, name, signal);
  let left = await truth.next();
  let right = await copied.next();
  let differing: number[] = [];
  while (!left.done || !right.done) {
    if (left.done || (!right.done && right.value < left.value)) {
      differing.push(right.value as number);
      right = await copied.next();
    } else if (right.done || left.value < right.value) {
      differing.push(left.value);
      left = await truth.next();
    } else {
      left = await truth.next();
      right = await copied.next();
    }
    if (differing.length >= PAGE) {
      await outbox.mark(versionId, differing);
      differing = [];
    }
  }
  await outbox.mark(versionId, differing);
}

async function* pages(read: (after: number) => Promise<readonly number[]>): AsyncGenerator<number, undefined> {
  for (let after = -1; ; ) {
    const page = await read(after);
    if (page.length === 0) return undefined;
    yield* page;
    after = page.at(-1)!;
  }
}

async function* points(client: QdrantClient, name: string, signal: AbortSignal): AsyncGenerator<number, undefined> {
  for (let offset: number | undefined; ; ) {
    const { ids, next } = await client.scroll(name, offset, PAGE, signal);
    yield* ids;
    if (next === undefined) return undefined;
    offset = next;
  }
}

import type { EmbeddingStore, EmbeddingVersion } from "../../ports/embedding-store.ts";
import type { VectorOutbox } from "../../ports/vector-outbox.ts";
import type { QdrantClient } from "./client.ts";

/** One collection of one project, as it is to be found in Qdrant. */
export interface Mirrored {
  /** Starts the names of its Qdrant collections; no other collection of any project has a name that starts so. */
  readonly prefix: string;
  readonly embeddings: EmbeddingStore;
  readonly outbox: VectorOutbox;
  /** Compare point by point even where the counts agree. */
  readonly thorough?: boolean | undefined;
}

/** The Qdrant collection of one version. Each has its own, so that no search can meet vectors of another project or model. */
export const nameOf = ({ prefix }: Pick<Mirrored, "prefix">, versionId: number): string => `${prefix}${versionId}`;

const BATCH = 256;
const PAGE = 1_000;

/**
 * Brings Qdrant to where the database is: collections of versions that are gone are deleted, missing ones made, waiting changes
 * copied, and where the counts differ after that, what differs is found and copied too. Killed at any point, the next pass goes on.
 */
export async function sync(client: QdrantClient, mirrored: Mirrored, signal: AbortSignal): Promise<void> {
  const { embeddings, outbox, prefix } = mirrored;
  const versions = await embeddings.versions();
  const names = new Set(versions.map(({ versionId }) => nameOf(mirrored, versionId)));
  const there = (await client.collections(signal)).filter((name) => name.startsWith(prefix));
  for (const name of there) if (!names.has(name)) await client.deleteCollection(name, signal);
  await outbox.forgetGone();
  for (const version of versions) {
    const name = nameOf(mirrored, version.versionId);
    if (!there.includes(name)) await client.createCollection(name, version.dimension, signal);
    await copyChanges(client, mirrored, version, signal);
    const { vectors } = await embeddings.counts(version.versionId);
    if (!mirrored.thorough && (await client.count(name, signal)) === vectors) continue;
    await markDifferences(client, mirrored, version, signal);
    await copyChanges(client, mirrored, version, signal);
  }
}

/** What the database holds now is what is copied, so a change that is copied twice does no harm. */
async function copyChanges(client: QdrantClient, mirrored: Mirrored, { versionId }: EmbeddingVersion, signal: AbortSignal): Promise<void> {
  const name = nameOf(mirrored, versionId);
  for (;;) {
    signal.throwIfAborted();
    const changes = await mirrored.outbox.pending(versionId, BATCH);
    if (changes.length === 0) return;
    const points = changes.flatMap(({ key, id, vector }) => (id !== undefined && vector ? [{ id: key, vector, payload: { id } }] : []));
    const kept = new Set(points.map(({ id }) => id));
    const gone = changes.map(({ key }) => key).filter((key) => !kept.has(key));
    if (points.length > 0) await client.upsert(name, points, signal);
    if (gone.length > 0) await client.remove(name, gone, signal);
    await mirrored.outbox.done(versionId, changes);
  }
}

/** Keys that only one side has are written down as changed; copying them then brings in the missing and removes the orphans. */
async function markDifferences(
  client: QdrantClient,
  mirrored: Mirrored,
  { versionId }: EmbeddingVersion,
  signal: AbortSignal,
): Promise<void> {
  const truth = pages((after) => mirrored.outbox.keys(versionId, after, PAGE));
  const copied = points(client, nameOf(mirrored, versionId), signal);
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
      await mirrored.outbox.mark(versionId, differing);
      differing = [];
    }
  }
  await mirrored.outbox.mark(versionId, differing);
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

import type { EmbeddingStore, EmbeddingVersion } from "../../ports/embedding-store.ts";
import type { VectorOutbox } from "../../ports/vector-outbox.ts";
import type { QdrantClient, TenantPoints } from "./client.ts";
import type { Collections } from "./collections.ts";
import { copyChanges, type RefusedChanges } from "./copy-changes.ts";
import { statusOf } from "./request.ts";
import { COLLECTION_PREFIX, tenantBase, tenantName } from "./tenant.ts";

/**
 * How thoroughly a pass compares both sides after it copied the changes: not at all if the tenant is marked as copied, by the number of
 * points, or by copying every point again, because a vector may differ under the same key.
 */
export const COMPARISONS = ["none", "count", "points"] as const;
export type Comparison = (typeof COMPARISONS)[number];

/** One collection of one project, which is copied to Qdrant. */
export interface Mirrored {
  readonly projectPath: string;
  readonly collection: string;
  readonly embeddings: EmbeddingStore;
  readonly outbox: VectorOutbox;
}

/** A Qdrant server, and what this process knows of its collections. */
export interface QdrantServer {
  readonly client: QdrantClient;
  readonly collections: Collections;
  readonly refused: RefusedChanges;
}

/** A tenant in the collection of its model. */
interface Target extends TenantPoints {
  readonly version: EmbeddingVersion;
  readonly outbox: VectorOutbox;
}

const PAGE = 1_000;

/** Returns the names of the tenants of all versions, also of deleted ones whose points were not deleted yet. */
export async function tenantsOf(mirrored: Mirrored): Promise<string[]> {
  const { embeddings, outbox } = mirrored;
  const base = await findBase(mirrored);
  if (base === undefined) return [];
  const existing = (await embeddings.versions()).map(({ versionId }) => versionId);
  return [...existing, ...(await outbox.deletedVersions())].map((versionId) => tenantName(base, versionId));
}

/** Returns the common part of the tenants' names; undefined if there are no versions. Only a collection with versions is written to. */
async function findBase({ projectPath, collection, embeddings, outbox }: Mirrored): Promise<string | undefined> {
  if ((await embeddings.versions()).length === 0 && (await outbox.deletedVersions()).length === 0) return undefined;
  return tenantBase(projectPath, await outbox.enable(), collection);
}

/**
 * Synchronises Qdrant with the database: deletes points of deleted versions, creates missing collections, copies pending changes and
 * compares both sides as requested. An interrupted pass is completed by the next one.
 */
export async function sync(server: QdrantServer, mirrored: Mirrored, comparison: Comparison, signal: AbortSignal): Promise<void> {
  const { embeddings, outbox } = mirrored;
  const base = await findBase(mirrored);
  if (base === undefined) return;
  const deleted = await outbox.deletedVersions();
  if (deleted.length > 0) {
    await removeTenants(
      server,
      deleted.map((versionId) => tenantName(base, versionId)),
      signal,
    );
    await outbox.forgetVersions(deleted);
  }
  for (const version of await embeddings.versions()) {
    const collection = await server.collections.ensure(version, signal);
    try {
      const target = { collection, tenant: tenantName(base, version.versionId), version, outbox };
      await syncVersion(server, target, embeddings, comparison, signal);
    } catch (error) {
      if (statusOf(error) === 404) server.collections.forget(collection);
      throw error;
    }
  }
}

/** Deletes the points of tenants in the collections of all models. */
export async function removeTenants({ client }: QdrantServer, tenants: readonly string[], signal: AbortSignal): Promise<void> {
  for (const collection of await client.collections(signal))
    if (collection.startsWith(COLLECTION_PREFIX)) for (const tenant of tenants) await client.removeTenant({ collection, tenant }, signal);
}

async function syncVersion(
  { client, refused }: QdrantServer,
  target: Target,
  embeddings: EmbeddingStore,
  comparison: Comparison,
  signal: AbortSignal,
): Promise<void> {
  const { version } = target;
  if (comparison !== "none") refused.clear();
  const changes = await copyChanges(client, target, refused, signal);
  if (changes === 0 && comparison === "none") return;
  // Read after the changes were copied: if the collection was created again meanwhile, earlier points are missing.
  const marked = await client.isMarked(target, signal);
  if (marked && comparison === "none") return;
  const { vectors, partVectors } = await embeddings.counts(version.versionId);
  if (comparison === "points" || (await client.count(target, signal)) !== vectors + partVectors) {
    await markDifferences(client, target, comparison === "points", signal);
    await copyChanges(client, target, refused, signal);
  }
  if (!marked) await client.mark(target, version.dimension, signal);
}

/** Records keys that only one side has as changed, or all; copying them adds missing points and removes orphans. */
async function markDifferences(client: QdrantClient, target: Target, all: boolean, signal: AbortSignal): Promise<void> {
  const { outbox } = target;
  const { versionId } = target.version;
  const truth = pages((after) => outbox.keys(versionId, after, PAGE));
  const copied = points(client, target, signal);
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
      if (all) differing.push(left.value);
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

async function* points(client: QdrantClient, target: TenantPoints, signal: AbortSignal): AsyncGenerator<number, undefined> {
  for (let from: number | undefined; ; ) {
    const { keys, next } = await client.scroll(target, from, PAGE, signal);
    yield* keys;
    if (next === undefined) return undefined;
    from = next;
  }
}

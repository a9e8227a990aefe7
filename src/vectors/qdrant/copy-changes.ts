import type { EmbeddingVersion } from "../../ports/embedding-store.ts";
import type { VectorChange, VectorOutbox } from "../../ports/vector-outbox.ts";
import type { QdrantClient, QdrantPoint, TenantPoints } from "./client.ts";
import { failure, statusOf } from "./request.ts";

interface Target extends TenantPoints {
  readonly version: EmbeddingVersion;
  readonly outbox: VectorOutbox;
}

const BATCH = 256;

/** Points that Qdrant refuses in one pass, above which the pass fails: then the request is wrong, not a vector. */
const REFUSED_MAX = 100;

/** Changes that Qdrant refused, which are not sent again until they change or both sides are compared. */
export type RefusedChanges = Set<string>;

/** Statuses of a request that Qdrant cannot accept because of its content. */
const REFUSALS: readonly number[] = [400, 413, 422];

/**
 * Copies the current vectors of the database, so copying a change twice is harmless. Returns the number of changes. A point that Qdrant
 * refuses stays in the outbox, where searches find it, and does not stop the others.
 */
export async function copyChanges(client: QdrantClient, target: Target, refused: RefusedChanges, signal: AbortSignal): Promise<number> {
  const { outbox, version, tenant } = target;
  const nameOf = ({ key, change }: VectorChange) => `${tenant} ${key} ${change}`;
  let count = 0;
  let newlyRefused = 0;
  for (let after = 0; ; ) {
    signal.throwIfAborted();
    const pending = await outbox.pending(version.versionId, BATCH, after);
    if (pending.length === 0) return count;
    after = pending.at(-1)!.change;
    const changes = pending.filter((change) => !refused.has(nameOf(change)));
    count += changes.length;
    const points = changes.flatMap(({ key, id, vector }) => (id !== undefined && vector ? [{ key, vector, id }] : []));
    const bad = await upsertEach(client, target, points, signal);
    for (const change of changes) if (bad.has(change.key)) refused.add(nameOf(change));
    newlyRefused += bad.size;
    if (newlyRefused > REFUSED_MAX) throw failure("tenant", `Qdrant refused more than ${REFUSED_MAX} points.`);
    await removeAbsent(client, target, changes, points, signal);
    const copied = changes.filter(({ key }) => !bad.has(key));
    if (copied.length > 0) await outbox.done(version.versionId, copied);
  }
}

/** Removes the points of changes without a vector. */
async function removeAbsent(
  client: QdrantClient,
  target: Target,
  changes: readonly VectorChange[],
  points: readonly QdrantPoint[],
  signal: AbortSignal,
): Promise<void> {
  const present = new Set(points.map(({ key }) => key));
  const gone = changes.map(({ key }) => key).filter((key) => !present.has(key));
  if (gone.length > 0) await client.remove(target, gone, signal);
}

/** Upserts points and returns the keys of the points that Qdrant refuses. It refuses a whole request, so halves of it are repeated. */
async function upsertEach(
  client: QdrantClient,
  target: TenantPoints,
  points: readonly QdrantPoint[],
  signal: AbortSignal,
): Promise<ReadonlySet<number>> {
  if (points.length === 0) return new Set();
  try {
    await client.upsert(target, points, signal);
    return new Set();
  } catch (error) {
    if (!REFUSALS.includes(statusOf(error) ?? 0)) throw error;
    if (points.length === 1) return new Set([points[0]!.key]);
    const middle = Math.ceil(points.length / 2);
    const first = await upsertEach(client, target, points.slice(0, middle), signal);
    return new Set([...first, ...(await upsertEach(client, target, points.slice(middle), signal))]);
  }
}

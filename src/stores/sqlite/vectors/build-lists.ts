import type { SqliteDatabase, SqliteTx } from "../driver/driver.ts";
import { SEGMENT_BYTES, type Segment, SegmentBuilder, segmentCapacity } from "./codes.ts";
import { encode, readCollection, readVector, strideOf, type VectorCollection, writeDelta } from "./collection.ts";
import { type Assigner, assigner, randomNumbers, type Sample, train } from "./kmeans.ts";
import { CENTROIDS, directory, readSegment, readSegmentKeys, type SegmentRef, writeSegment } from "./segments.ts";
import type { View } from "./view.ts";

/** Vectors outside the IVF lists that are tolerated; every search scans all of them. */
const UNLISTED_MIN = 8_192;
const UNLISTED_SHARE = 0.03;
const SAMPLE_PER_LIST = 48;
const LISTS_MAX = 4_096;
/** Bytes in memory per group of lists, or an eighth of a large collection: every group reads all segments. */
const GROUP_BYTES = 16 * 1024 * 1024;
const GROUP_SHARE = 1 / 8;
const SEGMENTS_PER_TRANSACTION = 32;
/** Milliseconds that one process may build lists without renewing its lease; then another process may take over. */
const LEASE_MS = 60_000;
/** Keys that may change during a build; with more, the build is abandoned. */
const MOVED_MAX = 8_192;

/** Returns whether the IVF lists of this collection should be built. */
export function needsLists(view: View, listsAbove: number): boolean {
  if (view.codeCount < listsAbove) return false;
  if (view.unlistedCount > Math.max(UNLISTED_MIN, view.codeCount * UNLISTED_SHARE)) return true;
  // Deletes leave sparse segments.
  const segments = view.unlisted.length + [...view.lists.values()].flat().length;
  return segments > view.lists.size + 2 * Math.ceil(view.codeCount / segmentCapacity(view.dimension));
}

/**
 * Builds the IVF lists of a collection. Trains centroids first if there are none or too few. Writers and searches continue
 * meanwhile: the new segments are hidden until one transaction replaces the old ones.
 * Returns false if another process builds them or too many keys changed.
 */
export async function buildLists(database: SqliteDatabase, collection: VectorCollection, pause: () => Promise<void>): Promise<boolean> {
  if (!(await takeLease(database, collection.id))) return false;
  try {
    return await buildLeased(database, collection, pause);
  } finally {
    await database.write((tx) => {
      dropHidden(tx, collection.id);
      tx.run("UPDATE vector_collections SET building_until = 0 WHERE id = ?", collection.id);
    });
    await dropOrphans(database, pause);
  }
}

async function buildLeased(database: SqliteDatabase, collection: VectorCollection, pause: () => Promise<void>): Promise<boolean> {
  const { dimension } = collection;
  const capacity = segmentCapacity(dimension);
  const segments = database.read((tx) => directory(tx, collection.id));
  const oldCentroids = segments.filter(({ list }) => list === CENTROIDS);
  const codeSegments = segments.filter(({ list }) => list !== CENTROIDS);
  const total = codeSegments.reduce((sum, { count }) => sum + count, 0);
  const oldLists = oldCentroids.reduce((sum, { count }) => sum + count, 0);
  const wanted = Math.max(2, Math.min(LISTS_MAX, Math.round(Math.sqrt(total))));
  const retrain = oldLists === 0 || wanted > 2 * oldLists;
  const lists = retrain ? wanted : oldLists;

  const nearest = assigner(dimension, lists);
  if (retrain)
    await train(nearest, await takeSample(database, codeSegments, dimension, lists * SAMPLE_PER_LIST, pause), dimension, lists, pause);
  else nearest.use(database.read((tx) => centroidVectors(tx, oldCentroids, dimension)));

  // The last, sparse segment outside the lists stays, because writers fill it. Full segments of a list stay too.
  const converted = codeSegments.filter(({ list, count }) => (list === null ? count >= capacity / 2 : retrain || count < capacity));
  const members = await assignLists(database, collection, converted, retrain, nearest, pause);
  await renewLease(database, collection.id);
  const hidden = await writeLists(database, collection, members, lists, pause);
  return database.write((tx) => {
    const centroids = retrain ? nearest : undefined;
    return switchOver(tx, collection, { members, hidden, centroids, oldCentroids: retrain ? oldCentroids : [] });
  });
}

/** A segment to be converted, with the list of each of its codes. */
interface Members {
  readonly segment: SegmentRef;
  readonly keys: Int32Array;
  readonly lists: Int32Array;
}

async function assignLists(
  database: SqliteDatabase,
  { dimension }: VectorCollection,
  segments: readonly SegmentRef[],
  retrain: boolean,
  nearest: Assigner,
  pause: () => Promise<void>,
): Promise<Members[]> {
  const stride = strideOf(dimension);
  const members: Members[] = [];
  for (const segment of segments) {
    const body = readIfThere(database, segment, dimension);
    if (!body) continue; // replaced meanwhile: its codes are in another segment, which is not converted
    const keys = body.keys.slice();
    const lists = new Int32Array(segment.count);
    if (!retrain && segment.list !== null) lists.fill(segment.list);
    else {
      const codes = body.codes.slice();
      for (let from = 0; from < segment.count; from += 128) {
        const count = Math.min(128, segment.count - from);
        lists.set(nearest.nearest(codes.subarray(from * stride), count), from);
        await pause();
      }
    }
    members.push({ segment, keys, lists });
  }
  return members;
}

/** Writes the hidden segments of all lists, a group of lists at a time so that memory stays bounded. Returns their ids. */
async function writeLists(
  database: SqliteDatabase,
  collection: VectorCollection,
  members: readonly Members[],
  lists: number,
  pause: () => Promise<void>,
): Promise<number[]> {
  const { dimension } = collection;
  const stride = strideOf(dimension);
  const sizes = new Int32Array(lists);
  for (const { lists: assigned } of members) for (const list of assigned) sizes[list]!++;
  // Memory is allocated for whole segments.
  const roomFor = (list: number) => Math.max(SEGMENT_BYTES, sizes[list]! * stride);
  const groupBytes = Math.max(GROUP_BYTES, sizes.reduce((sum, size) => sum + size, 0) * stride * GROUP_SHARE);
  const ids: number[] = [];
  let ready: { list: number; segment: Segment }[] = [];
  const store = async () => {
    const batch = ready;
    ready = [];
    const written = await database.write((tx) =>
      batch.map(({ list, segment }) => writeSegment(tx, { collection: collection.id, dimension, list, ready: false }, segment)),
    );
    ids.push(...written);
    await renewLease(database, collection.id);
    await pause();
  };

  for (let first = 0; first < lists; ) {
    let end = first;
    for (let bytes = 0; end < lists && bytes < groupBytes; end++) bytes += roomFor(end);
    const builders = new Map<number, SegmentBuilder>();
    for (const { segment, lists: assigned } of members) {
      if (!assigned.some((list) => list >= first && list < end)) continue;
      const body = readIfThere(database, segment, dimension);
      if (!body) continue; // switchOver notices
      for (let i = 0; i < segment.count; i++) {
        const list = assigned[i]!;
        if (list < first || list >= end) continue;
        const builder = builders.get(list) ?? new SegmentBuilder(dimension);
        builders.set(list, builder);
        builder.add(body.keys[i]!, body.scales[i]!, body.codes.subarray(i * stride, (i + 1) * stride));
        if (builder.full) ready.push({ list, segment: copy(builder.take()) });
      }
      if (ready.length >= SEGMENTS_PER_TRANSACTION) await store();
      else await pause();
    }
    for (const [list, builder] of builders) {
      if (builder.count > 0) ready.push({ list, segment: builder.take() });
      if (ready.length >= SEGMENTS_PER_TRANSACTION) await store();
    }
    await store();
    first = end;
  }
  return ids;
}

interface SwitchOver {
  readonly members: readonly Members[];
  readonly hidden: readonly number[];
  readonly centroids: Assigner | undefined;
  readonly oldCentroids: readonly SegmentRef[];
}

/** Replaces the old segments by the new ones in the caller's transaction. Keys that changed meanwhile become delta rows. */
function switchOver(tx: SqliteTx, collection: VectorCollection, { members, hidden, centroids, oldCentroids }: SwitchOver): boolean {
  const now = readCollection(tx, collection.id);
  if (!now) return false; // dropped
  const stillHidden = tx.all<{ id: number }>("SELECT id FROM vector_segments WHERE collection_id = ? AND ready = 0", collection.id);
  if (stillHidden.length !== hidden.length || !stillHidden.every(({ id }) => hidden.includes(id))) return false; // the lease was lost
  const present = new Set(directory(tx, collection.id).map(({ id }) => id));
  if (!oldCentroids.every(({ id }) => present.has(id))) return false; // rebuilt, or built by another process
  const moved = new Set(members.filter(({ segment }) => !present.has(segment.id)).flatMap(({ keys }) => [...keys]));
  if (moved.size > MOVED_MAX) return false;

  const old = [...members.map(({ segment }) => segment.id), ...oldCentroids.map(({ id }) => id)];
  for (const id of old) tx.run("DELETE FROM vector_segments WHERE id = ?", id); // the bodies are deleted later, a few at a time
  tx.run("UPDATE vector_segments SET ready = 1 WHERE collection_id = ? AND ready = 0", collection.id);
  const { dimension } = collection;
  if (centroids)
    for (const segment of split(centroids.segment(), dimension))
      writeSegment(tx, { collection: collection.id, dimension, list: CENTROIDS }, segment);
  if (moved.size > 0) overrideMoved(tx, now, moved);
  tx.run("UPDATE vector_collections SET change = change + 1, layout = layout + 1 WHERE id = ?", collection.id);
  return true;
}

/** A key that changed has a stale code in the new segments: a delta row overrides all its codes with the current one. */
function overrideMoved(tx: SqliteTx, collection: VectorCollection, moved: ReadonlySet<number>): void {
  const stale = new Map<number, number>();
  for (const segment of directory(tx, collection.id)) {
    if (segment.list === CENTROIDS) continue;
    for (const key of readSegmentKeys(tx, segment)) if (moved.has(key)) stale.set(key, (stale.get(key) ?? 0) + 1);
  }
  for (const key of moved) {
    const row = tx.get<{ vector: Uint8Array }>("SELECT vector FROM vectors WHERE collection_id = ? AND key = ?", collection.id, key);
    const vector = row && readVector(row.vector, collection.dimension);
    const code = vector ? encode(vector) : null;
    writeDelta(tx, collection.id, collection.change + 1, key, { code, stale: stale.get(key) ?? 0 }, true);
  }
}

async function takeSample(
  database: SqliteDatabase,
  segments: readonly SegmentRef[],
  dimension: number,
  wanted: number,
  pause: () => Promise<void>,
): Promise<Sample> {
  const stride = strideOf(dimension);
  const total = segments.reduce((sum, { count }) => sum + count, 0);
  const scales = new Float32Array(Math.min(wanted, total));
  const codes = new Int8Array(scales.length * stride);
  const random = randomNumbers();
  let count = 0;
  let seen = 0;
  for (const segment of segments) {
    const body = readIfThere(database, segment, dimension);
    for (let i = 0; i < segment.count; i++, seen++) {
      // Each remaining code is chosen with the probability that fills the sample exactly.
      if (!body || random() >= (scales.length - count) / (total - seen)) continue;
      scales[count] = body.scales[i]!;
      codes.set(body.codes.subarray(i * stride, (i + 1) * stride), count * stride);
      count++;
    }
    await pause();
  }
  return { count, scales, codes };
}

/** Returns the segment, valid until the next read, or undefined if it was replaced meanwhile. */
function readIfThere(database: SqliteDatabase, segment: SegmentRef, dimension: number): Segment | undefined {
  return database.read((tx) =>
    tx.get("SELECT 1 FROM vector_segments WHERE id = ?", segment.id) ? readSegment(tx, segment, dimension) : undefined,
  );
}

function centroidVectors(tx: SqliteTx, segments: readonly SegmentRef[], dimension: number): Float32Array {
  const stride = strideOf(dimension);
  const vectors = new Float32Array(segments.reduce((sum, { count }) => sum + count, 0) * dimension);
  for (const segment of segments) {
    const { keys, scales, codes } = readSegment(tx, segment, dimension);
    for (const [i, list] of keys.entries())
      for (let d = 0; d < dimension; d++) vectors[list * dimension + d] = scales[i]! * codes[i * stride + d]!;
  }
  return vectors;
}

function split({ count, keys, scales, codes }: Segment, dimension: number): Segment[] {
  const capacity = segmentCapacity(dimension);
  const stride = strideOf(dimension);
  return Array.from({ length: Math.ceil(count / capacity) }, (_, part) => {
    const [from, to] = [part * capacity, Math.min(count, (part + 1) * capacity)];
    return {
      count: to - from,
      keys: keys.slice(from, to),
      scales: scales.slice(from, to),
      codes: codes.slice(from * stride, to * stride),
    };
  });
}

function copy({ count, keys, scales, codes }: Segment): Segment {
  return { count, keys: keys.slice(), scales: scales.slice(), codes: codes.slice() };
}

function takeLease(database: SqliteDatabase, collectionId: number): Promise<boolean> {
  return database.write((tx) => {
    const now = Date.now();
    const sql = "UPDATE vector_collections SET building_until = ? WHERE id = ? AND building_until < ?";
    if (tx.run(sql, now + LEASE_MS, collectionId, now).changes === 0) return false;
    dropHidden(tx, collectionId);
    return true;
  });
}

async function renewLease(database: SqliteDatabase, collectionId: number): Promise<void> {
  await database.write((tx) =>
    tx.run("UPDATE vector_collections SET building_until = ? WHERE id = ?", Date.now() + LEASE_MS, collectionId),
  );
}

/** Removes the hidden segments of an unfinished build. */
function dropHidden(tx: SqliteTx, collectionId: number): void {
  tx.run("DELETE FROM vector_segments WHERE collection_id = ? AND ready = 0", collectionId);
}

/** Deletes the bodies of removed segments, a few at a time so that writers do not wait. */
async function dropOrphans(database: SqliteDatabase, pause: () => Promise<void>): Promise<void> {
  const sql = `DELETE FROM vector_segment_bodies WHERE id IN (
    SELECT body.id FROM vector_segment_bodies AS body LEFT JOIN vector_segments AS segment ON segment.id = body.id
    WHERE segment.id IS NULL LIMIT ${SEGMENTS_PER_TRANSACTION})`;
  while ((await database.write((tx) => tx.run(sql).changes)) > 0) await pause();
}

import type { SqliteTx } from "../driver/driver.ts";
import { type Code, SegmentBuilder, segmentCapacity } from "./codes.ts";
import {
  CENTROIDS,
  DamagedCodes,
  deleteSegments,
  directory,
  readSegment,
  readSegmentKeys,
  type SegmentRef,
  writeSegment,
} from "./segments.ts";
import type { VectorCollection } from "./writer.ts";

/** The change of a key in this transaction. */
export interface Change {
  /** Its new code, or null when it was removed. */
  readonly code: Code | null;
  /** Whether it had a vector before. */
  readonly existed: boolean;
}

/** New codes in the delta before a compaction: a save costs one small row, and a search reads all of them in 0.3 ms. */
const FRESH_MAX = 512;
/** Overridden codes before a compaction: several of them should fall into each segment that is rewritten. */
const OVERRIDDEN_MAX = 512;
const OVERRIDDEN_SHARE = 1 / 64;
/** Segments rewritten per transaction (8 MB), or one per eight changes if that is more: writes block the caller's thread. */
const REWRITE_MAX = 64;
const REWRITE_PER_CHANGE = 1 / 8;

/**
 * Records the changes of a transaction in the codes: as delta rows, or in segments when the delta is full. With `erase`, no code of a removed or
 * replaced key stays in a segment, because a code reveals the topic of the deleted text.
 */
export function recordChanges(
  tx: SqliteTx,
  collection: VectorCollection,
  changes: ReadonlyMap<number, Change>,
  { erase = false } = {},
): void {
  if (changes.size === 0) return;
  const change = collection.change + 1;
  // Every change counts as a new delta row; a key that changes twice only compacts slightly early.
  const waiting = countDelta(tx, collection.id);
  for (const { existed } of changes.values()) existed ? waiting.overridden++ : waiting.fresh++;
  const overriddenMax =
    waiting.overridden <= OVERRIDDEN_MAX ? OVERRIDDEN_MAX : Math.max(OVERRIDDEN_MAX, codeCount(tx, collection.id) * OVERRIDDEN_SHARE);
  const rewrite = waiting.overridden > overriddenMax;
  const erasing = erase && anyInSegments(tx, collection.id, changes);
  const full = rewrite || erasing || waiting.fresh > FRESH_MAX;
  const limits = erasing
    ? { keep: 0, rewriteMax: Number.POSITIVE_INFINITY }
    : rewrite
      ? { keep: overriddenMax / 2, rewriteMax: Math.max(REWRITE_MAX, changes.size * REWRITE_PER_CHANGE) }
      : { keep: Number.POSITIVE_INFINITY, rewriteMax: 0 };
  if (full) compact(tx, collection, changes, limits);
  else for (const [key, { code, existed }] of changes) writeDelta(tx, collection.id, change, key, { code, stale: existed ? 1 : 0 });
  tx.run("UPDATE vector_collections SET change = ?, layout = layout + ? WHERE id = ?", change, full ? 1 : 0, collection.id);
}

/** Returns whether a segment may contain the old code of one of these keys. */
function anyInSegments(tx: SqliteTx, collectionId: number, changes: ReadonlyMap<number, Change>): boolean {
  for (const [key, { existed }] of changes) {
    if (!existed) continue;
    const delta = tx.get<{ stale: number }>("SELECT stale FROM vector_delta WHERE collection_id = ? AND key = ?", collectionId, key);
    if (delta?.stale !== 0) return true;
  }
  return false;
}

interface CompactLimits {
  readonly keep: number;
  readonly rewriteMax: number;
}

/**
 * Moves delta rows and the given changes into segments. New codes are cheap: they fill the last segment. An overridden code costs a
 * rewrite of its segment. The segments with the most overridden codes are rewritten first, until at most `keep` overridden codes
 * remain or `rewriteMax` segments were rewritten.
 */
function compact(tx: SqliteTx, collection: VectorCollection, changes: ReadonlyMap<number, Change>, limits: CompactLimits): void {
  const delta = readDelta(tx, collection.id);
  const pending = mergePending(delta, changes);
  const segments = directory(tx, collection.id).filter(({ list }) => list !== CENTROIDS);
  const half = segmentCapacity(collection.dimension) / 2;

  const rewrite = new Set(segmentsToRewrite(tx, segments, pending, limits));
  for (const segment of segments) if (segment.list === null && segment.count < half) rewrite.add(segment);

  const loose = segmentWriter(tx, collection);
  for (const segment of rewrite) {
    const { count, keys, scales, codes } = readSegment(tx, segment, collection.dimension);
    const stride = codes.length / count;
    const survivors: number[] = [];
    for (let i = 0; i < count; i++) {
      const entry = pending.get(keys[i]!);
      if (!entry || entry.stale === 0) survivors.push(i);
      else {
        entry.stale--;
        entry.dirty = true;
      }
    }
    // The codes of a segment that is less than half full join the loose codes, so that at most half of the space is unused.
    const into = segment.list === null && survivors.length < half ? loose : segmentWriter(tx, collection, segment.list);
    // Copied first: writing a segment uses the memory that this one was read into.
    const kept = survivors.map((i) => ({ key: keys[i]!, scale: scales[i]!, code: codes.slice(i * stride, (i + 1) * stride) }));
    for (const { key, scale, code } of kept) into.add(key, scale, code);
    if (into !== loose) into.flush();
  }
  deleteSegments(
    tx,
    [...rewrite].map(({ id }) => id),
  );

  const change = collection.change + 1;
  for (const [key, { code, stale, dirty }] of pending) {
    if (stale > 0) {
      if (dirty) writeDelta(tx, collection.id, change, key, { code, stale }, true);
      continue;
    }
    if (code) loose.add(key, code.scale, code.code);
    if (delta.has(key)) tx.run("DELETE FROM vector_delta WHERE collection_id = ? AND key = ?", collection.id, key);
  }
  loose.flush();
}

/** `dirty`: differs from the stored row. */
type Pending = Map<number, { code: Code | null; stale: number; dirty: boolean }>;

function mergePending(delta: ReadonlyMap<number, DeltaRow>, changes: ReadonlyMap<number, Change>): Pending {
  const pending: Pending = new Map();
  for (const [key, row] of delta) pending.set(key, { ...row, dirty: false });
  for (const [key, { code, existed }] of changes) {
    const stale = pending.get(key)?.stale ?? (existed ? 1 : 0);
    pending.set(key, { code, stale, dirty: true });
  }
  return pending;
}

function segmentsToRewrite(
  tx: SqliteTx,
  segments: readonly SegmentRef[],
  pending: Pending,
  { keep, rewriteMax }: CompactLimits,
): SegmentRef[] {
  let overridden = 0;
  for (const { stale } of pending.values()) overridden += stale;
  if (overridden <= keep) return [];
  const hits = segments.map((segment) => {
    let count = 0;
    for (const key of readSegmentKeys(tx, segment)) if ((pending.get(key)?.stale ?? 0) > 0) count++;
    return { segment, count };
  });
  const found = hits.reduce((sum, { count }) => sum + count, 0);
  if (found !== overridden) throw new DamagedCodes(`${overridden} codes should be overridden, but the segments hold ${found} of them.`);

  const chosen: SegmentRef[] = [];
  for (const { segment, count } of hits.sort((a, b) => b.count - a.count)) {
    if (overridden <= keep || chosen.length >= rewriteMax) break;
    chosen.push(segment);
    overridden -= count;
  }
  return chosen;
}

/** Collects codes and writes them as full segments. */
export function segmentWriter(tx: SqliteTx, collection: Pick<VectorCollection, "id" | "dimension">, list: number | null = null) {
  const builder = new SegmentBuilder(collection.dimension);
  const flush = () => {
    if (builder.count > 0) writeSegment(tx, { collection: collection.id, dimension: collection.dimension, list }, builder.take());
  };
  return {
    add(key: number, scale: number, code: Int8Array): void {
      builder.add(key, scale, code);
      if (builder.full) flush();
    },
    flush,
  };
}

/** Counts the codes in segments. */
function codeCount(tx: SqliteTx, collectionId: number): number {
  const row = tx.get<{ count: number | null }>(
    "SELECT sum(count) AS count FROM vector_segments WHERE collection_id = ? AND ready = 1 AND list IS NOT ?",
    collectionId,
    CENTROIDS,
  );
  return row?.count ?? 0;
}

/** The newest code of a key, or null if the key was removed, and the number of codes in segments that it overrides. */
export interface DeltaRow {
  readonly code: Code | null;
  readonly stale: number;
}

/** Returns the delta rows of a collection that changed after `change`, by key. */
export function readDelta(tx: SqliteTx, collectionId: number, change = -1): Map<number, DeltaRow> {
  const rows = tx.all<{ key: number; stale: number; scale: number | null; code: Uint8Array | null }>(
    "SELECT key, stale, scale, code FROM vector_delta WHERE collection_id = ? AND change > ?",
    collectionId,
    change,
  );
  return new Map(
    rows.map(({ key, stale, scale, code }) => [
      key,
      {
        stale,
        code: code && { scale: scale as number, code: new Int8Array(code.buffer as ArrayBuffer, code.byteOffset, code.byteLength) },
      },
    ]),
  );
}

/** Writes a delta row. An existing row keeps its number of overridden codes unless `force` is set. */
export function writeDelta(
  tx: SqliteTx,
  collectionId: number,
  change: number,
  key: number,
  { code, stale }: DeltaRow,
  force = false,
): void {
  tx.run(
    `INSERT INTO vector_delta (collection_id, key, change, stale, scale, code) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (collection_id, key) DO UPDATE SET change = excluded.change, scale = excluded.scale, code = excluded.code
     ${force ? ", stale = excluded.stale" : ""}`,
    collectionId,
    key,
    change,
    stale,
    code?.scale ?? null,
    code && new Uint8Array(code.code.buffer, code.code.byteOffset, code.code.byteLength),
  );
}

/** Counts the delta rows with only a new code, and the codes in segments that the others override. */
export function countDelta(tx: SqliteTx, collectionId: number): { fresh: number; overridden: number } {
  return tx.get<{ fresh: number; overridden: number }>(
    "SELECT count(*) FILTER (WHERE stale = 0) AS fresh, coalesce(sum(stale), 0) AS overridden FROM vector_delta WHERE collection_id = ?",
    collectionId,
  )!;
}

import type { SqliteTx } from "../driver/driver.ts";
import { SegmentBuilder, segmentCapacity } from "./codes.ts";
import { type Code, type DeltaRow, readDelta, type VectorCollection, writeDelta } from "./collection.ts";
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
import type { Change } from "./writer.ts";

/** How many overridden codes may stay, and how many segments may be rewritten to reach that. */
interface CompactLimits {
  readonly keep: number;
  readonly rewriteMax: number;
}

/**
 * Moves delta rows and the given changes into segments. New codes are cheap: they fill the last segment. An overridden code costs a
 * rewrite of its segment. The segments with the most overridden codes are rewritten first, until at most `keep` overridden codes
 * remain or `rewriteMax` segments were rewritten.
 */
export function compact(tx: SqliteTx, collection: VectorCollection, changes: ReadonlyMap<number, Change>, limits: CompactLimits): void {
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
export function codeCount(tx: SqliteTx, collectionId: number): number {
  const row = tx.get<{ count: number | null }>(
    "SELECT sum(count) AS count FROM vector_segments WHERE collection_id = ? AND ready = 1 AND list IS NOT ?",
    collectionId,
    CENTROIDS,
  );
  return row?.count ?? 0;
}

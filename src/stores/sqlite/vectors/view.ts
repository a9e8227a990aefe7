import type { SqliteTx } from "../driver/driver.ts";
import { type Code, type DeltaRow, readDelta, type VectorCollection } from "./collection.ts";
import { CENTROIDS, DamagedCodes, directory, type SegmentRef } from "./segments.ts";

/** The state of a collection that a process caches between searches. */
export interface View extends VectorCollection {
  /** Segments outside the IVF lists; every search scans them. */
  readonly unlisted: readonly SegmentRef[];
  readonly lists: ReadonlyMap<number, readonly SegmentRef[]>;
  readonly centroids: readonly SegmentRef[];
  readonly delta: Map<number, DeltaRow>;
  /** The codes of delta rows. */
  readonly live: readonly (readonly [key: number, code: Code])[];
  /** The keys whose codes in segments are overridden. */
  readonly overridden: Int32Array;
  /** Codes in segments, and the part of them outside the lists. */
  readonly codeCount: number;
  readonly unlistedCount: number;
}

/** Returns the view of this transaction; unchanged parts come from `before`. */
export function currentView(tx: SqliteTx, collection: VectorCollection, before: View | undefined): View {
  if (before && before.id === collection.id && before.layout === collection.layout) {
    if (before.change === collection.change) return before;
    for (const [key, row] of readDelta(tx, collection.id, before.change)) before.delta.set(key, row);
    return { ...before, ...collection, ...summary(before.delta) };
  }
  const unlisted: SegmentRef[] = [];
  const centroids: SegmentRef[] = [];
  const lists = new Map<number, SegmentRef[]>();
  for (const segment of directory(tx, collection.id)) {
    if (segment.list === null) unlisted.push(segment);
    else if (segment.list === CENTROIDS) centroids.push(segment);
    else {
      const list = lists.get(segment.list);
      if (list) list.push(segment);
      else lists.set(segment.list, [segment]);
    }
  }
  const unlistedCount = sum(unlisted);
  const codeCount = unlistedCount + sum([...lists.values()].flat());
  const delta = readDelta(tx, collection.id);
  const view = { ...collection, unlisted, lists, centroids, delta, ...summary(delta), codeCount, unlistedCount };
  if (!before) assertComplete(tx, view);
  return view;
}

function summary(delta: ReadonlyMap<number, DeltaRow>): Pick<View, "live" | "overridden"> {
  const rows = [...delta];
  return {
    live: rows.flatMap(([key, { code }]) => (code ? [[key, code] as const] : [])),
    overridden: Int32Array.from(rows.flatMap(([key, { stale }]) => (stale > 0 ? [key] : []))),
  };
}

/** Returns all segments with codes of vectors. */
export function allSegments(view: View): SegmentRef[] {
  return [...view.unlisted, ...[...view.lists.values()].flat()];
}

/** The count reveals a missing segment; the checksum reveals an altered one when it is read. */
function assertComplete(tx: SqliteTx, view: View): void {
  let coded = view.codeCount;
  for (const { code, stale } of view.delta.values()) coded += (code ? 1 : 0) - stale;
  const { count } = tx.get<{ count: number }>("SELECT count(*) AS count FROM vectors WHERE collection_id = ?", view.id)!;
  if (coded !== count) throw new DamagedCodes(`There are ${count} vectors but codes for ${coded}.`);
}

function sum(segments: readonly SegmentRef[]): number {
  return segments.reduce((total, { count }) => total + count, 0);
}

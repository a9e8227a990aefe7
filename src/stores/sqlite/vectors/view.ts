import type { SqliteTx } from "../driver/driver.ts";
import type { Code } from "./codes.ts";
import type { Space } from "./collections.ts";
import { type Recent, readRecent } from "./delta.ts";
import { CENTROIDS, DamagedCodes, directory, type PackRef } from "./segments.ts";

/** What a searching process remembers of a space between searches. */
export interface View extends Space {
  /** Packs that belong to no inverted list; every search scans them. */
  readonly unlisted: readonly PackRef[];
  readonly lists: ReadonlyMap<number, readonly PackRef[]>;
  readonly centroids: readonly PackRef[];
  readonly recent: Map<number, Recent>;
  /** The recent codes, in an order of their own. */
  readonly live: readonly (readonly [key: number, code: Code])[];
  /** The keys whose codes in packs do not count. */
  readonly overridden: Int32Array;
  /** Codes in packs, and how many of them are in no list. */
  readonly packedCount: number;
  readonly unlistedCount: number;
}

/** The view as it is in this transaction; `before` is used for whatever has not changed since. */
export function currentView(tx: SqliteTx, space: Space, before: View | undefined): View {
  if (before && before.id === space.id && before.layout === space.layout) {
    if (before.change === space.change) return before;
    for (const [key, row] of readRecent(tx, space.id, before.change)) before.recent.set(key, row);
    return { ...before, ...space, ...summary(before.recent) };
  }
  const unlisted: PackRef[] = [];
  const centroids: PackRef[] = [];
  const lists = new Map<number, PackRef[]>();
  for (const pack of directory(tx, space.id)) {
    if (pack.list === null) unlisted.push(pack);
    else if (pack.list === CENTROIDS) centroids.push(pack);
    else {
      const list = lists.get(pack.list);
      if (list) list.push(pack);
      else lists.set(pack.list, [pack]);
    }
  }
  const unlistedCount = sum(unlisted);
  const packedCount = unlistedCount + sum([...lists.values()].flat());
  const recent = readRecent(tx, space.id);
  const view = { ...space, unlisted, lists, centroids, recent, ...summary(recent), packedCount, unlistedCount };
  if (!before) assertComplete(tx, view);
  return view;
}

function summary(recent: ReadonlyMap<number, Recent>): Pick<View, "live" | "overridden"> {
  const rows = [...recent];
  return {
    live: rows.flatMap(([key, { code }]) => (code ? [[key, code] as const] : [])),
    overridden: Int32Array.from(rows.flatMap(([key, { packed }]) => (packed > 0 ? [key] : []))),
  };
}

/** All packs with codes of vectors. */
export function allPacks(view: View): PackRef[] {
  return [...view.unlisted, ...[...view.lists.values()].flat()];
}

/** A pack that vanished shows in the count; one that was altered shows when its checksum is read. */
function assertComplete(tx: SqliteTx, view: View): void {
  let coded = view.packedCount;
  for (const { code, packed } of view.recent.values()) coded += (code ? 1 : 0) - packed;
  const { count } = tx.get<{ count: number }>("SELECT count(*) AS count FROM vectors WHERE space = ?", view.id)!;
  if (coded !== count) throw new DamagedCodes(`There are ${count} vectors but codes for ${coded}.`);
}

function sum(packs: readonly PackRef[]): number {
  return packs.reduce((total, { count }) => total + count, 0);
}

import type { SqliteTx } from "../driver/driver.ts";
import { type Code, PackBuilder, packCapacity } from "./codes.ts";
import type { Space } from "./collections.ts";
import { countRecent, type Recent, readRecent, writeRecent } from "./delta.ts";
import { CENTROIDS, DamagedCodes, deletePacks, directory, type PackRef, readPack, readPackKeys, writePack } from "./segments.ts";

/** What happened to a key in this transaction. */
export interface Change {
  /** Its new code, or null when it was removed. */
  readonly code: Code | null;
  /** Whether it had a vector before. */
  readonly existed: boolean;
}

/** So few new codes may wait outside the packs: a save costs one small row, and a search reads them all again in 0.3 ms. */
const FRESH_MAX = 512;
/** So many codes in packs may be overridden. Scattered changes should find several of their kind in each pack that is rewritten. */
const OVERRIDDEN_MAX = 512;
const OVERRIDDEN_SHARE = 1 / 64;
/** One transaction rewrites at most this many packs (8 MB), or one for eight changes if that is more: writers block the caller's thread. */
const REWRITE_MAX = 64;
const REWRITE_PER_CHANGE = 1 / 8;

/**
 * Records the changes of a transaction in the codes: as recent rows, or in packs when enough have gathered. With `erase` no code of a key
 * that was removed or replaced stays in a pack, because a code tells what the deleted text was about.
 */
export function recordChanges(tx: SqliteTx, space: Space, changes: ReadonlyMap<number, Change>, { erase = false } = {}): void {
  if (changes.size === 0) return;
  const change = space.change + 1;
  // Counted as if every change brought one more of its kind; a key that changes twice only makes this a little early.
  const waiting = countRecent(tx, space.id);
  for (const { existed } of changes.values()) existed ? waiting.overridden++ : waiting.fresh++;
  const overriddenMax =
    waiting.overridden <= OVERRIDDEN_MAX ? OVERRIDDEN_MAX : Math.max(OVERRIDDEN_MAX, packedCount(tx, space.id) * OVERRIDDEN_SHARE);
  const rewrite = waiting.overridden > overriddenMax;
  const erasing = erase && anyPacked(tx, space.id, changes);
  const full = rewrite || erasing || waiting.fresh > FRESH_MAX;
  const limits = erasing
    ? { keep: 0, rewriteMax: Number.POSITIVE_INFINITY }
    : rewrite
      ? { keep: overriddenMax / 2, rewriteMax: Math.max(REWRITE_MAX, changes.size * REWRITE_PER_CHANGE) }
      : { keep: Number.POSITIVE_INFINITY, rewriteMax: 0 };
  if (full) fold(tx, space, changes, limits);
  else for (const [key, { code, existed }] of changes) writeRecent(tx, space.id, change, key, { code, packed: existed ? 1 : 0 });
  tx.run("UPDATE vector_spaces SET change = ?, layout = layout + ? WHERE id = ?", change, full ? 1 : 0, space.id);
}

/** Tells whether a pack may hold the old code of one of these keys. */
function anyPacked(tx: SqliteTx, space: number, changes: ReadonlyMap<number, Change>): boolean {
  for (const [key, { existed }] of changes) {
    if (!existed) continue;
    const recent = tx.get<{ packed: number }>("SELECT packed FROM vector_recent WHERE space = ? AND key = ?", space, key);
    if (recent?.packed !== 0) return true;
  }
  return false;
}

interface FoldLimits {
  readonly keep: number;
  readonly rewriteMax: number;
}

/**
 * Moves recent rows and the given changes into packs. New codes are cheap to move: they fill the last pack. One that
 * overrides a code costs rewriting the pack that holds it, so those packs go first that get rid of most, until at most
 * `keep` codes are overridden or `rewriteMax` packs were rewritten; the rest is for another time.
 */
function fold(tx: SqliteTx, space: Space, changes: ReadonlyMap<number, Change>, limits: FoldLimits): void {
  const recent = readRecent(tx, space.id);
  const pending = mergePending(recent, changes);
  const packs = directory(tx, space.id).filter(({ list }) => list !== CENTROIDS);
  const half = packCapacity(space.dimension) / 2;

  const rewrite = new Set(packsToRewrite(tx, packs, pending, limits));
  for (const pack of packs) if (pack.list === null && pack.count < half) rewrite.add(pack);

  const loose = packWriter(tx, space);
  for (const pack of rewrite) {
    const { count, keys, scales, codes } = readPack(tx, pack, space.dimension);
    const stride = codes.length / count;
    const survivors: number[] = [];
    for (let i = 0; i < count; i++) {
      const entry = pending.get(keys[i]!);
      if (!entry || entry.packed === 0) survivors.push(i);
      else {
        entry.packed--;
        entry.dirty = true;
      }
    }
    // A pack that has lost more than half joins the loose codes, so that space is never wasted by more than half.
    const into = pack.list === null && survivors.length < half ? loose : packWriter(tx, space, pack.list);
    // Copied first: writing a pack uses the memory that this one was read into.
    const kept = survivors.map((i) => ({ key: keys[i]!, scale: scales[i]!, code: codes.slice(i * stride, (i + 1) * stride) }));
    for (const { key, scale, code } of kept) into.add(key, scale, code);
    if (into !== loose) into.flush();
  }
  deletePacks(
    tx,
    [...rewrite].map(({ id }) => id),
  );

  const change = space.change + 1;
  for (const [key, { code, packed, dirty }] of pending) {
    if (packed > 0) {
      if (dirty) writeRecent(tx, space.id, change, key, { code, packed }, true);
      continue;
    }
    if (code) loose.add(key, code.scale, code.code);
    if (recent.has(key)) tx.run("DELETE FROM vector_recent WHERE space = ? AND key = ?", space.id, key);
  }
  loose.flush();
}

/** Dirty ones differ from their row. */
type Pending = Map<number, { code: Code | null; packed: number; dirty: boolean }>;

function mergePending(recent: ReadonlyMap<number, Recent>, changes: ReadonlyMap<number, Change>): Pending {
  const pending: Pending = new Map();
  for (const [key, row] of recent) pending.set(key, { ...row, dirty: false });
  for (const [key, { code, existed }] of changes) {
    const packed = pending.get(key)?.packed ?? (existed ? 1 : 0);
    pending.set(key, { code, packed, dirty: true });
  }
  return pending;
}

function packsToRewrite(tx: SqliteTx, packs: readonly PackRef[], pending: Pending, { keep, rewriteMax }: FoldLimits): PackRef[] {
  let overridden = 0;
  for (const { packed } of pending.values()) overridden += packed;
  if (overridden <= keep) return [];
  const hits = packs.map((pack) => {
    let count = 0;
    for (const key of readPackKeys(tx, pack)) if ((pending.get(key)?.packed ?? 0) > 0) count++;
    return { pack, count };
  });
  const found = hits.reduce((sum, { count }) => sum + count, 0);
  if (found !== overridden) throw new DamagedCodes(`${overridden} codes should be overridden, but the packs hold ${found} of them.`);

  const chosen: PackRef[] = [];
  for (const { pack, count } of hits.sort((a, b) => b.count - a.count)) {
    if (overridden <= keep || chosen.length >= rewriteMax) break;
    chosen.push(pack);
    overridden -= count;
  }
  return chosen;
}

/** Takes codes one by one and stores them in full packs. */
export function packWriter(tx: SqliteTx, space: Pick<Space, "id" | "dimension">, list: number | null = null) {
  const builder = new PackBuilder(space.dimension);
  const flush = () => {
    if (builder.count > 0) writePack(tx, { space: space.id, dimension: space.dimension, list }, builder.take());
  };
  return {
    add(key: number, scale: number, code: Int8Array): void {
      builder.add(key, scale, code);
      if (builder.full) flush();
    },
    flush,
  };
}

/** How many codes are in packs. */
function packedCount(tx: SqliteTx, space: number): number {
  const row = tx.get<{ count: number | null }>(
    "SELECT sum(count) AS count FROM vector_packs WHERE space = ? AND ready = 1 AND list IS NOT ?",
    space,
    CENTROIDS,
  );
  return row?.count ?? 0;
}

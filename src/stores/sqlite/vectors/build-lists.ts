import type { SqliteDatabase, SqliteTx } from "../driver/driver.ts";
import { encode, PACK_BYTES, type Pack, PackBuilder, packCapacity, strideOf } from "./codes.ts";
import { readSpace, type Space } from "./collections.ts";
import { writeRecent } from "./delta.ts";
import { type Assigner, assigner, randomNumbers, type Sample, train } from "./kmeans.ts";
import { toVector } from "./rebuild.ts";
import { CENTROIDS, directory, type PackRef, readPack, readPackKeys, writePack } from "./segments.ts";
import type { View } from "./view.ts";

/** How many vectors may be in no list: each search scans them all. */
const UNLISTED_MIN = 8_192;
const UNLISTED_SHARE = 0.03;
const SAMPLE_PER_LIST = 48;
const LISTS_MAX = 4_096;
/** Lists are written in groups: so much is held in memory for one, or in a large space an eighth of it, since each group reads all packs. */
const GROUP_BYTES = 16 * 1024 * 1024;
const GROUP_SHARE = 1 / 8;
const PACKS_PER_TRANSACTION = 32;
/** While one process arranges a space, others leave it alone; one that died is waited for no longer than this. */
const LEASE_MS = 60_000;
/** More keys than this changed underneath: start over another time. */
const MOVED_MAX = 8_192;

/** Whether it is time to sort the packs of this space into lists. */
export function needsArranging(view: View, listsAbove: number): boolean {
  if (view.packedCount < listsAbove) return false;
  if (view.unlistedCount > Math.max(UNLISTED_MIN, view.packedCount * UNLISTED_SHARE)) return true;
  // Deletes leave thin packs behind.
  const packs = view.unlisted.length + [...view.lists.values()].flat().length;
  return packs > view.lists.size + 2 * Math.ceil(view.packedCount / packCapacity(view.dimension));
}

/**
 * Sorts the packs of a space into inverted lists around centroids, training those first if there are none or too few.
 * Writers and searchers go on meanwhile: the new packs are hidden until one transaction puts them in place of the old.
 * False if another process is at it or too much changed underneath.
 */
export async function arrange(database: SqliteDatabase, space: Space, pause: () => Promise<void>): Promise<boolean> {
  if (!(await takeLease(database, space.id))) return false;
  try {
    return await arrangeLeased(database, space, pause);
  } finally {
    await database.write((tx) => {
      dropHidden(tx, space.id);
      tx.run("UPDATE vector_spaces SET arranging_until = 0 WHERE id = ?", space.id);
    });
    await dropOrphans(database, pause);
  }
}

async function arrangeLeased(database: SqliteDatabase, space: Space, pause: () => Promise<void>): Promise<boolean> {
  const { dimension } = space;
  const capacity = packCapacity(dimension);
  const packs = database.read((tx) => directory(tx, space.id));
  const oldCentroids = packs.filter(({ list }) => list === CENTROIDS);
  const codePacks = packs.filter(({ list }) => list !== CENTROIDS);
  const total = codePacks.reduce((sum, { count }) => sum + count, 0);
  const oldLists = oldCentroids.reduce((sum, { count }) => sum + count, 0);
  const wanted = Math.max(2, Math.min(LISTS_MAX, Math.round(Math.sqrt(total))));
  const retrain = oldLists === 0 || wanted > 2 * oldLists;
  const lists = retrain ? wanted : oldLists;

  const nearest = assigner(dimension, lists);
  if (retrain)
    await train(nearest, await takeSample(database, codePacks, dimension, lists * SAMPLE_PER_LIST, pause), dimension, lists, pause);
  else nearest.use(database.read((tx) => centroidVectors(tx, oldCentroids, dimension)));

  // The last, thin pack without list stays: it is the one that writers are filling. Full packs of a list stay too.
  const converted = codePacks.filter(({ list, count }) => (list === null ? count >= capacity / 2 : retrain || count < capacity));
  const members = await assignPacks(database, space, converted, retrain, nearest, pause);
  await renewLease(database, space.id);
  const hidden = await writeLists(database, space, members, lists, pause);
  return database.write((tx) => {
    const centroids = retrain ? nearest : undefined;
    return switchOver(tx, space, { members, hidden, centroids, oldCentroids: retrain ? oldCentroids : [] });
  });
}

/** A pack to be converted, with the list of each of its codes. */
interface Members {
  readonly pack: PackRef;
  readonly keys: Int32Array;
  readonly lists: Int32Array;
}

async function assignPacks(
  database: SqliteDatabase,
  { dimension }: Space,
  packs: readonly PackRef[],
  retrain: boolean,
  nearest: Assigner,
  pause: () => Promise<void>,
): Promise<Members[]> {
  const stride = strideOf(dimension);
  const members: Members[] = [];
  for (const pack of packs) {
    const body = readIfThere(database, pack, dimension);
    if (!body) continue; // replaced meanwhile: its codes are in another pack now, which stays as it is
    const keys = body.keys.slice();
    const lists = new Int32Array(pack.count);
    if (!retrain && pack.list !== null) lists.fill(pack.list);
    else {
      const codes = body.codes.slice();
      for (let from = 0; from < pack.count; from += 128) {
        const count = Math.min(128, pack.count - from);
        lists.set(nearest.nearest(codes.subarray(from * stride), count), from);
        await pause();
      }
    }
    members.push({ pack, keys, lists });
  }
  return members;
}

/** Writes the hidden packs of all lists, a group of lists at a time so that memory stays bounded. Gives their ids. */
async function writeLists(
  database: SqliteDatabase,
  space: Space,
  members: readonly Members[],
  lists: number,
  pause: () => Promise<void>,
): Promise<number[]> {
  const { dimension } = space;
  const stride = strideOf(dimension);
  const sizes = new Int32Array(lists);
  for (const { lists: assigned } of members) for (const list of assigned) sizes[list]!++;
  // Room is made for whole packs.
  const roomFor = (list: number) => Math.max(PACK_BYTES, sizes[list]! * stride);
  const groupBytes = Math.max(GROUP_BYTES, sizes.reduce((sum, size) => sum + size, 0) * stride * GROUP_SHARE);
  const ids: number[] = [];
  let ready: { list: number; pack: Pack }[] = [];
  const store = async () => {
    const batch = ready;
    ready = [];
    const written = await database.write((tx) =>
      batch.map(({ list, pack }) => writePack(tx, { space: space.id, dimension, list, ready: false }, pack)),
    );
    ids.push(...written);
    await renewLease(database, space.id);
    await pause();
  };

  for (let first = 0; first < lists; ) {
    let end = first;
    for (let bytes = 0; end < lists && bytes < groupBytes; end++) bytes += roomFor(end);
    const builders = new Map<number, PackBuilder>();
    for (const { pack, lists: assigned } of members) {
      if (!assigned.some((list) => list >= first && list < end)) continue;
      const body = readIfThere(database, pack, dimension);
      if (!body) continue; // switchOver notices
      for (let i = 0; i < pack.count; i++) {
        const list = assigned[i]!;
        if (list < first || list >= end) continue;
        const builder = builders.get(list) ?? new PackBuilder(dimension);
        builders.set(list, builder);
        builder.add(body.keys[i]!, body.scales[i]!, body.codes.subarray(i * stride, (i + 1) * stride));
        if (builder.full) ready.push({ list, pack: copy(builder.take()) });
      }
      if (ready.length >= PACKS_PER_TRANSACTION) await store();
      else await pause();
    }
    for (const [list, builder] of builders) {
      if (builder.count > 0) ready.push({ list, pack: builder.take() });
      if (ready.length >= PACKS_PER_TRANSACTION) await store();
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
  readonly oldCentroids: readonly PackRef[];
}

/** Puts the new packs in place of the old, in the caller's transaction. Keys that moved meanwhile become recent rows. */
function switchOver(tx: SqliteTx, space: Space, { members, hidden, centroids, oldCentroids }: SwitchOver): boolean {
  const now = readSpace(tx, space.id);
  if (!now) return false; // dropped
  const stillHidden = tx.all<{ id: number }>("SELECT id FROM vector_packs WHERE space = ? AND ready = 0", space.id);
  if (stillHidden.length !== hidden.length || !stillHidden.every(({ id }) => hidden.includes(id))) return false; // the lease was lost
  const present = new Set(directory(tx, space.id).map(({ id }) => id));
  if (!oldCentroids.every(({ id }) => present.has(id))) return false; // rebuilt, or arranged by another
  const moved = new Set(members.filter(({ pack }) => !present.has(pack.id)).flatMap(({ keys }) => [...keys]));
  if (moved.size > MOVED_MAX) return false;

  const old = [...members.map(({ pack }) => pack.id), ...oldCentroids.map(({ id }) => id)];
  for (const id of old) tx.run("DELETE FROM vector_packs WHERE id = ?", id); // the bodies go later, a few at a time
  tx.run("UPDATE vector_packs SET ready = 1 WHERE space = ? AND ready = 0", space.id);
  const { dimension } = space;
  if (centroids)
    for (const pack of split(centroids.pack(), dimension)) writePack(tx, { space: space.id, dimension, list: CENTROIDS }, pack);
  if (moved.size > 0) overrideMoved(tx, now, moved);
  tx.run("UPDATE vector_spaces SET change = change + 1, layout = layout + 1 WHERE id = ?", space.id);
  return true;
}

/** A moved key has a stale code in the new packs: a recent row overrides every code it has with what is true now. */
function overrideMoved(tx: SqliteTx, space: Space, moved: ReadonlySet<number>): void {
  const packed = new Map<number, number>();
  for (const pack of directory(tx, space.id)) {
    if (pack.list === CENTROIDS) continue;
    for (const key of readPackKeys(tx, pack)) if (moved.has(key)) packed.set(key, (packed.get(key) ?? 0) + 1);
  }
  for (const key of moved) {
    const row = tx.get<{ vector: Uint8Array }>("SELECT vector FROM vectors WHERE space = ? AND key = ?", space.id, key);
    const vector = row && toVector(row.vector, space.dimension);
    const code = vector ? encode(vector) : null;
    writeRecent(tx, space.id, space.change + 1, key, { code, packed: packed.get(key) ?? 0 }, true);
  }
}

async function takeSample(
  database: SqliteDatabase,
  packs: readonly PackRef[],
  dimension: number,
  wanted: number,
  pause: () => Promise<void>,
): Promise<Sample> {
  const stride = strideOf(dimension);
  const total = packs.reduce((sum, { count }) => sum + count, 0);
  const scales = new Float32Array(Math.min(wanted, total));
  const codes = new Int8Array(scales.length * stride);
  const random = randomNumbers();
  let count = 0;
  let seen = 0;
  for (const pack of packs) {
    const body = readIfThere(database, pack, dimension);
    for (let i = 0; i < pack.count; i++, seen++) {
      // Each of the rest is taken with the chance that fills the sample exactly.
      if (!body || random() >= (scales.length - count) / (total - seen)) continue;
      scales[count] = body.scales[i]!;
      codes.set(body.codes.subarray(i * stride, (i + 1) * stride), count * stride);
      count++;
    }
    await pause();
  }
  return { count, scales, codes };
}

/** The pack, or undefined if it was replaced meanwhile. Good until the next read. */
function readIfThere(database: SqliteDatabase, pack: PackRef, dimension: number): Pack | undefined {
  return database.read((tx) => (tx.get("SELECT 1 FROM vector_packs WHERE id = ?", pack.id) ? readPack(tx, pack, dimension) : undefined));
}

function centroidVectors(tx: SqliteTx, packs: readonly PackRef[], dimension: number): Float32Array {
  const stride = strideOf(dimension);
  const vectors = new Float32Array(packs.reduce((sum, { count }) => sum + count, 0) * dimension);
  for (const pack of packs) {
    const { keys, scales, codes } = readPack(tx, pack, dimension);
    for (const [i, list] of keys.entries())
      for (let d = 0; d < dimension; d++) vectors[list * dimension + d] = scales[i]! * codes[i * stride + d]!;
  }
  return vectors;
}

function split({ count, keys, scales, codes }: Pack, dimension: number): Pack[] {
  const capacity = packCapacity(dimension);
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

function copy({ count, keys, scales, codes }: Pack): Pack {
  return { count, keys: keys.slice(), scales: scales.slice(), codes: codes.slice() };
}

function takeLease(database: SqliteDatabase, space: number): Promise<boolean> {
  return database.write((tx) => {
    const now = Date.now();
    const sql = "UPDATE vector_spaces SET arranging_until = ? WHERE id = ? AND arranging_until < ?";
    if (tx.run(sql, now + LEASE_MS, space, now).changes === 0) return false;
    dropHidden(tx, space);
    return true;
  });
}

async function renewLease(database: SqliteDatabase, space: number): Promise<void> {
  await database.write((tx) => tx.run("UPDATE vector_spaces SET arranging_until = ? WHERE id = ?", Date.now() + LEASE_MS, space));
}

/** Removes what an arrangement that did not come to its end has left behind. */
function dropHidden(tx: SqliteTx, space: number): void {
  tx.run("DELETE FROM vector_packs WHERE space = ? AND ready = 0", space);
}

/** Removes bodies of packs that are gone, a few at a time so that writers are not held up. */
async function dropOrphans(database: SqliteDatabase, pause: () => Promise<void>): Promise<void> {
  const sql = `DELETE FROM vector_pack_bodies WHERE id IN (
    SELECT body.id FROM vector_pack_bodies AS body LEFT JOIN vector_packs AS pack ON pack.id = body.id
    WHERE pack.id IS NULL LIMIT ${PACKS_PER_TRANSACTION})`;
  while ((await database.write((tx) => tx.run(sql).changes)) > 0) await pause();
}

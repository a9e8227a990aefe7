import type { SqliteTx } from "../driver/driver.ts";
import { PACK_BYTES, type Pack, packCapacity, strideOf } from "./codes.ts";
import { growTo, type Kernel, startKernel } from "./kernel.ts";

/** A pack as the directory lists it. */
export interface PackRef {
  readonly id: number;
  /** Which inverted list it belongs to; null for none, CENTROIDS for the centroids themselves. */
  readonly list: number | null;
  readonly count: number;
  readonly checksum: number;
}

export const CENTROIDS = -1;

/** Codes that are missing or are not what was written. Never leaves this folder: the codes are made again from the vectors. */
export class DamagedCodes extends Error {
  override readonly name = "DamagedCodes";
}

export function directory(tx: SqliteTx, space: number): PackRef[] {
  return tx.all<PackRef>("SELECT id, list, count, checksum FROM vector_packs WHERE space = ? AND ready = 1 ORDER BY id", space);
}

/** The keys of a pack, without reading its codes. */
export function readPackKeys(tx: SqliteTx, ref: PackRef): Int32Array {
  const row = tx.get<{ keys: Uint8Array }>("SELECT keys FROM vector_pack_bodies WHERE id = ?", ref.id);
  if (row?.keys.byteLength !== ref.count * 4) throw new DamagedCodes(`The keys of pack ${ref.id} are missing or cut short.`);
  return new Int32Array(aligned(row.keys), 0, ref.count);
}

/** Reads a pack into the kernel's memory at `at`, in the order keys, scales, codes, and makes sure it is what was written. */
export function loadPack(tx: SqliteTx, ref: PackRef, dimension: number, kernel: Kernel, at: number): void {
  const row = tx.get<{ keys: Uint8Array; scales: Uint8Array; codes: Uint8Array }>(
    "SELECT keys, scales, codes FROM vector_pack_bodies WHERE id = ?",
    ref.id,
  );
  if (!row) throw new DamagedCodes(`Pack ${ref.id} is missing.`);
  const { keys, scales, codes } = row;
  const whole =
    ref.count <= packCapacity(dimension) &&
    keys.byteLength === ref.count * 4 &&
    scales.byteLength === ref.count * 4 &&
    codes.byteLength === ref.count * strideOf(dimension);
  if (!whole) throw new DamagedCodes(`Pack ${ref.id} has not the size it should have.`);
  if (place(kernel, at, dimension, keys, scales, codes) !== ref.checksum)
    throw new DamagedCodes(`The checksum of pack ${ref.id} does not match.`);
}

/** Reads a pack, good until the next call. */
export function readPack(tx: SqliteTx, ref: PackRef, dimension: number): Pack {
  const kernel = scratchKernel();
  loadPack(tx, ref, dimension, kernel, 0);
  const { scales, codes } = packLayout(dimension);
  const { buffer } = kernel.memory;
  return {
    count: ref.count,
    keys: new Int32Array(buffer, 0, ref.count),
    scales: new Float32Array(buffer, scales, ref.count),
    codes: new Int8Array(buffer, codes, ref.count * strideOf(dimension)),
  };
}

export interface PackPlace {
  readonly space: number;
  readonly dimension: number;
  readonly list: number | null;
  /** False hides it until the arrangement it belongs to is complete. */
  readonly ready?: boolean;
}

/** Stores a pack under a new id. */
export function writePack(tx: SqliteTx, { space, dimension, list, ready = true }: PackPlace, pack: Pack): number {
  const [keys, scales, codes] = [bytes(pack.keys), bytes(pack.scales), bytes(pack.codes)];
  const checksum = place(scratchKernel(), 0, dimension, keys, scales, codes);
  const { lastId } = tx.run(
    "INSERT INTO vector_packs (space, list, count, checksum, ready) VALUES (?, ?, ?, ?, ?)",
    space,
    list,
    pack.count,
    checksum,
    ready ? 1 : 0,
  );
  tx.run("INSERT INTO vector_pack_bodies (id, keys, scales, codes) VALUES (?, ?, ?, ?)", lastId, keys, scales, codes);
  return lastId;
}

export function deletePacks(tx: SqliteTx, ids: Iterable<number>): void {
  for (const id of ids) {
    tx.run("DELETE FROM vector_packs WHERE id = ?", id);
    tx.run("DELETE FROM vector_pack_bodies WHERE id = ?", id);
  }
}

/** Where the parts of a pack lie from the beginning of its place in memory, which takes PACK_BYTES whatever it holds. */
export function packLayout(dimension: number): { readonly keys: number; readonly scales: number; readonly codes: number } {
  const capacity = packCapacity(dimension);
  return { keys: 0, scales: capacity * 4, codes: capacity * 8 };
}

/** Puts the parts into memory and returns their checksum, which also covers the dimension. */
export function place(
  { memory, checksum }: Kernel,
  at: number,
  dimension: number,
  keys: Uint8Array,
  scales: Uint8Array,
  codes: Uint8Array,
): number {
  const layout = packLayout(dimension);
  const view = new Uint8Array(memory.buffer);
  view.set(keys, at + layout.keys);
  view.set(scales, at + layout.scales);
  view.set(codes, at + layout.codes);
  let sum = checksum(at + layout.keys, keys.byteLength, dimension);
  sum = checksum(at + layout.scales, scales.byteLength, sum);
  return checksum(at + layout.codes, codes.byteLength, sum) >>> 0;
}

let scratch: Kernel | undefined;

/** A kernel with room for one pack, for callers that need a checksum and no cache. */
function scratchKernel(): Kernel {
  if (!scratch) {
    scratch = startKernel(PACK_BYTES);
    growTo(scratch, PACK_BYTES);
  }
  return scratch;
}

function bytes(array: Int32Array | Float32Array | Int8Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** The bytes in a buffer of their own: typed arrays of wider elements may not begin anywhere. */
export function aligned(blob: Uint8Array): ArrayBuffer {
  if (blob.byteOffset === 0 && blob.byteLength === blob.buffer.byteLength) return blob.buffer as ArrayBuffer;
  return blob.slice().buffer as ArrayBuffer;
}

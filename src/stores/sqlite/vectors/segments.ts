import type { SqliteTx } from "../driver/driver.ts";
import { SEGMENT_BYTES, type Segment, segmentCapacity } from "./codes.ts";
import { strideOf } from "./collection.ts";
import { growTo, type Kernel, startKernel } from "./kernel.ts";

/** An entry of the segment directory. */
export interface SegmentRef {
  readonly id: number;
  /** The IVF list of the segment; null for none, CENTROIDS for the centroids themselves. */
  readonly list: number | null;
  readonly count: number;
  readonly checksum: number;
}

export const CENTROIDS = -1;

/** Raised for missing or altered codes. Never leaves this folder: the codes are rebuilt from the vectors. */
export class DamagedCodes extends Error {
  override readonly name = "DamagedCodes";
}

export function directory(tx: SqliteTx, collectionId: number): SegmentRef[] {
  return tx.all<SegmentRef>(
    "SELECT id, list, count, checksum FROM vector_segments WHERE collection_id = ? AND ready = 1 ORDER BY id",
    collectionId,
  );
}

/** Returns the keys of a segment without reading its codes. */
export function readSegmentKeys(tx: SqliteTx, ref: SegmentRef): Int32Array {
  const row = tx.get<{ keys: Uint8Array }>("SELECT keys FROM vector_segment_bodies WHERE id = ?", ref.id);
  if (row?.keys.byteLength !== ref.count * 4) throw new DamagedCodes(`The keys of segment ${ref.id} are missing or cut short.`);
  return new Int32Array(toAlignedBuffer(row.keys), 0, ref.count);
}

/** Reads a segment into the kernel's memory at `at`, in the order keys, scales, codes, and verifies its checksum. */
export function loadSegment(tx: SqliteTx, ref: SegmentRef, dimension: number, kernel: Kernel, at: number): void {
  const row = tx.get<{ keys: Uint8Array; scales: Uint8Array; codes: Uint8Array }>(
    "SELECT keys, scales, codes FROM vector_segment_bodies WHERE id = ?",
    ref.id,
  );
  if (!row) throw new DamagedCodes(`Segment ${ref.id} is missing.`);
  const { keys, scales, codes } = row;
  const whole =
    ref.count <= segmentCapacity(dimension) &&
    keys.byteLength === ref.count * 4 &&
    scales.byteLength === ref.count * 4 &&
    codes.byteLength === ref.count * strideOf(dimension);
  if (!whole) throw new DamagedCodes(`Segment ${ref.id} has not the size it should have.`);
  if (copyParts(kernel, at, dimension, keys, scales, codes) !== ref.checksum)
    throw new DamagedCodes(`The checksum of segment ${ref.id} does not match.`);
}

/** Returns a segment, valid until the next call. */
export function readSegment(tx: SqliteTx, ref: SegmentRef, dimension: number): Segment {
  const kernel = scratchKernel();
  loadSegment(tx, ref, dimension, kernel, 0);
  const { scales, codes } = segmentLayout(dimension);
  const { buffer } = kernel.memory;
  return {
    count: ref.count,
    keys: new Int32Array(buffer, 0, ref.count),
    scales: new Float32Array(buffer, scales, ref.count),
    codes: new Int8Array(buffer, codes, ref.count * strideOf(dimension)),
  };
}

export interface SegmentTarget {
  readonly collection: number;
  readonly dimension: number;
  readonly list: number | null;
  /** False hides the segment until its build is complete. */
  readonly ready?: boolean;
}

/** Stores a segment under a new id. */
export function writeSegment(tx: SqliteTx, { collection, dimension, list, ready = true }: SegmentTarget, segment: Segment): number {
  const [keys, scales, codes] = [bytes(segment.keys), bytes(segment.scales), bytes(segment.codes)];
  const checksum = copyParts(scratchKernel(), 0, dimension, keys, scales, codes);
  const { lastId } = tx.run(
    "INSERT INTO vector_segments (collection_id, list, count, checksum, ready) VALUES (?, ?, ?, ?, ?)",
    collection,
    list,
    segment.count,
    checksum,
    ready ? 1 : 0,
  );
  tx.run("INSERT INTO vector_segment_bodies (id, keys, scales, codes) VALUES (?, ?, ?, ?)", lastId, keys, scales, codes);
  return lastId;
}

export function deleteSegments(tx: SqliteTx, ids: Iterable<number>): void {
  for (const id of ids) {
    tx.run("DELETE FROM vector_segments WHERE id = ?", id);
    tx.run("DELETE FROM vector_segment_bodies WHERE id = ?", id);
  }
}

/** Returns the offsets of the parts of a segment in its frame of SEGMENT_BYTES. */
export function segmentLayout(dimension: number): { readonly keys: number; readonly scales: number; readonly codes: number } {
  const capacity = segmentCapacity(dimension);
  return { keys: 0, scales: capacity * 4, codes: capacity * 8 };
}

/** Copies the parts into memory and returns their checksum, which also covers the dimension. */
export function copyParts(
  { memory, checksum }: Kernel,
  at: number,
  dimension: number,
  keys: Uint8Array,
  scales: Uint8Array,
  codes: Uint8Array,
): number {
  const layout = segmentLayout(dimension);
  const view = new Uint8Array(memory.buffer);
  view.set(keys, at + layout.keys);
  view.set(scales, at + layout.scales);
  view.set(codes, at + layout.codes);
  let sum = checksum(at + layout.keys, keys.byteLength, dimension);
  sum = checksum(at + layout.scales, scales.byteLength, sum);
  return checksum(at + layout.codes, codes.byteLength, sum) >>> 0;
}

let scratch: Kernel | undefined;

/** Returns a kernel with memory for one segment, for callers that need a checksum and no cache. */
function scratchKernel(): Kernel {
  if (!scratch) {
    scratch = startKernel(SEGMENT_BYTES);
    growTo(scratch, SEGMENT_BYTES);
  }
  return scratch;
}

function bytes(array: Int32Array | Float32Array | Int8Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Returns the bytes in a buffer of their own: typed arrays of wider elements need alignment. */
function toAlignedBuffer(blob: Uint8Array): ArrayBuffer {
  if (blob.byteOffset === 0 && blob.byteLength === blob.buffer.byteLength) return blob.buffer as ArrayBuffer;
  return blob.slice().buffer as ArrayBuffer;
}

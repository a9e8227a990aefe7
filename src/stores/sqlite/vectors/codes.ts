import { strideOf } from "./collection.ts";

/** The layout of int8 codes in a segment, and the encoding of a query that is compared with them. */

export const MAX_DIMENSION = 4096; // int32 sums of 12-bit query values times 7-bit codes stay in range up to 4,129
export const SEGMENT_BYTES = 128 * 1024;

/** Returns the number of codes per segment; a multiple of four keeps its parts aligned. */
export function segmentCapacity(dimension: number): number {
  return Math.floor(SEGMENT_BYTES / (strideOf(dimension) + 8) / 4) * 4;
}

/** Writes the query as int16 for the kernel and returns the scale that undoes it. */
export function encodeQuery(query: Float32Array, into: Int16Array): number {
  let largest = 0;
  for (let i = 0; i < query.length; i++) largest = Math.max(largest, Math.abs(query[i] as number));
  const scale = largest / 4095;
  into.fill(0);
  for (let i = 0; i < query.length; i++) into[i] = Math.round((query[i] as number) / scale);
  return scale;
}

/** Codes side by side, `count` of them. */
export interface Segment {
  readonly count: number;
  readonly keys: Int32Array;
  readonly scales: Float32Array;
  readonly codes: Int8Array;
}

/** Collects codes into a segment of at most the given capacity. */
export class SegmentBuilder {
  count = 0;
  readonly #stride: number;
  readonly #capacity: number;
  #keys: Int32Array;
  #scales: Float32Array;
  #codes: Int8Array;

  constructor(dimension: number) {
    this.#stride = strideOf(dimension);
    this.#capacity = segmentCapacity(dimension);
    this.#keys = new Int32Array(this.#capacity);
    this.#scales = new Float32Array(this.#capacity);
    this.#codes = new Int8Array(this.#capacity * this.#stride);
  }

  get full(): boolean {
    return this.count === this.#capacity;
  }

  add(key: number, scale: number, code: Int8Array): void {
    this.#keys[this.count] = key;
    this.#scales[this.count] = scale;
    this.#codes.set(code, this.count * this.#stride);
    this.count++;
  }

  /** Returns the collected codes, valid until the next `add`, and starts again. */
  take(): Segment {
    const { count } = this;
    this.count = 0;
    return {
      count,
      keys: this.#keys.subarray(0, count),
      scales: this.#scales.subarray(0, count),
      codes: this.#codes.subarray(0, count * this.#stride),
    };
  }
}

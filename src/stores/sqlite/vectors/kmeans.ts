import { SEGMENT_BYTES, type Segment } from "./codes.ts";
import { encode, strideOf } from "./collection.ts";
import { growTo, type Kernel, startKernel } from "./kernel.ts";

/** Finds, for codes, the nearest of a set of centroids. */
export interface Assigner {
  /** Uses these centroids from now on: unit vectors, one after the other. */
  use(centroids: Float32Array): void;
  /** Returns the number of the nearest centroid for each code, valid until the next call. */
  nearest(codes: Int8Array, count: number): Int32Array;
  /** The centroids as codes, their numbers as keys. */
  segment(): Segment;
}

const MEMORY_LIMIT_BYTES = 64 * 1024 * 1024;

export function assigner(dimension: number, lists: number): Assigner {
  const kernel: Kernel = startKernel(MEMORY_LIMIT_BYTES);
  const stride = strideOf(dimension);
  const align = (address: number) => Math.ceil(address / 16) * 16;
  const scalesAt = align(4 * lists);
  const centroidsAt = align(scalesAt + 4 * lists);
  const scratchAt = align(centroidsAt + lists * stride);
  const nearestAt = align(scratchAt + 16 + 2 * stride);
  const codesAt = align(nearestAt + SEGMENT_BYTES);
  growTo(kernel, codesAt + SEGMENT_BYTES);
  const { buffer } = kernel.memory;
  const keys = new Int32Array(buffer, 0, lists);
  for (let list = 0; list < lists; list++) keys[list] = list;
  const scales = new Float32Array(buffer, scalesAt, lists);
  const centroidCodes = new Int8Array(buffer, centroidsAt, lists * stride);

  return {
    use(centroids) {
      for (let list = 0; list < lists; list++) {
        const { scale, code } = encode(centroids.subarray(list * dimension, (list + 1) * dimension));
        scales[list] = scale;
        centroidCodes.set(code, list * stride);
      }
    },
    nearest(codes, count) {
      new Int8Array(buffer, codesAt, count * stride).set(codes.subarray(0, count * stride));
      kernel.assign(codesAt, count, stride, 0, scalesAt, centroidsAt, lists, nearestAt, scratchAt);
      return new Int32Array(buffer, nearestAt, count);
    },
    segment: () => ({ count: lists, keys: keys.slice(), scales: scales.slice(), codes: centroidCodes.slice() }),
  };
}

/** Training codes, one after the other. */
export interface Sample {
  readonly count: number;
  readonly scales: Float32Array;
  readonly codes: Int8Array;
}

const ROUNDS = 8;
/** Codes assigned between two pauses: a few milliseconds. */
const SLICE = 128;

/** Spherical k-means: trains the centroids of the assigner on the sample. Pauses often for other work. */
export async function train(target: Assigner, sample: Sample, dimension: number, lists: number, pause: () => Promise<void>): Promise<void> {
  const stride = strideOf(dimension);
  const random = randomNumbers();
  let centroids = new Float32Array(lists * dimension);
  const seed = (list: number, into: Float32Array) => {
    const from = Math.floor(random() * sample.count);
    for (let d = 0; d < dimension; d++) into[list * dimension + d] = sample.codes[from * stride + d]!;
  };
  for (let list = 0; list < lists; list++) seed(list, centroids);
  normalise(centroids, dimension);

  for (let round = 0; round < ROUNDS; round++) {
    target.use(centroids);
    const sums = new Float32Array(lists * dimension);
    const members = new Int32Array(lists);
    for (let from = 0; from < sample.count; from += SLICE) {
      const count = Math.min(SLICE, sample.count - from);
      const nearest = target.nearest(sample.codes.subarray(from * stride, (from + count) * stride), count);
      for (let i = 0; i < count; i++) {
        const list = nearest[i]!;
        const scale = sample.scales[from + i]!;
        const at = (from + i) * stride;
        members[list]!++;
        for (let d = 0; d < dimension; d++) sums[list * dimension + d]! += scale * sample.codes[at + d]!;
      }
      await pause();
    }
    // A centroid without members restarts at a random code.
    for (let list = 0; list < lists; list++) if (members[list] === 0) seed(list, sums);
    normalise(sums, dimension);
    centroids = sums;
  }
  target.use(centroids);
}

function normalise(vectors: Float32Array, dimension: number): void {
  for (let from = 0; from < vectors.length; from += dimension) {
    let squares = 0;
    for (let d = 0; d < dimension; d++) squares += vectors[from + d]! ** 2;
    const length = Math.sqrt(squares) || 1;
    for (let d = 0; d < dimension; d++) vectors[from + d]! /= length;
    // The mean of opposite vectors has no direction; an arbitrary one replaces it.
    if (squares === 0) vectors[from] = 1;
  }
}

/** Returns a deterministic random generator (mulberry32), so that a training can be repeated. */
export function randomNumbers(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Synthetic vectors and their exact neighbours. */

/**
 * Generates `count` unit vectors, clustered like texts: in topics, each of ten subjects. The cosine is about 0.7 within a
 * subject and about 0.5 within a topic. The result is deterministic.
 */
export function clusteredVectors(count: number, dimension: number, topics: number, seed: number): Float32Array {
  const gaussian = gaussians(7);
  const topic = Float32Array.from({ length: topics * dimension }, gaussian);
  const subject = Float32Array.from({ length: topics * SUBJECTS * dimension }, gaussian);
  const noise = gaussians(seed);
  const choose = uniform(seed + 1);
  const vectors = new Float32Array(count * dimension);
  for (let i = 0; i < count; i++) {
    const ofSubject = Math.floor(choose() * topics * SUBJECTS);
    const fromTopic = Math.floor(ofSubject / SUBJECTS) * dimension;
    const fromSubject = ofSubject * dimension;
    const at = i * dimension;
    for (let d = 0; d < dimension; d++)
      vectors[at + d] = topic[fromTopic + d]! + SUBJECT_SPREAD * subject[fromSubject + d]! + SPREAD * noise();
    normalise(vectors, at, dimension);
  }
  return vectors;
}

const SUBJECTS = 10;
const SUBJECT_SPREAD = 0.7;
const SPREAD = 0.8;

function normalise(vectors: Float32Array, at: number, dimension: number): void {
  let squares = 0;
  for (let d = 0; d < dimension; d++) squares += vectors[at + d]! ** 2;
  const length = Math.sqrt(squares);
  for (let d = 0; d < dimension; d++) vectors[at + d]! /= length;
}

export function row(vectors: Float32Array, index: number, dimension: number): Float32Array {
  return vectors.subarray(index * dimension, (index + 1) * dimension);
}

/** Returns the indexes of the nearest allowed vectors, by an exact scan in float arithmetic. */
export function nearest(
  vectors: Float32Array,
  dimension: number,
  query: Float32Array,
  limit: number,
  allowed?: (index: number) => boolean,
): number[] {
  const count = vectors.length / dimension;
  let top: { index: number; score: number }[] = [];
  let bar = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < count; index++) {
    if (allowed && !allowed(index)) continue;
    const at = index * dimension;
    let score = 0;
    for (let d = 0; d < dimension; d++) score += vectors[at + d]! * query[d]!;
    if (score <= bar) continue;
    top.push({ index, score });
    if (top.length < 4 * limit) continue;
    top = best(top, limit);
    bar = top.at(-1)!.score;
  }
  return best(top, limit).map(({ index }) => index);
}

/** Returns the share of exact neighbours that were found. */
export function recall(found: readonly (readonly number[])[], right: readonly (readonly number[])[]): number {
  let hits = 0;
  let all = 0;
  for (const [i, expected] of right.entries()) {
    const got = new Set(found[i]);
    hits += expected.filter((key) => got.has(key)).length;
    all += expected.length;
  }
  return hits / all;
}

function best<T extends { score: number }>(hits: T[], limit: number): T[] {
  return hits.sort((a, b) => b.score - a.score).slice(0, limit);
}

function gaussians(seed: number): () => number {
  const random = uniform(seed);
  let spare: number | undefined;
  return () => {
    if (spare !== undefined) {
      const value = spare;
      spare = undefined;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    const angle = 2 * Math.PI * random();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}

/** Generates numbers from 0 to 1 (a linear congruential generator of 48 bits, whose high bits are used). */
function uniform(seed: number): () => number {
  let low = (seed * 2654435761) >>> 0;
  let high = (seed * 40503) >>> 0;
  return () => {
    low = (Math.imul(low, 1664525) + 1013904223) >>> 0;
    high = (Math.imul(high, 22695477) + 1) >>> 0;
    return ((low ^ (high >>> 7)) >>> 0) / 2 ** 32;
  };
}

/** Vectors to measure with, and the right answers. */

/** `count` unit vectors side by side, gathered around centres as embeddings of texts are; the same for the same seed. */
export function clusteredVectors(count: number, dimension: number, centres: number, seed: number): Float32Array {
  const centreOf = gaussians(7);
  const centre = Float32Array.from({ length: centres * dimension }, centreOf);
  const noise = gaussians(seed);
  const choose = uniform(seed + 1);
  const vectors = new Float32Array(count * dimension);
  for (let i = 0; i < count; i++) {
    const from = Math.floor(choose() * centres) * dimension;
    const at = i * dimension;
    let squares = 0;
    for (let d = 0; d < dimension; d++) {
      const value = centre[from + d]! + SPREAD * noise();
      vectors[at + d] = value;
      squares += value * value;
    }
    const length = Math.sqrt(squares);
    for (let d = 0; d < dimension; d++) vectors[at + d]! /= length;
  }
  return vectors;
}

/** With this spread two vectors of a cluster have a cosine of about 0.6, as texts on one subject do in MiniLM. */
const SPREAD = 0.8;

export function row(vectors: Float32Array, index: number, dimension: number): Float32Array {
  return vectors.subarray(index * dimension, (index + 1) * dimension);
}

/** The indexes of the nearest, by plain float arithmetic over everything that is allowed. */
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

/** The share of the right answers that were found. */
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

/** Numbers from 0 to 1 (a linear congruential generator of 48 bits, whose high bits are used). */
function uniform(seed: number): () => number {
  let low = (seed * 2654435761) >>> 0;
  let high = (seed * 40503) >>> 0;
  return () => {
    low = (Math.imul(low, 1664525) + 1013904223) >>> 0;
    high = (Math.imul(high, 22695477) + 1) >>> 0;
    return ((low ^ (high >>> 7)) >>> 0) / 2 ** 32;
  };
}

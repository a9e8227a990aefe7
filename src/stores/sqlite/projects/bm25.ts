import type { Postings } from "./fts5-postings.ts";

export interface Scored {
  readonly key: number;
  readonly score: number;
}

export interface Bm25Collection {
  readonly records: number;
  /** Terms of a record on average. */
  readonly averageLength: number;
  /** The number of terms of each record, by key; 0 where it is not known. */
  readonly lengths: Uint16Array;
  /** Returns the number of terms of each record as it is now, in the order of the keys. */
  readonly readLengths: (keys: readonly number[]) => readonly number[];
}

/** The parameters of FTS5's BM25. */
const K1 = 1.2;
const B = 0.75;
const LEAST_IDF = 1e-6;

/**
 * Ranks the records of these postings by BM25 as FTS5 computes it, and returns about `wanted` of them, best first. The lengths in memory may
 * be out of date for a record that was changed: they only decide which records are returned.
 */
export function rankPostings(
  postings: readonly Postings[],
  { records, averageLength, lengths, readLengths }: Bm25Collection,
  wanted: number,
): { readonly ranked: Scored[]; readonly isAll: boolean } {
  const { size, keys, places } = mergePostings(postings);
  const weights = postings.map(({ keys }) => Math.max(LEAST_IDF, Math.log((records - keys.length + 0.5) / (keys.length + 0.5))));
  const relative = new Float64Array(size);
  for (let place = 0; place < size; place++) relative[place] = (lengths[keys[place]!] || averageLength) / averageLength;
  const { chosen, isAll } = chooseBest(sumScores(postings, weights, places, relative), wanted);

  const best = Array.from(chosen, (place) => keys[place]!);
  relative.fill(0);
  for (const [index, length] of readLengths(best).entries()) relative[chosen[index]!] = length / averageLength;
  const scores = sumScores(postings, weights, places, relative);
  const ranked = best.map((key, index) => ({ key, score: scores[chosen[index]!]! }));
  return { ranked: ranked.sort((a, b) => b.score - a.score || a.key - b.key), isAll };
}

/** Returns the sum of what its terms count, for each record whose length, relative to the average, is above zero. */
function sumScores(
  postings: readonly Postings[],
  weights: readonly number[],
  places: Int32Array,
  lengths: Float64Array,
): Float64Array<ArrayBuffer> {
  const scores = new Float64Array(lengths.length);
  let at = 0;
  for (const [index, { counts }] of postings.entries()) {
    const weight = weights[index]! * (K1 + 1);
    for (let i = 0; i < counts.length; i++) {
      const place = places[at++]!;
      const length = lengths[place]!;
      if (length > 0) scores[place]! += (weight * counts[i]!) / (counts[i]! + K1 * (1 - B + B * length));
    }
  }
  return scores;
}

/** The records of several lists, each once. */
interface MergedPostings {
  readonly size: number;
  /** The key of each place. */
  readonly keys: Int32Array;
  /** The place of each posting's record, in the order of the postings. */
  readonly places: Int32Array;
}

/** Cells of the hash table, kept for the next query: a new one each time would be most of a search's garbage. */
let cells = new Int32Array(1 << 16);

/** Merges lists by a hash table from keys, which are above zero, to places. */
function mergePostings(postings: readonly Postings[]): MergedPostings {
  const total = postings.reduce((sum, { keys }) => sum + keys.length, 0);
  const bits = Math.max(4, Math.ceil(Math.log2(2 * total + 1)));
  if (cells.length < 2 ** bits) cells = new Int32Array(2 ** bits);
  cells.fill(0, 0, 2 ** bits);
  const table = cells; // holds each place plus one
  const [shift, mask] = [32 - bits, 2 ** bits - 1];
  const merged = new Int32Array(total);
  const places = new Int32Array(total);
  let size = 0;
  let at = 0;
  for (const { keys } of postings)
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      let cell = Math.imul(key, GOLDEN) >>> shift;
      while (table[cell] !== 0 && merged[table[cell]! - 1] !== key) cell = (cell + 1) & mask;
      if (table[cell] === 0) {
        merged[size++] = key;
        table[cell] = size;
      }
      places[at++] = table[cell]! - 1;
    }
  return { size, keys: merged, places };
}

/** Spreads neighbouring keys over the table. */
const GOLDEN = 0x9e3779b1;
const BUCKETS = 4_096;

/** Returns the places with the best scores, `wanted` or a few more, without sorting all. */
function chooseBest(scores: Float64Array, wanted: number): { readonly chosen: Int32Array; readonly isAll: boolean } {
  let top = 0;
  for (let place = 0; place < scores.length; place++) if (scores[place]! > top) top = scores[place]!;
  const factor = (BUCKETS - 1) / top;
  const counts = new Int32Array(BUCKETS);
  for (let place = 0; place < scores.length; place++) counts[Math.floor(scores[place]! * factor)]!++;
  let lowest = BUCKETS - 1;
  let count = counts[lowest]!;
  while (count < wanted && lowest > 0) count += counts[--lowest]!;
  const chosen = new Int32Array(count);
  let at = 0;
  for (let place = 0; place < scores.length; place++) if (Math.floor(scores[place]! * factor) >= lowest) chosen[at++] = place;
  return { chosen, isAll: count === scores.length };
}

import type { SqliteTx } from "../driver/driver.ts";

/** Sum of the integer weights of all terms in a query. A term's weight is its share of the summed IDF. */
const WEIGHT_TOTAL = 1_000;
/** Maximum number of candidates, as a multiple of the requested records. Exceeded only by records of equal weight. */
const CANDIDATE_FACTOR = 10;
const SLOTS_MAX = 1 << 20;

/** The summed weight of each record. All slots are zero between two queries; a new array per query would be most of a search's garbage. */
let slots = new Int32Array(1 << 16);

/**
 * Selects candidates by summed IDF before BM25 scoring. Scoring a record takes ten times as long as finding it, and a common term
 * matches thousands of records. This is an approximation: it ignores term frequency and text length, so the last few of the BM25
 * results may be missing. Returns at least `needed` records, or undefined if all matching records should be scored.
 */
export function selectCandidates(tx: SqliteTx, table: string, terms: readonly string[], needed: number): readonly number[] | undefined {
  if (terms.length < 2) return undefined;
  const postings = terms.map((term) => {
    // One JSON text is ten times as fast as separate rows.
    const { keys } = tx.get<{ keys: string }>(`SELECT json_group_array(rowid) AS keys FROM ${table} WHERE ${table} MATCH ?`, term)!;
    return JSON.parse(keys) as number[];
  });
  if (sum(postings.map((keys) => keys.length)) <= CANDIDATE_FACTOR * needed) return undefined;

  const records = countRecords(tx, table);
  const idf = postings.map((keys) => Math.log(1 + records / (1 + keys.length)));
  const idfTotal = sum(idf);
  const weights = slotsFor(postings);
  const mask = weights.length - 1;
  for (const [index, keys] of postings.entries()) {
    const weight = Math.max(1, Math.round((WEIGHT_TOTAL * idf[index]!) / idfTotal));
    for (const key of keys) weights[key & mask]! += weight;
  }
  const threshold = findThreshold(weights, postings, needed);
  const candidates = new Set<number>();
  for (const keys of postings) for (const key of keys) if (weights[key & mask]! <= -threshold) candidates.add(key);
  for (const keys of postings) for (const key of keys) weights[key & mask] = 0;
  return threshold === 1 ? undefined : [...candidates];
}

/** Returns a slot per record. Above SLOTS_MAX records share slots, which adds a few candidates. */
function slotsFor(postings: readonly (readonly number[])[]): Int32Array {
  const last = Math.max(...postings.map((keys) => keys.at(-1) ?? 0));
  if (last >= slots.length && slots.length < SLOTS_MAX) slots = new Int32Array(Math.min(SLOTS_MAX, 2 ** Math.ceil(Math.log2(last + 1))));
  return slots;
}

/**
 * Returns the smallest weight of a candidate. Records of equal weight are selected together or not at all. Negates the weights to mark
 * records as counted, because a record occurs once per matching term.
 */
function findThreshold(weights: Int32Array, postings: readonly (readonly number[])[], needed: number): number {
  const mask = weights.length - 1;
  const histogram = new Uint32Array(2 * WEIGHT_TOTAL);
  for (const keys of postings)
    for (const key of keys) {
      const weight = weights[key & mask]!;
      if (weight < 0) continue;
      histogram[Math.min(weight, histogram.length - 1)]!++;
      weights[key & mask] = -weight;
    }
  let threshold = histogram.length;
  for (let selected = 0; threshold > 1; threshold--) {
    const next = histogram[threshold - 1]!;
    if (next > 0 && selected >= needed && selected + next > CANDIDATE_FACTOR * needed) break;
    selected += next;
  }
  return threshold;
}

/** Reads the number of records from the first varint of FTS5's averages record. Counting the rows would read all of them. */
function countRecords(tx: SqliteTx, table: string): number {
  const { block } = tx.get<{ block: Uint8Array }>(`SELECT block FROM ${table}_data WHERE id = 1`)!;
  let count = 0;
  for (const byte of block) {
    count = count * 128 + (byte & 127);
    if (byte < 128) break;
  }
  return count;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

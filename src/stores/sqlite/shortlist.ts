import type { SqliteTx } from "./driver.ts";

/** The words of a query share about so many points, the rarer ones more of them. */
const POINTS = 1_000;
/** So many are taken at most, in times of what is needed; more only if they cannot be told apart. */
const ROOM = 10;
const SLOTS_MAX = 1 << 20;

/**
 * The records worth scoring, of all that have a word of the query: `needed` of them or more. Scoring a record takes ten times as long
 * as finding it, and a common word finds thousands. So records are found first, word by word, and those that have the most of the
 * query's rarer words are taken: the best by BM25 are among them, but for the last few now and then. Nothing if all should be scored.
 */
export function shortlist(tx: SqliteTx, table: string, words: readonly string[], needed: number): readonly number[] | undefined {
  if (words.length < 2) return undefined;
  const found = words.map((word) => {
    // As one text they come ten times as fast as by rows.
    const { keys } = tx.get<{ keys: string }>(`SELECT json_group_array(rowid) AS keys FROM ${table} WHERE ${table} MATCH ?`, word)!;
    return JSON.parse(keys) as number[];
  });
  if (sum(found.map((keys) => keys.length)) <= ROOM * needed) return undefined;

  const { records } = tx.get<{ records: number }>(`SELECT count(*) AS records FROM ${table}_docsize`)!;
  const rarity = found.map((keys) => Math.log(1 + records / (1 + keys.length)));
  const whole = sum(rarity);
  // A slot for each record. In a very large collection several share one; then a few more are taken than were meant.
  const points = new Uint16Array(Math.min(SLOTS_MAX, 2 ** Math.ceil(Math.log2(records + 1))));
  const lastBits = points.length - 1;
  for (const [index, keys] of found.entries()) {
    const worth = Math.max(1, Math.round((POINTS * rarity[index]!) / whole));
    for (const key of keys) points[key & lastBits]! += worth;
  }
  const least = leastPoints(points, needed);
  if (least === 1) return undefined;
  const taken = new Set<number>();
  for (const keys of found) for (const key of keys) if (points[key & lastBits]! >= least) taken.add(key);
  return [...taken];
}

/** How many points one must have to be taken; those with equally many are taken together or not at all. */
function leastPoints(points: Uint16Array, needed: number): number {
  const having = new Uint32Array(0xffff + 1);
  for (let slot = 0; slot < points.length; slot++) {
    const reached = points[slot]!;
    if (reached > 0) having[reached]!++;
  }
  let least = having.length;
  for (let taken = 0; least > 1; least--) {
    const next = having[least - 1]!;
    if (next > 0 && taken >= needed && taken + next > ROOM * needed) break;
    taken += next;
  }
  return least;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

import type { SqliteTx } from "../driver/driver.ts";

/** Points that the terms of a query share, the rarer ones more of them. */
const POINTS = 1_000;
/** Largest number of records, as a multiple of the wanted ones; more only if their points are equal. */
const ROOM = 10;
const SLOTS_MAX = 1 << 20;

/** Where records gather their points: a slot for each. All are empty between two queries; allocating them again would be most of the garbage of a search. */
let slots = new Int32Array(1 << 16);

/**
 * The records worth scoring, of all that have a word of the query: `needed` of them or more. Scoring a record takes ten times as long
 * as finding it, and a common word finds thousands. So records are found first, term by term, and the records with the most of the
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

  const records = recordCount(tx, table);
  const rarity = found.map((keys) => Math.log(1 + records / (1 + keys.length)));
  const whole = sum(rarity);
  const points = slotsFor(found);
  const lastBits = points.length - 1;
  for (const [index, keys] of found.entries()) {
    const worth = Math.max(1, Math.round((POINTS * rarity[index]!) / whole));
    for (const key of keys) points[key & lastBits]! += worth;
  }
  const least = leastPoints(points, found, needed);
  const taken = new Set<number>();
  for (const keys of found) for (const key of keys) if (points[key & lastBits]! <= -least) taken.add(key);
  for (const keys of found) for (const key of keys) points[key & lastBits] = 0;
  return least === 1 ? undefined : [...taken];
}

/** In a very large collection several records share a slot; then a few more are taken than were meant. */
function slotsFor(found: readonly (readonly number[])[]): Int32Array {
  const last = Math.max(...found.map((keys) => keys.at(-1) ?? 0));
  if (last >= slots.length && slots.length < SLOTS_MAX) slots = new Int32Array(Math.min(SLOTS_MAX, 2 ** Math.ceil(Math.log2(last + 1))));
  return slots;
}

/**
 * How many points one must have to be taken; those with equally many are taken together or not at all. Makes the points negative, which
 * says that they are counted: a record is found once for each of its words.
 */
function leastPoints(points: Int32Array, found: readonly (readonly number[])[], needed: number): number {
  const lastBits = points.length - 1;
  const having = new Uint32Array(2 * POINTS);
  for (const keys of found)
    for (const key of keys) {
      const reached = points[key & lastBits]!;
      if (reached < 0) continue;
      having[Math.min(reached, having.length - 1)]!++;
      points[key & lastBits] = -reached;
    }
  let least = having.length;
  for (let taken = 0; least > 1; least--) {
    const next = having[least - 1]!;
    if (next > 0 && taken >= needed && taken + next > ROOM * needed) break;
    taken += next;
  }
  return least;
}

/** FTS5 keeps it in its first record, as the first number. To count the rows would mean to read them all. */
function recordCount(tx: SqliteTx, table: string): number {
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

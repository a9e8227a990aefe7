import type { KeywordRanked } from "../../../ports/recall-store.ts";
import type { Language } from "../../../text/language.ts";
import { languageMarker, MARKED_LANGUAGES, queryTerms } from "../../../text/terms.ts";
import type { SqliteTx, SqlValue } from "../driver/driver.ts";
import type { Keyed } from "./nearest.ts";

/** A condition on the records of a collection: generated SQL, with the caller's values as parameters. */
export interface Where {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** Replaces a record's terms in the full-text index. Erasing terms costs more than comparing them. */
export function putTerms(tx: SqliteTx, table: string, key: number, terms: string): void {
  const before = tx.get<{ terms: string }>(`SELECT terms FROM ${table} WHERE rowid = ?`, key);
  if (before?.terms === terms) return;
  removeTerms(tx, table, key);
  insertTerms(tx, table, key, terms);
}

export function insertTerms(tx: SqliteTx, table: string, key: number, terms: string): void {
  tx.run(`INSERT INTO ${table} (rowid, terms) VALUES (?, ?)`, key, terms);
}

export function removeTerms(tx: SqliteTx, table: string, key: number): void {
  tx.run(`DELETE FROM ${table} WHERE rowid = ?`, key);
}

/** The full-text index of a collection. */
export interface FullTextIndex {
  readonly table: string;
  /** The table or view of its records. */
  readonly records: string;
  /** Whether records have stems of their language, and its marker. */
  readonly hasLanguages: boolean;
}

/** Returns the records whose text has terms of the query, by BM25, best first; only records that `where` accepts. */
export function rankByKeywords(
  tx: SqliteTx,
  { table, records, hasLanguages }: FullTextIndex,
  query: string,
  where: Where | undefined,
  limit: number,
): (KeywordRanked & Keyed)[] {
  const words = queryTerms(query, hasLanguages ? indexedLanguages(tx, table) : []).map((variants) => variants.map(quoteTerm));
  const terms = words.flat();
  if (terms.length === 0) return [];
  const rows =
    (where ? undefined : rankCandidates(tx, table, records, terms, limit)) ??
    rankMatching(tx, table, records, terms.join(" OR "), where, limit);
  const countMatched = (key: number) =>
    words.filter((variants) => tx.get(`SELECT 1 FROM ${table} WHERE ${table} MATCH ? AND rowid = ?`, variants.join(" OR "), key)).length;
  return rows.map(({ key, id, score }, index) => ({
    key,
    id,
    score: Math.max(score, Number.MIN_VALUE),
    ...(index === 0 ? { matched: countMatched(key) / words.length } : {}),
  }));
}

/** The languages of each index, while its database has the same content. */
const languages = new WeakMap<SqliteTx, Map<string, { readonly state: string; readonly found: readonly Language[] }>>();

/** Returns the languages whose stems the index contains. They are looked up again only after a write of any connection. */
function indexedLanguages(tx: SqliteTx, table: string): readonly Language[] {
  const known = languages.get(tx) ?? new Map();
  languages.set(tx, known);
  const state = contentState(tx);
  if (known.get(table)?.state !== state) known.set(table, { state, found: findLanguages(tx, table) });
  return known.get(table)!.found;
}

/** Returns a text that differs after each commit of another connection and each change of this one. */
function contentState(tx: SqliteTx): string {
  const { data_version } = tx.get<{ data_version: number }>("PRAGMA data_version")!;
  const { changes } = tx.get<{ changes: number }>("SELECT total_changes() AS changes")!;
  return `${data_version} ${changes}`;
}

/** Looks up the markers of all languages at once: most indexes are English and have none. */
function findLanguages(tx: SqliteTx, table: string): Language[] {
  const contains = (match: string) => tx.get(`SELECT 1 FROM ${table} WHERE ${table} MATCH ? LIMIT 1`, match) !== undefined;
  const markers = MARKED_LANGUAGES.map((language) => quoteTerm(languageMarker(language)));
  return contains(markers.join(" OR ")) ? MARKED_LANGUAGES.filter((_, index) => contains(markers[index]!)) : [];
}

interface RankedRow extends Keyed {
  readonly score: number;
}

function rankMatching(
  tx: SqliteTx,
  table: string,
  records: string,
  match: string,
  where: Where | undefined,
  limit: number,
): readonly RankedRow[] {
  return tx.all<RankedRow>(
    `SELECT r.key AS key, r.id AS id, -bm25(${table}) AS score
       FROM ${table} JOIN ${records} r ON r.key = ${table}.rowid
      WHERE ${table} MATCH ? ${where ? `AND (${where.sql})` : ""}
      ORDER BY bm25(${table}), r.id LIMIT ?`,
    match,
    ...(where?.params ?? []),
    limit,
  );
}

/** Extra candidates for entries that are no longer, or not yet, a record. */
const SPARE = 50;

/**
 * Ranks without a condition, in a fraction of the time: scores only the candidates of `selectCandidates`, and looks up only the best among
 * the records. Returns undefined if that does not determine the first `limit` records.
 */
function rankCandidates(
  tx: SqliteTx,
  table: string,
  records: string,
  terms: readonly string[],
  limit: number,
): readonly RankedRow[] | undefined {
  const candidates = selectCandidates(tx, table, terms, limit + SPARE);
  const best = tx.all<{ key: number; score: number }>(
    `SELECT rowid AS key, -bm25(${table}) AS score FROM ${table}
      WHERE ${table} MATCH ? ${candidates ? "AND +rowid IN (SELECT value FROM json_each(?))" : ""} ORDER BY score DESC LIMIT ?`,
    terms.join(" OR "),
    ...(candidates ? [JSON.stringify(candidates)] : []),
    limit + SPARE,
  );
  const known = withIds(tx, records, best);
  known.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
  const isAll = best.length < limit + SPARE;
  // The limit may have cut off records with the last score and a smaller id.
  const settled = isAll || (known.length > limit && known[limit - 1]!.score > best.at(-1)!.score);
  return settled ? known.slice(0, limit) : undefined;
}

/** Adds the ids of the records with these keys, in the same order, without missing ones. One JSON text is faster than a statement for each. */
export function withIds(
  tx: SqliteTx,
  records: string,
  hits: readonly { readonly key: number; readonly score: number }[],
): { key: number; id: string; score: number }[] {
  const { rows } = tx.get<{ rows: string }>(
    `SELECT json_group_array(json_array(r.key, r.id)) AS rows FROM json_each(?) wanted CROSS JOIN ${records} r ON r.key = wanted.value`,
    JSON.stringify(hits.map(({ key }) => key)),
  )!;
  const ids = new Map(JSON.parse(rows) as [number, string][]);
  return hits.flatMap(({ key, score }) => {
    const id = ids.get(key);
    return id === undefined ? [] : [{ key, id, score }];
  });
}

/** Quotes a term of a query for FTS5, so that user input is never query syntax. */
export function quoteTerm(term: string): string {
  return `"${term.replaceAll('"', '""')}"`;
}

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

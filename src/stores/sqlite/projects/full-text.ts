import type { KeywordRanked } from "../../../ports/recall-store.ts";
import type { Language } from "../../../text/language.ts";
import { languageMarker, MARKED_LANGUAGES, queryTerms } from "../../../text/terms.ts";
import type { SqliteTx, SqlValue } from "../driver/driver.ts";
import { rankPostings } from "./bm25.ts";
import { readPostings, readVarints } from "./fts5-postings.ts";
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
  const words = queryTerms(query, hasLanguages ? indexedLanguages(tx, table) : []);
  if (words.length === 0) return [];
  const { rows, matched } =
    (where ? undefined : rankDirectly(tx, table, records, words, limit)) ?? askFts5(tx, table, records, words, where, limit);
  return rows.map(({ key, id, score }, index) => ({
    key,
    id,
    score: Math.max(score, Number.MIN_VALUE),
    ...(index === 0 ? { matched: matched(key) / words.length } : {}),
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

interface KeywordRanking {
  readonly rows: readonly RankedRow[];
  /** Returns how many of the query's words a record has. */
  readonly matched: (key: number) => number;
}

function askFts5(
  tx: SqliteTx,
  table: string,
  records: string,
  words: readonly (readonly string[])[],
  where: Where | undefined,
  limit: number,
): KeywordRanking {
  const matches = words.map((variants) => variants.map(quoteTerm).join(" OR "));
  const rows = tx.all<RankedRow>(
    `SELECT r.key AS key, r.id AS id, -bm25(${table}) AS score
       FROM ${table} JOIN ${records} r ON r.key = ${table}.rowid
      WHERE ${table} MATCH ? ${where ? `AND (${where.sql})` : ""}
      ORDER BY bm25(${table}), r.id LIMIT ?`,
    matches.join(" OR "),
    ...(where?.params ?? []),
    limit,
  );
  const has = (match: string, key: number) => tx.get(`SELECT 1 FROM ${table} WHERE ${table} MATCH ? AND rowid = ?`, match, key);
  return { rows, matched: (key) => matches.filter((match) => has(match, key)).length };
}

/** Up to this number of records, FTS5 scores all of them within a millisecond. */
const SMALL_RECORDS = 1_000;
/** Extra records for entries that are no longer, or not yet, a record. */
const SPARE = 50;

/**
 * Ranks a large index without a condition, in a fraction of FTS5's time: reads the postings, and looks up only the best among the records.
 * Returns undefined for a small index, one with an unknown layout, and if the best postings do not determine the first `limit` records.
 */
function rankDirectly(
  tx: SqliteTx,
  table: string,
  records: string,
  words: readonly (readonly string[])[],
  limit: number,
): KeywordRanking | undefined {
  if (!tx.get(`SELECT 1 FROM ${table}_docsize LIMIT 1 OFFSET ${SMALL_RECORDS}`)) return undefined;
  const postings = readPostings(tx, table, words.flat());
  if (!postings) return undefined;
  const { count, averageLength } = readAverages(tx, table);
  const collection = { records: count, averageLength, lengths: currentLengths(tx, table) };
  const { ranked, isAll } = rankPostings(
    postings,
    { ...collection, readLengths: (keys) => readLengths(tx, table, keys).map(([, length]) => length) },
    limit + SPARE,
  );
  const known = withIds(tx, records, ranked);
  if (known.length < limit && !isAll) return undefined;
  known.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
  let term = 0;
  const ofWords = words.map((variants) => variants.map(() => postings[term++]!.keys));
  return { rows: known.slice(0, limit), matched: (key) => ofWords.filter((lists) => lists.some((keys) => keys.includes(key))).length };
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

/** Reads the averages of the index: a varint each for the number of records and of all their terms. Counting the rows would read all of them. */
function readAverages(tx: SqliteTx, table: string): { readonly count: number; readonly averageLength: number } {
  const { block } = tx.get<{ block: Uint8Array }>(`SELECT block FROM ${table}_data WHERE id = 1`)!;
  const [count = 0, terms = 0] = readVarints(block, 0, 2);
  return { count, averageLength: Math.max(1, terms / count) };
}

/** Keys whose lengths are cached: two bytes each. Records with higher keys count as of average length until they are among the best. */
const LENGTHS_MAX = 1 << 22;
/** Lengths that one search adds to the cache, which takes about 10 ms. The next search adds more. */
const LENGTHS_READ_MAX = 100_000;

/** The lengths of each connection's records, by table. */
const cachedLengths = new WeakMap<SqliteTx, Map<string, { lengths: Uint16Array; last: number }>>();

/** Returns the cached lengths of records by key, including records added since the last search. */
function currentLengths(tx: SqliteTx, table: string): Uint16Array {
  const ofTables = cachedLengths.get(tx) ?? new Map<string, { lengths: Uint16Array; last: number }>();
  cachedLengths.set(tx, ofTables);
  const cached = ofTables.get(table) ?? { lengths: new Uint16Array(0), last: 0 };
  ofTables.set(table, cached);
  const { last } = tx.get<{ last: number | null }>(`SELECT max(id) AS last FROM ${table}_docsize`)!;
  const end = Math.min(LENGTHS_MAX, (last ?? 0) + 1, cached.last + 1 + LENGTHS_READ_MAX);
  if (end > cached.lengths.length) {
    const larger = new Uint16Array(Math.min(LENGTHS_MAX, 2 ** Math.ceil(Math.log2(end))));
    larger.set(cached.lengths);
    cached.lengths = larger;
  }
  if (end > cached.last + 1) {
    for (const [key, length] of parseLengths(tx, `FROM ${table}_docsize d WHERE d.id > ? AND d.id < ?`, cached.last, end))
      cached.lengths[key] = Math.min(length, 0xffff);
    cached.last = end - 1;
  }
  return cached.lengths;
}

function readLengths(tx: SqliteTx, table: string, keys: readonly number[]): [key: number, length: number][] {
  return parseLengths(tx, `FROM json_each(?) wanted LEFT JOIN ${table}_docsize d ON d.id = wanted.value`, JSON.stringify(keys));
}

/** Reads numbers of terms, at least 1 each. FTS5 stores a varint. */
function parseLengths(tx: SqliteTx, from: string, ...params: readonly SqlValue[]): [key: number, length: number][] {
  const { lengths } = tx.get<{ lengths: string }>(`SELECT json_group_array(json_array(d.id, hex(d.sz))) AS lengths ${from}`, ...params)!;
  return (JSON.parse(lengths) as [number, string][]).map(([key, hex]) => {
    const bytes = Number.parseInt(hex, 16); // at most four bytes
    return [key, Math.max(1, (bytes & 127) | ((bytes >> 1) & 0x3f80) | ((bytes >> 2) & 0x1fc000) | ((bytes >> 3) & 0xfe00000))];
  });
}

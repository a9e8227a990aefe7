import type { KeywordRanked } from "../../../ports/recall-store.ts";
import { extractQueryTerms, extractTerms } from "../../../text/terms.ts";
import type { SqliteTx, SqlValue } from "../driver/driver.ts";
import type { Keyed } from "../driver/known-keys.ts";
import { shortlist } from "./shortlist.ts";

/** A condition on the records of a collection, as SQL made by us with the person's values bound. */
export interface Where {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** Replaces a record's terms in the full-text index. Erasing terms costs more than comparing them. */
export function putTerms(tx: SqliteTx, table: string, key: number, text: string): void {
  const terms = searchTerms(text);
  const before = tx.get<{ terms: string }>(`SELECT terms FROM ${table} WHERE rowid = ?`, key);
  if (before?.terms === terms) return;
  removeTerms(tx, table, key);
  insertTerms(tx, table, key, terms);
}

/** The words of a text as they are stored. */
export function searchTerms(text: string): string {
  return extractTerms(text).join(" ");
}

export function insertTerms(tx: SqliteTx, table: string, key: number, terms: string): void {
  tx.run(`INSERT INTO ${table} (rowid, terms) VALUES (?, ?)`, key, terms);
}

export function removeTerms(tx: SqliteTx, table: string, key: number): void {
  tx.run(`DELETE FROM ${table} WHERE rowid = ?`, key);
}

/** Returns the records whose text has terms of the query, by BM25, best first; only records that `where` accepts. */
export function rankByKeywords(
  tx: SqliteTx,
  table: string,
  records: string,
  query: string,
  where: Where | undefined,
  limit: number,
): (KeywordRanked & Keyed)[] {
  const asked = extractQueryTerms(query).map(quoted);
  if (asked.length === 0) return [];
  const rows =
    (where ? undefined : rankFirst(tx, table, records, asked, limit)) ?? rankMatching(tx, table, records, asked.join(" OR "), where, limit);
  const has = (key: number) =>
    asked.filter((word) => tx.get(`SELECT 1 FROM ${table} WHERE ${table} MATCH ? AND rowid = ?`, word, key)).length;
  return rows.map(({ key, id, score }, index) => ({
    key,
    id,
    score: Math.max(score, Number.MIN_VALUE),
    ...(index === 0 ? { matched: has(key) / asked.length } : {}),
  }));
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
 * The same without a condition, in a fraction of the time: of all that have one of the words, only those with the rarer ones are
 * scored, and only the best are looked up among the records. Nothing if that does not settle which ones they are.
 */
function rankFirst(
  tx: SqliteTx,
  table: string,
  records: string,
  terms: readonly string[],
  limit: number,
): readonly RankedRow[] | undefined {
  const worth = shortlist(tx, table, terms, limit + SPARE);
  const best = tx.all<{ key: number; score: number }>(
    `SELECT rowid AS key, -bm25(${table}) AS score FROM ${table}
      WHERE ${table} MATCH ? ${worth ? "AND +rowid IN (SELECT value FROM json_each(?))" : ""} ORDER BY score DESC LIMIT ?`,
    terms.join(" OR "),
    ...(worth ? [JSON.stringify(worth)] : []),
    limit + SPARE,
  );
  const known = best.flatMap(({ key, score }) => {
    const record = tx.get<{ id: string }>(`SELECT id FROM ${records} WHERE key = ?`, key);
    return record ? [{ key, id: record.id, score }] : [];
  });
  known.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
  const isAll = best.length < limit + SPARE;
  // Those with the score of the last one may have been cut off before those with a smaller id.
  const settled = isAll || (known.length > limit && known[limit - 1]!.score > best.at(-1)!.score);
  return settled ? known.slice(0, limit) : undefined;
}

/** A word as a quoted string: whatever a person types is a word to look for, never syntax. */
function quoted(word: string): string {
  return `"${word.replaceAll('"', '""')}"`;
}

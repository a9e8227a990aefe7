import type { KeywordRanked } from "../../../ports/recall-store.ts";
import { extractQueryTerms, extractTerms } from "../../../text/terms.ts";
import type { SqliteTx, SqlValue } from "../driver/driver.ts";
import type { Keyed } from "../driver/known-keys.ts";
import { selectCandidates } from "./select-candidates.ts";

/** A condition on the records of a collection: generated SQL, with the caller's values as parameters. */
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

/** Returns the terms of a text as the full-text index stores them. */
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
  const terms = extractQueryTerms(query).map(quoteTerm);
  if (terms.length === 0) return [];
  const rows =
    (where ? undefined : rankCandidates(tx, table, records, terms, limit)) ??
    rankMatching(tx, table, records, terms.join(" OR "), where, limit);
  const countMatched = (key: number) =>
    terms.filter((term) => tx.get(`SELECT 1 FROM ${table} WHERE ${table} MATCH ? AND rowid = ?`, term, key)).length;
  return rows.map(({ key, id, score }, index) => ({
    key,
    id,
    score: Math.max(score, Number.MIN_VALUE),
    ...(index === 0 ? { matched: countMatched(key) / terms.length } : {}),
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
  const known = best.flatMap(({ key, score }) => {
    const record = tx.get<{ id: string }>(`SELECT id FROM ${records} WHERE key = ?`, key);
    return record ? [{ key, id: record.id, score }] : [];
  });
  known.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
  const isAll = best.length < limit + SPARE;
  // The limit may have cut off records with the last score and a smaller id.
  const settled = isAll || (known.length > limit && known[limit - 1]!.score > best.at(-1)!.score);
  return settled ? known.slice(0, limit) : undefined;
}

/** Quotes a term of a query for FTS5, so that user input is never query syntax. */
function quoteTerm(term: string): string {
  return `"${term.replaceAll('"', '""')}"`;
}

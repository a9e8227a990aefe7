import type { RankedByWords } from "../../ports/recall-store.ts";
import { queryWords, searchWords } from "../../text/words.ts";
import type { SqliteTx, SqlValue } from "./driver.ts";

/** A condition on the records of a collection, as SQL made by us with the person's values bound. */
export interface Where {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** Makes a record's text findable by its words, in place of what was there. */
export function putWords(tx: SqliteTx, table: string, key: number, text: string): void {
  removeWords(tx, table, key);
  addWords(tx, table, key, text);
}

/** The same for a record that has none yet. */
export function addWords(tx: SqliteTx, table: string, key: number, text: string): void {
  tx.run(`INSERT INTO ${table} (rowid, words) VALUES (?, ?)`, key, searchWords(text).join(" "));
}

export function removeWords(tx: SqliteTx, table: string, key: number): void {
  tx.run(`DELETE FROM ${table} WHERE rowid = ?`, key);
}

/** The records whose text has words of the query, by BM25, best first; only those that `where` lets through. */
export function rankByWords(
  tx: SqliteTx,
  table: string,
  records: string,
  query: string,
  where: Where | undefined,
  limit: number,
): RankedByWords[] {
  const asked = queryWords(query).map(quoted);
  if (asked.length === 0) return [];
  const rows = tx.all<{ key: number; id: string; score: number }>(
    `SELECT r.key AS key, r.id AS id, -bm25(${table}) AS score
       FROM ${table} JOIN ${records} r ON r.key = ${table}.rowid
      WHERE ${table} MATCH ? ${where ? `AND (${where.sql})` : ""}
      ORDER BY bm25(${table}), r.id LIMIT ?`,
    asked.join(" OR "),
    ...(where?.params ?? []),
    limit,
  );
  const has = (key: number) =>
    asked.filter((word) => tx.get(`SELECT 1 FROM ${table} WHERE ${table} MATCH ? AND rowid = ?`, word, key)).length;
  return rows.map(({ key, id, score }, index) => ({
    id,
    score: Math.max(score, Number.MIN_VALUE),
    ...(index === 0 ? { matched: has(key) / asked.length } : {}),
  }));
}

/** A word as a quoted string: whatever a person types is a word to look for, never syntax. */
function quoted(word: string): string {
  return `"${word.replaceAll('"', '""')}"`;
}

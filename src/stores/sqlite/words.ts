import type { Ranked } from "../../ports/recall-store.ts";
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
): Ranked[] {
  const match = matchExpression(query);
  if (!match) return [];
  const rows = tx.all<{ id: string; score: number }>(
    `SELECT r.id AS id, -bm25(${table}) AS score
       FROM ${table} JOIN ${records} r ON r.key = ${table}.rowid
      WHERE ${table} MATCH ? ${where ? `AND (${where.sql})` : ""}
      ORDER BY bm25(${table}), r.id LIMIT ?`,
    match,
    ...(where?.params ?? []),
    limit,
  );
  return rows.map(({ id, score }) => ({ id, score: Math.max(score, Number.MIN_VALUE) }));
}

/** Each word as a quoted string: whatever a person types is a word to look for, never syntax. */
function matchExpression(query: string): string {
  return queryWords(query)
    .map((word) => `"${word.replaceAll('"', '""')}"`)
    .join(" OR ");
}

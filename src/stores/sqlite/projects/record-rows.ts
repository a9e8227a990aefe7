import { CLOCK_SKEW_MS } from "../../../model/record-order.ts";
import { type RawRow, type StoredRecord, splitStored } from "../../../model/stored-record.ts";
import type { ReadRecords } from "../../../ports/recall-store.ts";

/** A column of whole numbers as SQL. One that JavaScript cannot hold comes as text, because the engines end the whole statement at it. */
export function safeInteger(column: string): string {
  return `CASE WHEN ${column} BETWEEN -9007199254740991 AND 9007199254740991 THEN ${column} ELSE CAST(${column} AS TEXT) END`;
}

/** The columns of a table as an SQL list, with `key`, such that any damaged value can be read. */
export function columnList(columns: Readonly<Record<string, string>>): string {
  const list = Object.entries(columns).map(([name, type]) => (type === "integer" ? `${safeInteger(`r.${name}`)} AS ${name}` : `r.${name}`));
  return ["r.key", ...list].join(", ");
}

/** Reads rows in the order of a list until the page is full: damaged ones are reported, and the next rows take their places. */
export function readPage<T>(
  limit: number,
  rows: (limit: number, offset: number) => readonly RawRow[],
  read: (row: RawRow) => StoredRecord<T>,
): ReadRecords<T> {
  const stored: StoredRecord<T>[] = [];
  for (let wanted = limit; wanted > 0; ) {
    const found = rows(wanted, stored.length).map(read);
    stored.push(...found);
    if (found.length < wanted) break;
    wanted = found.filter((one) => "damaged" in one).length;
  }
  return splitStored(stored);
}

/**
 * Returns the statement that moves records whose order lies in the future, because of a wrong clock, to just before a save. Keeps their
 * order. The parameter is the time of the save.
 */
export function reorderFutureRecords(table: string, column: string): string {
  const time = "strftime('%Y-%m-%dT%H:%M:%fZ', ?1, ";
  return `UPDATE ${table} SET ${column} = ${time} printf('-%.3f seconds', ahead.place / 1000.0))
    FROM (SELECT key AS record, row_number() OVER (ORDER BY ${column} DESC, id) AS place FROM ${table}
           WHERE ${column} > ${time} '+${CLOCK_SKEW_MS / 1000} seconds')) AS ahead
   WHERE key = ahead.record`;
}

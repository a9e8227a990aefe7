import { latestPlace } from "../../../model/record-order.ts";
import { type RawRow, type StoredRecord, splitStored } from "../../../model/stored-record.ts";
import type { ReadRecords } from "../../../ports/recall-store.ts";
import type { PostgresTx } from "../driver/driver.ts";
import { toTimestamp } from "../driver/time.ts";

/** Reads rows in the order of a list until the page is full: damaged ones are reported, and the next rows take their places. */
export async function readPage<T>(
  limit: number,
  rows: (limit: number, offset: number) => Promise<readonly RawRow[]>,
  read: (row: RawRow) => StoredRecord<T>,
): Promise<ReadRecords<T>> {
  const stored: StoredRecord<T>[] = [];
  for (let wanted = limit; wanted > 0; ) {
    const found = (await rows(wanted, stored.length)).map(read);
    stored.push(...found);
    if (found.length < wanted) break;
    wanted = found.filter((one) => "damaged" in one).length;
  }
  return splitStored(stored);
}

/** Moves records whose order lies in the future, because of a wrong clock, to just before a save. Keeps their order. */
export async function reorderFutureRecords(tx: PostgresTx, table: string, columns: readonly string[], savedAt: string): Promise<void> {
  const ahead = columns.map((column) => `${column} > $1`).join(" OR ");
  const latest = toTimestamp(latestPlace(savedAt));
  if (!(await tx.get(`SELECT 1 FROM ${table} WHERE ${ahead} LIMIT 1`, latest))) return;
  for (const column of columns)
    await tx.run(
      `UPDATE ${table} r SET ${column} = $2::timestamptz - moved.place * interval '1 millisecond'
         FROM (SELECT key, row_number() OVER (ORDER BY ${column} DESC, id) AS place FROM ${table} WHERE ${column} > $1) AS moved
        WHERE r.key = moved.key`,
      latest,
      toTimestamp(savedAt),
    );
}

/** The current position of the cursor's record, if it was moved down since: the list continues from there. As SQL. */
export function minPlace(table: string, column: string, at: string, id: string): string {
  return `least(${at}::timestamptz, (SELECT c.${column} FROM ${table} c WHERE c.id = ${id}))`;
}

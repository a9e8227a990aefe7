import { openSqlite, type SqliteDatabase, type SqliteOptions } from "./driver.ts";

/** One database file, opened by its first use and then kept. An opening that failed is tried again by the next use. */
export function singleDatabase(options: SqliteOptions): { open(): Promise<SqliteDatabase>; close(): Promise<void> } {
  let opening: Promise<SqliteDatabase> | undefined;
  return {
    open() {
      opening ??= openSqlite(options).catch((error) => {
        opening = undefined;
        throw error;
      });
      return opening;
    },
    async close() {
      const closing = opening;
      opening = undefined;
      (await closing?.catch(() => undefined))?.close();
    },
  };
}

import { openSqlite, type SqliteDatabase, type SqliteOptions } from "./driver.ts";

/** One database file, opened by its first use and then kept. An opening that failed is tried again by the next use. */
export function singleDatabase(options: SqliteOptions): SingleDatabase {
  let opening: Promise<SqliteDatabase> | undefined;
  let database: SqliteDatabase | undefined;
  return {
    open() {
      opening ??= openSqlite(options).then(
        (opened) => {
          database = opened;
          return opened;
        },
        (error) => {
          opening = undefined;
          throw error;
        },
      );
      return opening;
    },
    opened: () => database,
    async close() {
      const closing = opening;
      opening = undefined;
      database = undefined;
      (await closing?.catch(() => undefined))?.close();
    },
  };
}

interface SingleDatabase {
  open(): Promise<SqliteDatabase>;
  /** The database if it is open now: a short read need not wait for a promise. */
  opened(): SqliteDatabase | undefined;
  close(): Promise<void>;
}

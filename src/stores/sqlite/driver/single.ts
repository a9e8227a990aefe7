import { isSameFile } from "./databases.ts";
import { isDeleted, reportDeletion } from "./deleted-file.ts";
import { inodeOf, openSqlite, type SqliteDatabase, type SqliteOptions } from "./driver.ts";

/** Milliseconds between two checks of the file, each of which costs as much as a short read. A replaced file refuses writes itself. */
const CHECK_EVERY_MS = 10;

/**
 * Opens one database file with its first use and keeps it open. A failed opening is retried by the next use, and a file that a migration
 * or a restore replaced is opened again. A file that was deleted while open is refused.
 */
export function singleDatabase(options: SqliteOptions): SingleDatabase {
  const { path } = options;
  let opening: Promise<SqliteDatabase> | undefined;
  let opened: { readonly database: SqliteDatabase; readonly inode: number | undefined } | undefined;
  let loss: { readonly inode: number | undefined; readonly refusal: Promise<never> } | undefined;
  let checkedAt = 0;

  function forget(): void {
    opening = undefined;
    opened = undefined;
  }

  /** Returns the database that is open, if its file still has its name. */
  function current(): SqliteDatabase | undefined {
    if (!opened || path === ":memory:" || Date.now() - checkedAt < CHECK_EVERY_MS) return opened?.database;
    checkedAt = Date.now();
    if (isSameFile(path, opened.inode)) return opened.database;
    const { database, inode } = opened;
    forget();
    if (isDeleted(path, inode)) {
      loss = { inode: inodeOf(path), refusal: reportDeletion(database) };
      loss.refusal.catch(() => {}); // the next use is refused with it
    } else database.close();
    return undefined;
  }

  return {
    open() {
      current();
      if (loss && loss.inode === inodeOf(path)) return loss.refusal;
      loss = undefined; // a file was put back
      opening ??= openSqlite(options).then(
        (database) => {
          opened = { database, inode: inodeOf(path) };
          return database;
        },
        (error) => {
          forget();
          throw error;
        },
      );
      return opening;
    },
    getOpen: current,
    async close() {
      checkedAt = 0;
      current(); // copies the content of a deleted file first
      await loss?.refusal.catch(() => {});
      const closing = opening;
      forget();
      (await closing?.catch(() => undefined))?.close();
    },
  };
}

interface SingleDatabase {
  open(): Promise<SqliteDatabase>;
  /** Returns the database if it is open now, so that a short read need not wait for a promise. */
  getOpen(): SqliteDatabase | undefined;
  close(): Promise<void>;
}

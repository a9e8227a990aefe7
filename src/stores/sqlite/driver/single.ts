import { isSameFile } from "./databases.ts";
import { isDeleted, reportDeletion } from "./deleted-file.ts";
import { inodeOf, openSqlite, type SqliteDatabase, type SqliteOptions } from "./driver.ts";

/** Looking costs as much as a short read. A file that leaves refuses writes by itself, so only a read can come this much too late. */
const LOOK_AGAIN_MS = 10;

/**
 * One database file, opened by its first use and then kept. An opening that failed is tried again by the next use, and so is a
 * file that lost its name to a migration or a restore. A file that was deleted while open is refused.
 */
export function singleDatabase(options: SqliteOptions): SingleDatabase {
  const { path } = options;
  let opening: Promise<SqliteDatabase> | undefined;
  let opened: { readonly database: SqliteDatabase; readonly inode: number | undefined } | undefined;
  let loss: { readonly inode: number | undefined; readonly refusal: Promise<never> } | undefined;
  let lookedAt = 0;

  function forget(): void {
    opening = undefined;
    opened = undefined;
  }

  /** Returns the database that is open, if its file still has its name. */
  function current(): SqliteDatabase | undefined {
    if (!opened || path === ":memory:" || Date.now() - lookedAt < LOOK_AGAIN_MS) return opened?.database;
    lookedAt = Date.now();
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
    opened: current,
    async close() {
      lookedAt = 0;
      current(); // a file that was deleted is saved first
      await loss?.refusal.catch(() => {});
      const closing = opening;
      forget();
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

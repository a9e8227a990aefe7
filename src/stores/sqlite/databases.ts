import { inodeOf, openSqlite, type SqliteDatabase, type SqliteOptions } from "./driver.ts";

/** Gives the open database of a file, opening it when needed. Ask anew before each use: an idle one may have been closed. */
export type DatabaseHandle = () => Promise<SqliteDatabase>;

/** Keeps a bounded number of files open, so that a server with thousands of projects does not run out of descriptors. */
export interface SqliteDatabases {
  handle(options: SqliteOptions): DatabaseHandle;
  /** Closes this file, if it is open. The next use opens whatever is there then. */
  release(path: string): void;
  close(): void;
}

const OPEN_MAX = 100;

export function sqliteDatabases(openMax = OPEN_MAX): SqliteDatabases {
  const open = new Map<string, Promise<SqliteDatabase>>(); // in order of last use
  const ready = new Map<string, { readonly database: SqliteDatabase; readonly inode: number | undefined }>();

  function closeIdle(): void {
    for (const [path] of open) {
      if (open.size <= openMax) return;
      if (ready.get(path)?.database.idle) release(path);
    }
  }

  function release(path: string): void {
    const database = ready.get(path)?.database;
    open.delete(path);
    ready.delete(path);
    database?.close();
  }

  return {
    handle: (options) => () => {
      const { path } = options;
      // Somebody set the file aside, or put a backup in its place: what is stored from now on belongs in the new one.
      if (ready.has(path) && !isSameFile(path, ready.get(path)?.inode)) release(path);
      let opening = open.get(path);
      if (opening) {
        open.delete(path);
        open.set(path, opening);
        return opening;
      }
      opening = openSqlite(options);
      open.set(path, opening);
      opening.then(
        (database) => {
          if (open.get(path) !== opening) return database.close();
          ready.set(path, { database, inode: inodeOf(path) });
          closeIdle();
        },
        () => {
          if (open.get(path) === opening) open.delete(path);
        },
      );
      return opening;
    },
    release,
    close() {
      for (const { database } of ready.values()) database.close();
      ready.clear();
      open.clear();
    },
  };
}

/** Whether the file that was opened still has its name. One that had lost it by then does not. */
export function isSameFile(path: string, opened: number | undefined): boolean {
  return opened !== undefined && opened === inodeOf(path);
}

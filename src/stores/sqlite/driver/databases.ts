import { closedError } from "./closed-error.ts";
import { deletionOf, isDeleted, reportDeletion } from "./deleted-file.ts";
import { inodeOf, openSqlite, type SqliteDatabase, type SqliteOptions } from "./driver.ts";
import { type OpenSlots, processSlots, type SlotHolder } from "./open-slots.ts";

/** Returns the open database of a file and opens it if necessary. Call it before each use: an idle database may have been closed. */
export type DatabaseHandle = () => Promise<SqliteDatabase>;

/** Opens databases on demand and closes idle ones, so that a server with thousands of projects does not run out of descriptors. */
export interface SqliteDatabases {
  handle(options: SqliteOptions): DatabaseHandle;
  /** Returns whether the file was deleted while this or another process had it open. Its next use raises an error with the remedy. */
  isLost(path: string): boolean;
  /** Closes this file, if it is open. The next use opens the file that exists then. */
  release(path: string): void;
  close(): Promise<void>;
}

interface Entry extends SlotHolder {
  lastUse: number;
  opening: Promise<SqliteDatabase>;
  database: SqliteDatabase | undefined;
  inode: number | undefined;
}

interface Loss {
  /** The file that had the name when the loss was noticed. */
  readonly inode: number | undefined;
  readonly refusal: Promise<never>;
}

/** Counts the uses of all databases of this process. */
let uses = 0;

export function sqliteDatabases(slots: OpenSlots = processSlots()): SqliteDatabases {
  const entries = new Map<string, Entry>();
  const losses = new Map<string, Loss>();

  function release(path: string): void {
    losses.delete(path);
    const entry = entries.get(path);
    entries.delete(path);
    entry?.database?.close();
    if (entry) slots.free(entry);
  }

  /** Refuses every further use of a deleted file, and keeps it open until its content is saved. */
  function lose(path: string, entry: Entry, database: SqliteDatabase): Promise<never> {
    entries.delete(path);
    const refusal = reportDeletion(database).finally(() => slots.free(entry));
    refusal.catch(() => {}); // for a loss that was noticed before the next use
    losses.set(path, { inode: inodeOf(path), refusal });
    return refusal;
  }

  function closeIfIdle(path: string, entry: Entry): boolean {
    if (!entry.database?.idle || entries.get(path) !== entry) return false;
    if (isDeleted(path, entry.inode)) {
      void lose(path, entry, entry.database);
      return false;
    }
    release(path);
    return true;
  }

  function open(options: SqliteOptions): Promise<SqliteDatabase> {
    const { path } = options;
    const entry: Entry = {
      opening: Promise.resolve().then(() => openInSlot()),
      lastUse: ++uses,
      database: undefined,
      inode: undefined,
      closeIfIdle: () => closeIfIdle(path, entry),
    };
    async function openInSlot(): Promise<SqliteDatabase> {
      await slots.take(entry);
      try {
        const database = await openSqlite(options);
        entry.database = database;
        entry.inode = inodeOf(path);
        if (entries.get(path) === entry) return database;
        database.close(); // released while it was being opened
        throw closedError(path);
      } catch (error) {
        slots.free(entry);
        if (entries.get(path) === entry) entries.delete(path);
        throw error;
      }
    }
    entries.set(path, entry);
    return entry.opening;
  }

  return {
    handle: (options) => () => {
      const { path } = options;
      const loss = losses.get(path);
      if (loss && loss.inode === inodeOf(path)) return loss.refusal;
      losses.delete(path); // a file was put back
      const entry = entries.get(path);
      if (entry?.database && !isSameFile(path, entry.inode)) {
        if (isDeleted(path, entry.inode)) return lose(path, entry, entry.database);
        release(path); // a migration or a restore kept the file under another name: writes belong in the new one
      }
      const known = entries.get(path);
      if (!known) return open(options);
      known.lastUse = ++uses;
      return known.opening;
    },
    isLost(path) {
      const entry = entries.get(path);
      return losses.has(path) || deletionOf(path) !== undefined || (entry?.database !== undefined && isDeleted(path, entry.inode));
    },
    release,
    async close() {
      const lost: Promise<unknown>[] = [...losses.values()].map(({ refusal }) => refusal);
      for (const [path, entry] of entries)
        if (entry.database && isDeleted(path, entry.inode)) lost.push(lose(path, entry, entry.database));
        else release(path);
      await Promise.allSettled(lost);
    },
  };
}

/** Returns whether the file that was opened still has its name. */
export function isSameFile(path: string, opened: number | undefined): boolean {
  return opened !== undefined && opened === inodeOf(path);
}

import { constants, copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { CairnError } from "../../../model/errors.ts";
import type { DatabaseSchema } from "../../../model/schema.ts";
import type { Counters, DatabaseShape, MigrationSource, Trace } from "../../../ports/migration.ts";
import { poll } from "../../../scheduling/retry.ts";
import { waitLimitMs } from "../../../scheduling/time-limit.ts";
import { syncFile, syncFolder } from "../backup/copy-file.ts";
import { openSqlite } from "../driver/driver.ts";
import { loadEngine } from "../driver/engine.ts";
import { codeFileOf } from "../projects/code/code-file.ts";
import { dropFence, fenceOf, ordinaryTables, raiseFence } from "./fence.ts";
import { acquireMigrationLock } from "./lock.ts";
import { sqliteRows } from "./rows.ts";

export interface SqliteMigrationOptions {
  readonly path: string;
  readonly schema: DatabaseSchema;
  readonly shape: DatabaseShape;
  readonly trace?: Trace | undefined;
}

/** A SQLite file that goes to PostgreSQL. */
export function sqliteMigrationSource({ path, schema, shape, trace = () => {} }: SqliteMigrationOptions): MigrationSource {
  let connection: DatabaseSync | undefined;
  let release: (() => void) | undefined;

  async function connected(): Promise<DatabaseSync> {
    if (connection) return connection;
    if (!existsSync(path)) throw new CairnError("not_found", `There is no database file ${path}.`, { details: { path } });
    const { DatabaseSync } = await loadEngine();
    const opened = new DatabaseSync(path, { timeout: 1_000, enableForeignKeyConstraints: true });
    connection = opened;
    // The tables are those that this version knows, unless a move has begun already: then nobody may change them.
    if (fenceOf(opened) === undefined) (await openSqlite({ path, schema, mustExist: true })).close();
    return opened;
  }

  function disconnect(): void {
    connection?.close();
    connection = undefined;
  }

  /** A move that was undone after it had archived the file. */
  function restore(migrationId: string): void {
    if (existsSync(path)) return;
    disconnect();
    placeCopy(archivePath(path, migrationId), path, trace);
  }

  return {
    where: path,

    async lock() {
      release ??= await acquireMigrationLock(path);
    },

    exists: async () => existsSync(path),

    async unknownTables() {
      const known = new Set([...shape.tables.map(({ name }) => name), ...shape.derived]);
      return ordinaryTables(await connected()).filter((table) => !known.has(table));
    },

    async *rows(table) {
      yield* sqliteRows(await connected(), table);
    },

    async counters() {
      return sqliteCounters(await connected(), shape);
    },

    async pause(migrationId) {
      restore(migrationId);
      await raiseFence(await connected(), path, migrationId);
      trace("pause");
    },

    async archive(migrationId) {
      const archived = archivePath(path, migrationId);
      if (existsSync(archived) && !existsSync(path)) return archived;
      await emptyWal(await connected(), path);
      trace("wal emptied");
      disconnect();
      mkdirSync(dirname(archived), { recursive: true, mode: 0o700 });
      renameSync(path, archived);
      trace("archived");
      syncFolder(dirname(path));
      syncFolder(dirname(archived));
      // Empty by now. Those who have the old file open keep theirs; a file that takes its place must not find them.
      for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
      trace("wal removed");
      // The code index is not copied: it is derived, and an index run builds it again on the other side.
      if (shape.kind === "project") for (const end of ["", "-wal", "-shm"]) rmSync(codeFileOf(path) + end, { force: true });
      return archived;
    },

    async resume(migrationId) {
      restore(migrationId);
      await dropFence(await connected(), path);
      trace("resumed");
    },

    async close() {
      disconnect();
      release?.();
      release = undefined;
    },
  };
}

/** Lets writes through to a file that is paused though no move of it is noted: a backup from the middle of one. Says whether it was. */
export async function dropStrayFence(path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path, { timeout: 1_000 });
  try {
    if (fenceOf(connection) === undefined) return false;
    await dropFence(connection, path);
    return true;
  } finally {
    connection.close();
  }
}

export function archivePath(path: string, migrationId: string): string {
  return join(dirname(path), "archive", `${basename(path, ".db")}-${migrationId}.db`);
}

/**
 * A copy, and not the archived file itself: whoever still has that one open must see that another has taken its place.
 * The archive has no WAL, so its file is all of it.
 */
export function placeCopy(archive: string, path: string, trace: Trace): void {
  if (!existsSync(archive))
    throw new CairnError("not_found", `Neither ${path} nor ${archive} is there. Restore a backup.`, { details: { path } });
  const made = `${path}.incoming`;
  rmSync(made, { force: true });
  copyFileSync(archive, made, constants.COPYFILE_FICLONE);
  syncFile(made);
  trace("copied back");
  // Nothing of another database may be left beside it.
  for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
  renameSync(made, path);
  syncFolder(dirname(path));
  trace("placed back");
}

/** The last number that each table gave out. */
export function sqliteCounters(connection: DatabaseSync, shape: DatabaseShape): Counters {
  const found: Record<string, string> = {};
  if (shape.tables.every(({ counter }) => counter === undefined)) return found; // SQLite has made no table of them
  const given = connection.prepare("SELECT CAST(seq AS TEXT) AS seq FROM sqlite_sequence WHERE name = ?");
  for (const { name, counter } of shape.tables) {
    if (counter === undefined) continue;
    found[name] = (given.get(name) as { seq: string } | undefined)?.seq ?? "0";
  }
  return found;
}

/** Brings everything into the file itself; whoever reads it is waited for. */
export async function emptyWal(connection: DatabaseSync, path: string): Promise<void> {
  const truncate = () => (connection.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { busy: number }).busy === 0 || undefined;
  if (!(await poll(truncate, { everyMs: 20, limitMs: waitLimitMs() })))
    throw new CairnError("unavailable", `Another process reads ${path} and does not stop. End it, then run the migration again.`);
}

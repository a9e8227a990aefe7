import { constants, copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { CairnError } from "../../../model/errors.ts";
import type { DatabaseSchema } from "../../../model/schema.ts";
import type { Counters, DatabaseShape, MigrationSource, Trace } from "../../../ports/migration.ts";
import { waitLimitMs } from "../../../scheduling/calls.ts";
import { poll } from "../../../scheduling/retry.ts";
import { syncFile, syncFolder } from "../backup/copy-file.ts";
import { openSqlite } from "../driver/driver.ts";
import { loadEngine } from "../driver/engine.ts";
import { codeFileOf } from "../projects/code/code-file.ts";
import { removeAllSeeds } from "../projects/code/seed.ts";
import { createFence, dropFence, ordinaryTables, readFenceId } from "./fence.ts";
import { acquireMigrationLock } from "./lock.ts";
import { sqliteRows } from "./rows.ts";

export interface SqliteMigrationOptions {
  readonly path: string;
  readonly schema: DatabaseSchema;
  readonly shape: DatabaseShape;
  readonly trace?: Trace | undefined;
}

/** Returns a SQLite file as the source of a migration to PostgreSQL. */
export function sqliteMigrationSource({ path, schema, shape, trace = () => {} }: SqliteMigrationOptions): MigrationSource {
  let connection: DatabaseSync | undefined;
  let release: (() => void) | undefined;

  async function connect(): Promise<DatabaseSync> {
    if (connection) return connection;
    if (!existsSync(path)) throw new CairnError("not_found", `There is no database file ${path}.`, { details: { path } });
    const { DatabaseSync } = await loadEngine();
    const opened = new DatabaseSync(path, { timeout: 1_000, enableForeignKeyConstraints: true });
    connection = opened;
    // Creates or checks the schema, unless a fence already forbids changes.
    if (readFenceId(opened) === undefined) (await openSqlite({ path, schema, mustExist: true })).close();
    return opened;
  }

  function disconnect(): void {
    connection?.close();
    connection = undefined;
  }

  /** Restores the archived file of a migration that is undone. */
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
    isRemoved: async () => !existsSync(path),

    async unknownTables() {
      const known = new Set([...shape.tables.map(({ name }) => name), ...shape.derived]);
      return ordinaryTables(await connect()).filter((table) => !known.has(table));
    },

    async *rows(table) {
      yield* sqliteRows(await connect(), table);
    },

    async counters() {
      return sqliteCounters(await connect(), shape);
    },

    async fence(migrationId) {
      restore(migrationId);
      await createFence(await connect(), path, migrationId);
      trace("fenced");
    },

    async archive(migrationId) {
      const archived = archivePath(path, migrationId);
      if (existsSync(archived) && !existsSync(path)) return archived;
      await emptyWal(await connect(), path);
      trace("wal emptied");
      disconnect();
      mkdirSync(dirname(archived), { recursive: true, mode: 0o700 });
      renameSync(path, archived);
      trace("archived");
      syncFolder(dirname(path));
      syncFolder(dirname(archived));
      // Empty by now. Processes with the old file open keep their own; a new file at this path must not use these.
      for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
      trace("wal removed");
      // The code index is not copied: it is derived, and an index run builds it again on the other side.
      if (shape.kind === "project") {
        for (const end of ["", "-wal", "-shm"]) rmSync(codeFileOf(path) + end, { force: true });
        removeAllSeeds(codeFileOf(path));
      }
      return archived;
    },

    async unfence(migrationId) {
      restore(migrationId);
      await dropFence(await connect(), path);
      trace("unfenced");
    },

    async close() {
      disconnect();
      release?.();
      release = undefined;
    },
  };
}

/** Removes the fence of a file without a record, such as a backup made during a migration. Returns whether there was one. */
export async function dropStrayFence(path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path, { timeout: 1_000 });
  try {
    if (readFenceId(connection) === undefined) return false;
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
 * Copies the archive to the path. A copy has another inode, so that processes with the archived file open notice the replacement.
 * The archive has no WAL, so the file is complete.
 */
export function placeCopy(archive: string, path: string, trace: Trace): void {
  if (!existsSync(archive))
    throw new CairnError("not_found", `Neither ${path} nor ${archive} exists. Restore a backup.`, { details: { path } });
  const made = `${path}.incoming`;
  rmSync(made, { force: true });
  copyFileSync(archive, made, constants.COPYFILE_FICLONE);
  syncFile(made);
  trace("copied back");
  // A WAL of another database must not remain next to it.
  for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
  renameSync(made, path);
  syncFolder(dirname(path));
  trace("placed back");
}

/** Returns the last AUTOINCREMENT value of each table. */
export function sqliteCounters(connection: DatabaseSync, shape: DatabaseShape): Counters {
  const found: Record<string, string> = {};
  if (shape.tables.every(({ counter }) => counter === undefined)) return found; // then sqlite_sequence does not exist
  const given = connection.prepare("SELECT CAST(seq AS TEXT) AS seq FROM sqlite_sequence WHERE name = ?");
  for (const { name, counter } of shape.tables) {
    if (counter === undefined) continue;
    found[name] = (given.get(name) as { seq: string } | undefined)?.seq ?? "0";
  }
  return found;
}

/** Runs a truncating WAL checkpoint, waiting for readers. */
export async function emptyWal(connection: DatabaseSync, path: string): Promise<void> {
  const truncate = () => (connection.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { busy: number }).busy === 0 || undefined;
  if (!(await poll(truncate, { everyMs: 20, limitMs: waitLimitMs() })))
    throw new CairnError("unavailable", `Another process keeps reading ${path}. Stop it, then run the migration again.`);
}

import { existsSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CairnError, isTooManyOpenFiles, tooManyOpenFiles } from "../../../model/errors.ts";
import type { MigrationRecord } from "../../../model/migration.ts";
import { syncFolder } from "../backup/copy-file.ts";

/** Returns the path of the record, next to the database file. */
export function migrationRecordPath(path: string): string {
  return `${path}.migration`;
}

/** Returns whether a migration of this file was started, finished or not. */
export function hasMigrationRecord(path: string): boolean {
  return existsSync(migrationRecordPath(path));
}

export function readMigrationRecord(path: string): MigrationRecord | undefined {
  let text: string;
  try {
    text = readFileSync(migrationRecordPath(path), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw isTooManyOpenFiles(error) ? tooManyOpenFiles(error) : error;
  }
  return JSON.parse(text) as MigrationRecord;
}

/** Creates the first record of a migration. Of two processes that start one at the same time, one gets `conflict`. */
export function createMigrationRecord(path: string, record: MigrationRecord): void {
  const made = `${migrationRecordPath(path)}.${process.pid}`;
  writeFileSync(made, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600, flush: true });
  try {
    linkSync(made, migrationRecordPath(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new CairnError("conflict", `Another process is migrating ${path} now. Wait until it has finished.`, { cause: error });
  } finally {
    rmSync(made, { force: true });
  }
  syncFolder(dirname(path));
}

/** Replaces the record atomically, also across a power failure. */
export function writeMigrationRecord(path: string, record: MigrationRecord): void {
  const target = migrationRecordPath(path);
  const made = `${target}.new`;
  rmSync(made, { force: true });
  writeFileSync(made, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(made, target);
  syncFolder(dirname(target));
}

export function removeMigrationRecord(path: string): void {
  rmSync(migrationRecordPath(path), { force: true });
  syncFolder(dirname(path));
}

/** Returns the PostgreSQL URL of a database that is not in this file any more. */
export function migratedTo(path: string): string | undefined {
  const record = readMigrationRecord(path);
  return record && isMigrated(record) ? record.url : undefined;
}

/** Returns whether PostgreSQL is authoritative: a migration back to SQLite changes that only at its end. */
export function isMigrated({ direction, state }: MigrationRecord): boolean {
  return direction === "down" || state === "migrated";
}

/** Returns the migration records of a folder, finished or not. */
export function listMigrationRecords(folder: string): MigrationRecord[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((file) =>
    file.endsWith(".db.migration") ? (readMigrationRecord(join(folder, file.slice(0, -".migration".length))) ?? []) : [],
  );
}

/** Returns the ids of projects or systems of this folder that are on PostgreSQL. */
export function listMigrated(folder: string): string[] {
  return listMigrationRecords(folder).flatMap((record) => (isMigrated(record) ? (record.projectId ?? []) : []));
}

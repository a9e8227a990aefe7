import { existsSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CairnError } from "../../../model/errors.ts";
import type { MigrationRecord } from "../../../model/migration.ts";
import { syncFolder } from "../backup/copy-file.ts";

/** Beside the database file, so that whoever looks for it finds out where it went. */
export function migrationRecordPath(path: string): string {
  return `${path}.migration`;
}

export function hasMigrationRecord(path: string): boolean {
  return existsSync(migrationRecordPath(path));
}

export function readMigrationRecord(path: string): MigrationRecord | undefined {
  let text: string;
  try {
    text = readFileSync(migrationRecordPath(path), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return JSON.parse(text) as MigrationRecord;
}

/** The first record of a move: of two processes that begin one at the same moment, one is refused. */
export function createMigrationRecord(path: string, record: MigrationRecord): void {
  const made = `${migrationRecordPath(path)}.${process.pid}`;
  writeFileSync(made, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600, flush: true });
  try {
    linkSync(made, migrationRecordPath(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new CairnError("conflict", `Another process has just begun to move ${path}. Wait until it is done.`, { cause: error });
  } finally {
    rmSync(made, { force: true });
  }
  syncFolder(dirname(path));
}

/** All of the new record or all of the old one, whenever the machine stops. */
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

/** Where the database of this file is now, if it is not here: on PostgreSQL, until it is back. */
export function migratedTo(path: string): string | undefined {
  const record = readMigrationRecord(path);
  return record && isMigrated(record) ? record.url : undefined;
}

export function isMigrated({ direction, state }: MigrationRecord): boolean {
  return direction === "down" || state === "migrated";
}

/** The moves of files of this folder, finished or not. */
export function listMigrationRecords(folder: string): MigrationRecord[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((file) =>
    file.endsWith(".db.migration") ? (readMigrationRecord(join(folder, file.slice(0, -".migration".length))) ?? []) : [],
  );
}

/** The projects or systems whose files should be in this folder and are away. */
export function listMigrated(folder: string): string[] {
  return listMigrationRecords(folder).flatMap((record) => (isMigrated(record) ? (record.projectId ?? []) : []));
}

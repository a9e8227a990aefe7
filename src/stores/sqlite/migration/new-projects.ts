import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "../../../files/make-folder.ts";
import { CairnError, isTooManyOpenFiles, tooManyOpenFiles } from "../../../model/errors.ts";
import { projectDatabaseName } from "../../../model/ids.ts";
import { syncFolder } from "../backup/copy-file.ts";
import { createMigrationRecord, hasMigrationRecord, removeMigrationRecord } from "./record.ts";

/** Where projects without a database are created, once all databases of a folder were migrated. */
export interface NewProjects {
  readonly url: string;
  /** Host and database, for messages. */
  readonly where: string;
  readonly since: string;
}

/** Mode 0600, because the URL may contain a password. */
const FILE = "new-projects.json";

export function readNewProjects(folder: string): NewProjects | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, FILE), "utf8")) as NewProjects;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw isTooManyOpenFiles(error) ? tooManyOpenFiles(error) : error;
  }
}

/** Makes new projects of this folder begin on PostgreSQL; `undefined`: in SQLite again. Atomic and durable. */
export function writeNewProjects(folder: string, place: NewProjects | undefined): void {
  if (place) makeFolder(folder);
  else if (!existsSync(folder)) return;
  const path = join(folder, FILE);
  if (place) {
    const made = `${path}.new`;
    rmSync(made, { force: true });
    writeFileSync(made, `${JSON.stringify(place, null, 2)}\n`, { mode: 0o600, flush: true });
    renameSync(made, path);
  } else rmSync(path, { force: true });
  syncFolder(folder);
}

/**
 * Records that a project without a database is on PostgreSQL, if new projects of its folder are. Of two processes that create the
 * project at the same time, one writes the record and the other finds it.
 */
export function placeNewProject(folder: string, path: string, projectId: string, now: string): void {
  if (existsSync(path) || hasMigrationRecord(path)) return;
  const place = readNewProjects(folder);
  if (!place) return;
  const migrationId = `new-${now.replace(/[-:.+]/g, "").toLowerCase()}`;
  const record = { migrationId, direction: "up", state: "migrated", isNew: true, startedAt: now, projectId } as const;
  try {
    createMigrationRecord(path, { ...record, url: place.url, where: `${place.where} (schema ${projectDatabaseName(projectId)})` });
  } catch (error) {
    if (!(error instanceof CairnError && error.code === "conflict")) throw error;
    return;
  }
  // A process that read no place yet created the file meanwhile: the record would hide its rows.
  if (existsSync(path)) removeMigrationRecord(path);
}

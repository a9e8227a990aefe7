import { createHash, hash, randomUUID } from "node:crypto";
import { CairnError } from "./errors.ts";

/** Identity is computed here and nowhere else: names of databases, content hashes, ids and times of new records. */

export function newId(): string {
  return randomUUID();
}

/** Returns the time of a new record: ISO 8601 in UTC with milliseconds. */
export type Clock = () => string;

export const systemClock: Clock = () => new Date().toISOString();

export function sha256Hex(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** A hash over several parts that no other split of the same bytes can produce: each part is preceded by its length. */
export function framedHash(...parts: readonly (string | number)[]): string {
  // One text and one update: each update costs more than hashing a short part.
  let framed = "";
  for (const part of parts) {
    const text = String(part);
    framed += `${Buffer.byteLength(text)}:${text}`;
  }
  return hash("sha256", framed, "hex"); // a third of the time of createHash for a short text
}

/** The name of the database that holds a project, and nothing of any other. */
export function projectDatabaseName(projectId: string): string {
  if (projectId === SHARED_PROJECT_ID) return SHARED_DATABASE_NAME;
  return `project_${sha256Hex(projectId).slice(0, 16)}`;
}

/** Knowledge for all projects lives here. No project id can hash to this name. */
export const SHARED_DATABASE_NAME = "shared";

/** Stands for a project where knowledge of all projects is meant. It is no absolute path, so no project has it. */
export const SHARED_PROJECT_ID = "shared";

/** Refuses the id of the shared database where a project is meant. */
export function assertProject(projectPath: string): void {
  if (projectPath === SHARED_PROJECT_ID)
    throw new CairnError("invalid_input", 'projectPath: "shared" is not a project; it holds knowledge only. Give the path of a project.');
}

/** The name of the database that holds a system where names are not free: a schema of PostgreSQL. A file bears the system's id itself. */
export function systemDatabaseName(systemId: string): string {
  return `system_${sha256Hex(systemId).slice(0, 16)}`;
}

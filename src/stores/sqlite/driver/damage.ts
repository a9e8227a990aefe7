import { existsSync, linkSync, mkdirSync, renameSync, rmSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { CairnError } from "../../../model/errors.ts";
import { runInThread } from "../../../scheduling/run-in-thread.ts";
import type { FileCheck } from "../projects/check-records.ts";
import { otherUsers } from "./other-users.ts";

/** Checks the whole file and every record in it, in a thread. Changes nothing. */
export function checkFile(path: string): Promise<FileCheck> {
  return runInThread("stores/sqlite/projects/check-worker.js", path);
}

export interface QuarantineFile {
  readonly path: string;
  /** The quarantine folder. */
  readonly folder: string;
  readonly at: string;
  /** Written to the report next to the file. */
  readonly projectPath: string;
  readonly problems: readonly string[];
}

/**
 * Sets a database file aside, with its WAL, and writes a report next to it. Nothing is deleted, and a kill at any moment
 * loses nothing: every file has its new name before the first loses its old one. Returns the new path.
 */
export function quarantineFile({ path, folder, at, projectPath, problems }: QuarantineFile): string {
  assertUnused(path, "set the database aside");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const target = join(folder, `${basename(path)}.damaged-${at.replace(/[-:.]/g, "")}`);
  const parts = ["", "-wal", "-shm"].filter((suffix) => existsSync(path + suffix));
  const report = {
    project_path: projectPath,
    original_path: path,
    quarantined_at: at,
    problems,
    files: parts.map((suffix) => ({ name: basename(target + suffix), bytes: statSync(path + suffix).size })),
  };
  writeFileSync(`${target}.json`, `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600, flag: "wx" });
  if (parts.every((suffix) => tryLink(path + suffix, target + suffix))) {
    // The database is removed first: SQLite discards an old WAL next to a new file, but not next to an old one.
    for (const suffix of parts) unlinkSync(path + suffix);
  } else {
    for (const suffix of parts) renameSync(path + suffix, target + suffix);
  }
  return parts.length > 0 ? target : `${target}.json`;
}

/** Deletes database files with their WALs, unless another process has one of them open. The last file is deleted last. */
export function removeFiles(paths: readonly string[]): void {
  for (const path of paths) assertUnused(path, "delete the database");
  for (const path of paths) for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}

function assertUnused(path: string, then: string): void {
  const others = otherUsers(path) ?? [];
  if (others.length > 0)
    throw new CairnError(
      "conflict",
      `The database ${path} is in use by ${others.length === 1 ? "process" : "processes"} ${others.join(", ")}. Stop it, then ${then}.`,
      { details: { path, processes: others } },
    );
}

export function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    // Some file systems have no hard links. A rename does the same, except for a kill in between.
    if (["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

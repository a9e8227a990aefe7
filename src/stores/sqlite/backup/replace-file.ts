import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, unlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { CairnError } from "../../../model/errors.ts";
import { poll } from "../../../scheduling/retry.ts";
import { tryLink } from "../driver/damage.ts";
import { forgetDeletion } from "../driver/deleted-file.ts";
import { inodeOf } from "../driver/driver.ts";
import { loadEngine, releaseClosedConnections } from "../driver/engine.ts";
import { isBusy, isDamage, translateSqliteError } from "../driver/errors.ts";
import { otherUsers } from "../driver/other-users.ts";
import { hasMigrationRecord } from "../migration/record.ts";
import { syncFolder } from "./copy-file.ts";

export interface ReplaceFile {
  readonly path: string;
  /** The replacement: a complete, verified and synced database file in the same folder. */
  readonly by: string;
  /** The new path of the old file, on the same disk. */
  readonly aside: string;
  /** Milliseconds to wait for other processes to close the database. */
  readonly waitMs?: number;
}

const WAIT_MS = 2_000;

/**
 * Replaces a database file atomically: after a crash at any moment, the path holds the complete old file or the complete new one. Keeps
 * the old file under another name. Refuses while another process has the database open, because its writes would be lost. Returns the
 * new path of the old file, if there was one.
 */
export async function replaceFile({ path, by, aside, waitMs = WAIT_MS }: ReplaceFile): Promise<string | undefined> {
  if (hasMigrationRecord(path))
    throw new CairnError(
      "conflict",
      `The database ${path} is on PostgreSQL or being migrated. Migrate it back first with: cairn migrate --to sqlite`,
      { details: { path } },
    );
  removeStaleLinks(path, dirname(aside));
  const there = existsSync(path);
  const letGo = there ? await takeAlone(path, waitMs) : () => {};
  try {
    const parts = ["", "-wal", "-journal"].filter((suffix) => existsSync(path + suffix));
    if (parts.length > 0) mkdirSync(dirname(aside), { recursive: true, mode: 0o700 });
    const keptByLink = parts.every((suffix) => tryLink(path + suffix, aside + suffix));
    if (!keptByLink) for (const suffix of parts) renameSync(path + suffix, aside + suffix); // a file system without hard links
    if (parts.length > 0) syncFolder(dirname(aside));
    // The old WAL must not stay next to the new file: SQLite would replay it.
    if (keptByLink) for (const suffix of parts.filter((part) => part !== "")) unlinkSync(path + suffix);
    rmSync(`${path}-shm`, { force: true }); // an index of the WAL
    if (there) renameSync(by, path);
    else placeNew(by, path);
    forgetDeletion(path);
    syncFolder(dirname(path));
    return there ? aside : undefined;
  } finally {
    letGo();
  }
}

/** Removes the second name of the file in use that a killed restore left. */
function removeStaleLinks(path: string, folder: string): void {
  const inode = inodeOf(path);
  if (inode === undefined || !existsSync(folder)) return;
  for (const name of readdirSync(folder))
    if (name.startsWith(basename(path)) && statSync(join(folder, name), { throwIfNoEntry: false })?.ino === inode)
      unlinkSync(join(folder, name));
}

/** Links instead of renaming: a rename would overwrite a file that another process has just created. */
function placeNew(by: string, path: string): void {
  try {
    linkSync(by, path);
    unlinkSync(by);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST")
      throw new CairnError(
        "conflict",
        `The database ${path} was created by another process meanwhile. Stop that process, then restore with overwrite.`,
      );
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"].includes(code ?? "")) throw error;
    renameSync(by, path);
  }
}

/**
 * Locks the database against every other connection, or raises `conflict`. Leaving WAL mode succeeds only without other
 * connections, in this process and others. For a file too damaged to open, the operating system reports its users.
 */
async function takeAlone(path: string, waitMs: number): Promise<() => void> {
  const { DatabaseSync } = await loadEngine();
  let busy: unknown;
  const attempt = async () => {
    const probe = new DatabaseSync(path, { readOnly: true, timeout: 0 });
    let connection = probe;
    try {
      probe.exec("SELECT 1 FROM sqlite_master"); // read-only first: closing any other connection would change a damaged database's log
      probe.close();
      connection = new DatabaseSync(path, { timeout: 0 });
      // No prepared statement: one would keep the lock on after the connection is closed (see below).
      connection.exec("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
      if (!existsSync(`${path}-wal`)) return () => connection.close();
      connection.close(); // another process came in between and made it a WAL database again
    } catch (error) {
      connection.close();
      if (isDamage(error) && (otherUsers(path) ?? []).length === 0) return () => {};
      if (!isBusy(error) && !isDamage(error)) throw translateSqliteError(error, path);
      busy = error;
    }
    await releaseClosedConnections();
    return undefined;
  };
  const release = await poll(attempt, { everyMs: 20, limitMs: waitMs });
  if (!release) throw inUse(path, busy);
  return release;
}

function inUse(path: string, cause: unknown): CairnError {
  const processes = otherUsers(path) ?? [];
  const who = processes.length > 0 ? `process${processes.length === 1 ? "" : "es"} ${processes.join(", ")}` : "another connection";
  return new CairnError(
    "conflict",
    `The database ${path} is in use by ${who}. Nothing was changed. Stop what uses it (servers, MCP sessions, runs), then restore again.`,
    { cause, details: { path, processes } },
  );
}

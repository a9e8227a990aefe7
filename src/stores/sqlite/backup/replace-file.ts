import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, unlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { CairnError } from "../../../model/errors.ts";
import { poll } from "../../../scheduling/retry.ts";
import { linked } from "../driver/damage.ts";
import { forgetDeletion } from "../driver/deleted-file.ts";
import { inodeOf } from "../driver/driver.ts";
import { loadEngine, releaseClosedConnections } from "../driver/engine.ts";
import { isBusy, isDamage, translateSqliteError } from "../driver/errors.ts";
import { otherUsers } from "../driver/other-users.ts";
import { hasMigrationRecord } from "../migration/record.ts";
import { syncFolder } from "./copy-file.ts";

export interface ReplaceFile {
  readonly path: string;
  /** A whole database file in the same folder, verified and on the disk. It takes the place of the other one. */
  readonly by: string;
  /** Where the old one is kept; on the same disk. */
  readonly aside: string;
  /** How long to wait for others to close the database. */
  readonly waitMs?: number;
}

const WAIT_MS = 2_000;

/**
 * Replaces a database file atomically: every process, also after a crash at any moment, finds the old one
 * or the new one, whole. The old one is kept aside. Refuses while anybody else has the database open, because what they write in
 * that moment would be in neither. Returns the new path of the old one, if there was one.
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
    const keptByLink = parts.every((suffix) => linked(path + suffix, aside + suffix));
    if (!keptByLink) for (const suffix of parts) renameSync(path + suffix, aside + suffix); // a file system without hard links
    if (parts.length > 0) syncFolder(dirname(aside));
    // A log of the old database must never be found beside the new one: SQLite would write it into it.
    if (keptByLink) for (const suffix of parts.filter((part) => part !== "")) unlinkSync(path + suffix);
    rmSync(`${path}-shm`, { force: true }); // nothing but an index of that log
    if (there) renameSync(by, path);
    else placeNew(by, path);
    forgetDeletion(path);
    syncFolder(dirname(path));
    return there ? aside : undefined;
  } finally {
    letGo();
  }
}

/** A restore that was killed before the last step left a second name of the very file that is in use. */
function removeStaleLinks(path: string, folder: string): void {
  const inode = inodeOf(path);
  if (inode === undefined || !existsSync(folder)) return;
  for (const name of readdirSync(folder))
    if (name.startsWith(basename(path)) && statSync(join(folder, name), { throwIfNoEntry: false })?.ino === inode)
      unlinkSync(join(folder, name));
}

/** A link fails where a rename would overwrite what another process has just made. */
function placeNew(by: string, path: string): void {
  try {
    linkSync(by, path);
    unlinkSync(by);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST")
      throw new CairnError("conflict", `The database ${path} was made by another process just now. Stop it, and restore with overwrite.`);
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
    const looking = new DatabaseSync(path, { readOnly: true, timeout: 0 });
    let connection = looking;
    try {
      looking.exec("SELECT 1 FROM sqlite_master"); // read-only first: closing any other connection would change a damaged database's log
      looking.close();
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

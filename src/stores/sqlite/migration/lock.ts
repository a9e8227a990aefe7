import { closeSync, existsSync, mkdirSync, openSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { CairnError } from "../../../model/errors.ts";
import { abandonedMigration } from "../../../model/migration.ts";
import { poll } from "../../../scheduling/retry.ts";
import { isSameFile } from "../driver/databases.ts";
import { inodeOf } from "../driver/driver.ts";
import { loadEngine } from "../driver/engine.ts";
import { isBusy, translateSqliteError } from "../driver/errors.ts";
import { readFenceId } from "./fence.ts";
import { readMigrationRecord } from "./record.ts";

/** Waits this many milliseconds for another migration of the same file. */
const LOCK_WAIT_MS = 15_000;

/**
 * Marks the migration of a database as running, until the returned function is called or the process ends. It is a SQLite lock on
 * an empty file, which the operating system releases with the process.
 */
export async function acquireMigrationLock(path: string): Promise<() => void> {
  const { DatabaseSync } = await loadEngine();
  const file = lockFile(path);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  let busy: unknown;
  const attempt = () => {
    makePrivate(file);
    const inode = inodeOf(file);
    const connection = new DatabaseSync(file, { timeout: 0 });
    try {
      connection.exec("BEGIN EXCLUSIVE");
      if (isSameFile(file, inode))
        return () => {
          rmSync(file, { force: true });
          connection.exec("ROLLBACK");
          connection.close();
        };
      connection.close(); // a lock on a file that the last migration has removed excludes no other process
    } catch (error) {
      connection.close();
      if (!isBusy(error)) throw error;
      busy = error;
    }
    return undefined;
  };
  const release = await poll(attempt, { everyMs: 50, limitMs: LOCK_WAIT_MS });
  if (!release) throw new CairnError("conflict", `Another process is migrating ${path} now. Wait until it has finished.`, { cause: busy });
  return release;
}

/** Returns whether a live process is migrating this database. */
export async function isMigrationRunning(path: string): Promise<boolean> {
  const file = lockFile(path);
  if (!existsSync(file)) return false;
  const { DatabaseSync } = await loadEngine();
  let connection: InstanceType<typeof DatabaseSync> | undefined;
  try {
    connection = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    connection.exec("SELECT 1 FROM sqlite_master");
    return false;
  } catch (error) {
    return isBusy(error); // any other error: the file was removed at this moment
  } finally {
    connection?.close();
  }
}

/**
 * Returns the error for a database whose migration was abandoned, or `undefined` while a migration runs or none is needed.
 * `flags` names the database on the command line.
 */
export async function findAbandonedMigration(path: string, flags: string | undefined): Promise<CairnError | undefined> {
  if (await isMigrationRunning(path)) return undefined;
  const record = readMigrationRecord(path);
  if (record?.state === "migrated") return undefined;
  if (!record && !(await isFenced(path))) return undefined;
  if (await isMigrationRunning(path)) return undefined; // another process has just continued it
  return abandonedMigration(path, flags, record);
}

/** Returns whether the file is fenced. False while it is locked or renamed: the next attempt checks again. */
async function isFenced(path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  const { DatabaseSync } = await loadEngine();
  let connection: InstanceType<typeof DatabaseSync> | undefined;
  try {
    connection = new DatabaseSync(path, { readOnly: true, timeout: 100 });
    return readFenceId(connection) !== undefined;
  } catch (error) {
    if (isBusy(error) || !existsSync(path)) return false;
    throw translateSqliteError(error, path);
  } finally {
    connection?.close();
  }
}

function lockFile(path: string): string {
  return `${path}.migration.lock`;
}

/** Creates the file with mode 0600. Does not open an existing file: closing it would release this process's locks on it. */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, "ax", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { damagedCodeIndex } from "../../../model/code-index.ts";
import { CairnError, isTooManyOpenFiles, tooManyOpenFiles } from "../../../model/errors.ts";
import { migratingError } from "../../../model/migration.ts";
import { isCodeFile } from "../projects/code/code-file.ts";

/** The error message of the triggers in a fenced database. */
export const MIGRATING = "cairn: this database is being migrated";
/** The file was renamed while it was open. */
const READONLY_DBMOVED = 1032;

/** SQLite's primary result codes that Cairn handles. */
const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const CONSTRAINT = 19;
const NOTADB = 26;

export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === BUSY || code === LOCKED;
}

export function isDamage(error: unknown): boolean {
  const code = primaryCode(error);
  return code === CORRUPT || code === NOTADB;
}

/** Translates the error of a statement to what it means for the user, with the file in the details. */
export function translateSqliteError(error: unknown, path: string): unknown {
  if (error instanceof CairnError) return error;
  const details = { path };
  if (isFenceError(error)) return migratingError(path, error);
  switch (primaryCode(error)) {
    case CORRUPT:
    case NOTADB:
      if (isCodeFile(path)) return damagedCodeIndex(path, error);
      return new CairnError(
        "unavailable",
        `The database file ${path} is damaged. Nothing was changed. Run "cairn database check" to see how badly, then "cairn database quarantine" to set it aside (it is kept, never deleted) and restore a backup, or start with an empty one.`,
        { cause: error, details: { ...details, damaged: true } },
      );
    case BUSY:
    case LOCKED:
      return new CairnError("unavailable", `The database ${path} is busy. Try again.`, { cause: error, details, retryAfterMs: 1_000 });
    case FULL:
      return new CairnError("unavailable", `The disk that holds ${path} is full. Nothing was stored; free some space and try again.`, {
        cause: error,
        details,
      });
    case READONLY:
    case CANTOPEN:
      if (areDescriptorsUsedUp()) return tooManyOpenFiles(error);
      return new CairnError(
        "unavailable",
        `The database ${path} cannot be opened for writing. Check the permissions of the file and its folder.`,
        { cause: error, details },
      );
    case IOERR:
      if (areDescriptorsUsedUp()) return tooManyOpenFiles(error);
      return new CairnError("unavailable", `Reading or writing ${path} failed. Check the disk.`, { cause: error, details });
    case CONSTRAINT:
      return new CairnError("conflict", "The record conflicts with a stored one.", { cause: error, details });
    default:
      return isTooManyOpenFiles(error) ? tooManyOpenFiles(error) : error;
  }
}

/** Reports a write that waited for the lock of another connection as long as it may. */
export function lockedError(path: string, waitedMs: number, cause: unknown): CairnError {
  const seconds = Number((waitedMs / 1_000).toFixed(1));
  return new CairnError(
    "unavailable",
    `Another process has held the write lock on ${path} for ${seconds} s. Nothing was stored. Try again, or end that process.`,
    { cause, details: { path }, retryAfterMs: 1_000 },
  );
}

/** Raises the operating system's own error if no descriptors are left. For threads, whose errors reach the caller without a class. */
export function assertDescriptorsLeft(): void {
  if (areDescriptorsUsedUp()) throw Object.assign(new Error("Too many files are open."), { code: "EMFILE" });
}

/** Descriptors that SQLite needs for one connection, including the folder that it syncs. */
const PROBED_FILES = 4;

/**
 * Returns whether SQLite could not open a file because too many are open. Its error does not show that, and it has released the
 * descriptors that it got.
 */
function areDescriptorsUsedUp(): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < PROBED_FILES) opened.push(openSync(devNull, "r"));
    return false;
  } catch (error) {
    return isTooManyOpenFiles(error);
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

function isFenceError(error: unknown): boolean {
  if ((error as { errcode?: unknown } | null)?.errcode === READONLY_DBMOVED) return true;
  return primaryCode(error) === CONSTRAINT && (error as Error).message.includes(MIGRATING);
}

function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === "number" ? code & 0xff : undefined;
}

import { existsSync, fstatSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CairnError } from "../../../model/errors.ts";
import { poll } from "../../../scheduling/retry.ts";
import { hasMigrationRecord } from "../migration/record.ts";
import { isCodeFile } from "../projects/code/code-file.ts";
import type { SqliteDatabase } from "./driver.ts";

/** Written next to a database whose file was deleted while a process had it open, so that every process refuses an empty one. */
export interface DeletionNote {
  readonly path: string;
  readonly noticedAt: string;
  /** The file that had taken the name by then; null if there was none. Any other file there is one that somebody put back. */
  readonly inode: number | null;
  /** The project or system it belonged to. */
  readonly owner: string | null;
  /** A copy of the whole database, made from the file that was still open. */
  readonly rescued: string | null;
}

function notePath(path: string): string {
  return `${path}.deleted`;
}

/** Returns the note about a deleted database, unless a file was put back in its place. */
export function deletionOf(path: string): DeletionNote | undefined {
  let text: string;
  try {
    text = readFileSync(notePath(path), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const note = parseNote(text) ?? { path, noticedAt: "", inode: null, owner: null, rescued: null };
  return (inodeAt(path) ?? null) === note.inode ? note : undefined;
}

/** Returns `undefined` for a note that a crash or a full disk cut short. */
function parseNote(text: string): DeletionNote | undefined {
  try {
    return (JSON.parse(text) as DeletionNote | null) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Refuses a database that was deleted while in use. A note that no longer applies is removed. */
export function assertNotDeleted(path: string): void {
  if (!existsSync(notePath(path))) return;
  const note = deletionOf(path);
  if (note) throw deletedError(note);
  forgetDeletion(path);
}

/** Lets the next use open the existing file, or create an empty one. */
export function forgetDeletion(path: string): void {
  rmSync(notePath(path), { force: true });
}

/** Describes the loss for a report. */
export function describeDeletion({ rescued }: Pick<DeletionNote, "rescued">): string {
  return `its file was deleted while in use${rescued === null ? "" : `; a copy of its content is in ${rescued}`}`;
}

/** Quotes a path for a shell. The note may have come with a repository, in `./.state`, and people paste the command. */
const quoted = (path: string) => `'${path.replaceAll("'", "'\\''")}'`;

function deletedError(note: DeletionNote): CairnError {
  const { path, rescued } = note;
  const putBack =
    rescued === null
      ? "Restore a backup with: cairn restore."
      : `Its content was saved. Put it back with: mv ${quoted(rescued)} ${quoted(path)}.`;
  const startEmpty = existsSync(notePath(path))
    ? `To start with an empty database instead, delete ${notePath(path)}.`
    : "To start with an empty database instead, restart this process.";
  return new CairnError("unavailable", `The database file ${path} was deleted while in use. ${putBack} ${startEmpty}`, {
    details: { path, deleted: true, rescued },
  });
}

/**
 * Returns whether an open database has lost its file for good. A backup that was restored or a migration replaces a file too, but both keep
 * the old one under another name, so the open file still has a link. A code index is never lost: it is built again.
 */
export function isDeleted(path: string, inode: number | undefined): boolean {
  if (inode === undefined || path === ":memory:" || isCodeFile(path)) return false;
  if (inodeAt(path) === undefined) return !hasMigrationRecord(path) && !isQuarantined(path, inode);
  return linksOf(inode) === 0;
}

/** Returns whether `cairn database quarantine` set the file aside, which lets the next use start a new one. */
function isQuarantined(path: string, inode: number): boolean {
  const folder = join(dirname(path), "..", "quarantine");
  return existsSync(folder) && readdirSync(folder).some((name) => inodeAt(join(folder, name)) === inode);
}

/** Counts the names of a file that this process has open; `undefined` where the system does not list open files. */
function linksOf(inode: number): number | undefined {
  let descriptors: readonly string[];
  try {
    descriptors = readdirSync("/dev/fd");
  } catch {
    return undefined;
  }
  for (const descriptor of descriptors) {
    try {
      const { ino, nlink } = fstatSync(Number(descriptor));
      if (ino === inode) return nlink;
    } catch {
      // the descriptor that listed the folder is closed by now
    }
  }
  return undefined;
}

/** Saves the content of a deleted database from its open connection, closes it, and leaves a note. Always throws. */
export async function reportDeletion(database: SqliteDatabase): Promise<never> {
  const { path } = database;
  const inode = inodeAt(path) ?? null;
  const noticedAt = new Date().toISOString();
  const owner = ownerOf(database);
  let rescued: string | null = null;
  // A folder that is gone was deleted on purpose: nothing is written there again.
  const hasFolder = existsSync(dirname(path));
  try {
    await poll(() => database.idle || undefined, { everyMs: 5, limitMs: Number.POSITIVE_INFINITY }); // acknowledged writes belong into the copy
    if (hasFolder) rescued = await rescue(database, noticedAt);
  } finally {
    database.close();
  }
  const note: DeletionNote = { path, noticedAt, inode, owner, rescued };
  if (hasFolder) writeFileSync(notePath(path), `${JSON.stringify(note, null, 2)}\n`, { mode: 0o600, flush: true });
  throw deletedError(note);
}

async function rescue(database: SqliteDatabase, at: string): Promise<string | null> {
  const target = `${database.path}.rescued-${at.replace(/[-:.]/g, "")}`;
  try {
    await database.copyTo(target);
    return target;
  } catch {
    rmSync(target, { force: true });
    return null; // a full disk or a damaged file: the note then names no copy
  }
}

function ownerOf(database: SqliteDatabase): string | null {
  for (const sql of ["SELECT project_id FROM project_info WHERE id = 1", "SELECT value FROM metadata WHERE key = 'system_id'"]) {
    try {
      return database.one<[string]>(sql)?.[0] ?? null;
    } catch {
      // a database of another kind
    }
  }
  return null;
}

function inodeAt(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/** Finds the notes in a folder, by the names of their databases. */
export function deletionsIn(folder: string): DeletionNote[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((file) =>
    file.endsWith(".db.deleted") ? (deletionOf(join(folder, file.slice(0, -".deleted".length))) ?? []) : [],
  );
}

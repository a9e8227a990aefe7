import { createWriteStream } from "node:fs";
import { lstat, mkdtemp, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { CairnError } from "../../model/errors.ts";
import { retry } from "../../scheduling/retry.ts";
import type { ForeignDatabase } from "./foreign-database.ts";
import { ADOPT_LIMITS } from "./limits.ts";
import { openListed } from "./read-file.ts";
import type { AdoptHost } from "./reader.ts";

/** Attempts to copy a database that its owner keeps writing to. */
const ATTEMPTS = 10;
/** The header of a database: its change counter grows with each transaction that has a rollback journal. */
const HEADER_BYTES = 100;
/** The header of a write-ahead log: its salts change whenever the log restarts. */
const LOG_HEADER_BYTES = 32;

/** A file of a database with what identifies its state. */
export interface DatabaseState {
  readonly bytes: number;
  readonly fingerprint: string;
}

/** Returns size and fingerprint of a database and its write-ahead log; `undefined` if it is no regular file. */
export async function databaseState(path: string): Promise<DatabaseState | undefined> {
  const [main, log] = await Promise.all([statOf(path), statOf(`${path}-wal`)]);
  if (!main) return undefined;
  return { bytes: main.bytes + (log?.bytes ?? 0), fingerprint: [main, ...(log ? [log] : [])].map(({ mark }) => mark).join(",") };
}

/**
 * Copies a database and opens the copy, so that neither the files of a running owner nor their locks are touched. The main file is copied
 * before its write-ahead log. Everything that a WAL checkpoint wrote into the copy meanwhile is still in the log, unless the log restarted;
 * then its header has changed and the copy is repeated. A rollback journal means a transaction in progress, so the copy waits for its end.
 */
export async function openCopy(
  path: string,
  host: Pick<AdoptHost, "scratch" | "openDatabase">,
  signal: AbortSignal,
): Promise<ForeignDatabase> {
  const state = await databaseState(path);
  if (!state) throw new CairnError("invalid_input", "is not a regular file");
  if (state.bytes > ADOPT_LIMITS.databaseBytes) throw new CairnError("too_large", `has more than ${ADOPT_LIMITS.databaseBytes} bytes`);
  const folder = await mkdtemp(join(host.scratch, "copy-"));
  const clear = () => rm(folder, { recursive: true, force: true });
  try {
    const copy = join(folder, "copy.db");
    const changing = new CairnError("conflict", "changes all the time; close the program that writes it, then try again");
    const copyOrRaise = async () => {
      if (!(await copyOnce(path, copy))) throw changing;
    };
    const isRetryable = (error: unknown) => error === changing;
    await retry(copyOrRaise, { attempts: ATTEMPTS, backoff: { firstMs: 50, maxMs: 500 }, isRetryable, signal });
    const database = await host.openDatabase(copy).catch(raiseUnreadable);
    return {
      columns: (table) => {
        try {
          return database.columns(table);
        } catch (error) {
          return raiseUnreadable(error);
        }
      },
      *rows(sql, ...params) {
        try {
          yield* database.rows(sql, ...params);
        } catch (error) {
          raiseUnreadable(error);
        }
      },
      close() {
        database.close();
        void clear();
      },
    };
  } catch (error) {
    await clear();
    throw error;
  }
}

/** Raises the error of a damaged or foreign file as a problem of that file. */
function raiseUnreadable(cause: unknown): never {
  throw new CairnError("invalid_input", "is not a readable SQLite database", { cause });
}

/** Copies the files once. Returns whether the copy is one consistent state. */
async function copyOnce(path: string, copy: string): Promise<boolean> {
  const before = await marksOf(path);
  if (await hasJournal(path)) return false;
  await copyPlain(path, copy);
  await rm(`${copy}-wal`, { force: true });
  if (before.log !== undefined) await copyPlain(`${path}-wal`, `${copy}-wal`).catch(ignoreMissing);
  if (await hasJournal(path)) return false;
  const after = await marksOf(path);
  if (before.log !== after.log) return false;
  return before.log !== undefined || before.main === after.main;
}

/** A transaction with a rollback journal changes the main file only while the journal exists, and changes its header. */
async function hasJournal(path: string): Promise<boolean> {
  return ((await statOf(`${path}-journal`))?.bytes ?? 0) > 0;
}

/** Returns what changes with each transaction. The time of a file is not enough: several changes within a few milliseconds share one. */
async function marksOf(path: string): Promise<{ readonly main: string; readonly log: string | undefined }> {
  const [stats, header, log] = [await statOf(path), await readStart(path, HEADER_BYTES), await readStart(`${path}-wal`, LOG_HEADER_BYTES)];
  return { main: `${stats?.mark} ${header}`, log };
}

async function copyPlain(from: string, to: string): Promise<void> {
  const file = await openListed(from); // refuses links and special files
  try {
    const input = file.createReadStream({ start: 0, end: ADOPT_LIMITS.databaseBytes, autoClose: false, highWaterMark: 1024 * 1024 });
    await pipeline(input, createWriteStream(to, { mode: 0o600 }));
  } finally {
    await file.close();
  }
}

/** Returns the first bytes of a file; `undefined` if there is none or it is empty. */
async function readStart(path: string, bytes: number): Promise<string | undefined> {
  if (!(await statOf(path))) return undefined;
  const file = await openListed(path).catch(ignoreMissing);
  if (!file) return undefined;
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0);
    return bytesRead === 0 ? undefined : buffer.toString("hex", 0, bytesRead);
  } finally {
    await file.close();
  }
}

async function statOf(path: string): Promise<{ readonly bytes: number; readonly mark: string } | undefined> {
  const stats = await lstat(path, { bigint: true }).catch(() => undefined);
  if (!stats?.isFile()) return undefined;
  return { bytes: Number(stats.size), mark: `${stats.size}.${stats.mtimeNs}.${stats.ino}` };
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT") return undefined;
  throw error;
}

/** Returns the real path of a database that a tool's folder names; the folder may be a link of the user. */
export async function databasePath(folder: string, name: string): Promise<string | undefined> {
  const real = await realpath(folder).catch(() => undefined);
  return real === undefined ? undefined : join(real, name);
}

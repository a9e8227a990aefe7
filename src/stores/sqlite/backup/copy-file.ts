import { createHash } from "node:crypto";
import { closeSync, createReadStream, fsyncSync, openSync, statSync } from "node:fs";
import type { TableFacts } from "../../../model/backup.ts";
import type { RecordedSchema } from "../../../model/schema.ts";
import { loadEngine } from "../driver/engine.ts";
import { findProblems } from "../driver/find-problems.ts";
import { countRows, recordedSchemas, tableFacts, tableNames } from "../driver/table-facts.ts";

/** Hashes and row counts of a database file that no process uses. */
export interface FileFacts {
  readonly bytes: number;
  readonly sha256: string;
  readonly tables: readonly TableFacts[];
  readonly schema: readonly RecordedSchema[];
}

/** Pages per step; progress is reported between steps. */
const PAGES_PER_STEP = 2_048;

/**
 * Copies a database that others may be reading and writing: one moment of it, by SQLite's backup interface, inside one read
 * transaction, so that what was counted in the source is what must be in the copy. The copy is one file without a write-ahead log,
 * on the disk for good, and was read back and compared.
 */
export async function copyDatabase(from: string, to: string, onProgress: (donePages: number, pages: number) => void): Promise<FileFacts> {
  const { DatabaseSync, backup } = await loadEngine();
  closeSync(openSync(to, "wx", 0o600));
  const source = new DatabaseSync(from, { readOnly: true, timeout: 5_000 });
  let expected: readonly TableFacts[];
  try {
    source.exec("BEGIN");
    expected = tableFacts(source);
    await backup(source, to, {
      rate: PAGES_PER_STEP,
      progress: ({ totalPages, remainingPages }) => onProgress(totalPages - remainingPages, totalPages),
    });
    source.exec("COMMIT");
  } finally {
    source.close();
  }
  const copy = new DatabaseSync(to);
  try {
    copy.exec("PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE");
  } finally {
    copy.close();
  }
  syncFile(to);
  const { problems } = await findProblems(to);
  if (problems.length > 0) throw unsound(`The copy of ${from} is not sound: ${problems[0]}`);
  const facts = await inspectFile(to);
  const differing = differences(expected, facts.tables);
  if (differing.length > 0) throw unsound(`The copy of ${from} differs from it: ${differing[0]}`);
  return facts;
}

/** A code that outlives the way out of a thread. */
export const UNSOUND = "CAIRN_UNSOUND";

function unsound(message: string): Error {
  return Object.assign(new Error(message), { code: UNSOUND });
}

/** Reads a whole database file that nobody writes to. */
export async function inspectFile(path: string): Promise<FileFacts> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path, { readOnly: true });
  try {
    return {
      bytes: statSync(path).size,
      sha256: await fileHash(path),
      tables: tableFacts(connection),
      schema: recordedSchemas(connection),
    };
  } finally {
    connection.close();
  }
}

/** How many rows each table has: enough to tell a wrong file. */
export async function countFile(path: string): Promise<ReadonlyMap<string, number>> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path, { readOnly: true });
  try {
    return new Map(tableNames(connection).map((name) => [name, countRows(connection, name)]));
  } finally {
    connection.close();
  }
}

export async function fileHash(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(chunk);
  return hash.digest("hex");
}

/** In words, at most ten. */
export function differences(expected: readonly TableFacts[], found: readonly TableFacts[]): string[] {
  const byName = new Map(found.map((table) => [table.name, table]));
  const known = new Set(expected.map(({ name }) => name));
  const said = expected.flatMap(({ name, rows, sha256 }) => {
    const table = byName.get(name);
    if (!table) return [`the table ${name} is missing`];
    if (table.rows !== rows) return [`the table ${name} has ${table.rows} rows instead of ${rows}`];
    return table.sha256 === sha256 ? [] : [`the table ${name} has other values than it should`];
  });
  return [
    ...said,
    ...found.filter(({ name }) => !known.has(name)).map(({ name }) => `there is a table ${name} that should not be there`),
  ].slice(0, 10);
}

/** What was written is on the disk when this returns. */
export function syncFile(path: string): void {
  const descriptor = openSync(path, "r+");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** So are the names in this folder. Some systems cannot sync a folder, and then need not. */
export function syncFolder(path: string): void {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, "r");
    fsyncSync(descriptor);
  } catch (error) {
    if (!["EPERM", "EISDIR", "EINVAL", "EACCES", "ENOTSUP"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

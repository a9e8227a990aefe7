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
 * Copies a consistent snapshot of a database in use, by SQLite's backup interface inside one read transaction, so that row counts of the
 * source must match the copy. The copy is one file without a write-ahead log, synced, read back and compared.
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
  if (problems.length > 0) throw unsoundError(`The copy of ${from} is not sound: ${problems[0]}`);
  const facts = await inspectFile(to);
  const differing = differences(expected, facts.tables);
  if (differing.length > 0) throw unsoundError(`The copy of ${from} differs from it: ${differing[0]}`);
  return facts;
}

/** An error code that survives structured cloning. */
export const UNSOUND = "CAIRN_UNSOUND";

function unsoundError(message: string): Error {
  return Object.assign(new Error(message), { code: UNSOUND });
}

/** Reads a whole database file that no process writes to. */
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

/** Counts the rows of each table: a quick check for a wrong file. */
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

/** Describes the differences, at most ten. */
export function differences(expected: readonly TableFacts[], found: readonly TableFacts[]): string[] {
  const byName = new Map(found.map((table) => [table.name, table]));
  const known = new Set(expected.map(({ name }) => name));
  const changed = expected.flatMap(({ name, rows, sha256 }) => {
    const table = byName.get(name);
    if (!table) return [`the table ${name} is missing`];
    if (table.rows !== rows) return [`the table ${name} has ${table.rows} rows instead of ${rows}`];
    return table.sha256 === sha256 ? [] : [`the table ${name} has other values than it should`];
  });
  return [
    ...changed,
    ...found.filter(({ name }) => !known.has(name)).map(({ name }) => `there is a table ${name} that should not be there`),
  ].slice(0, 10);
}

/** Syncs the file. */
export function syncFile(path: string): void {
  const descriptor = openSync(path, "r+");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Syncs the folder. Ignored on systems that cannot sync folders. */
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

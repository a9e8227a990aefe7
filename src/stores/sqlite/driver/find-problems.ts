import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { loadEngine } from "./engine.ts";
import { assertDescriptorsLeft } from "./errors.ts";

/** Problems that are reported at most; a damaged file can have millions. */
const PROBLEMS_MAX = 100;

export interface FileProblems {
  /** Problems of the file itself: only a backup helps. */
  readonly problems: string[];
  /** Problems in the tables of records, whose rows have checksums, and in their indexes: a repair helps. */
  readonly repairable: string[];
}

/** Checks the whole file and returns its problems. Changes nothing. */
export async function findProblems(path: string): Promise<FileProblems> {
  const { DatabaseSync } = await loadEngine();
  try {
    // Read-only, so that closing it does not write the WAL into a file that may be damaged.
    const connection = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
    try {
      const integrity = connection.prepare(`PRAGMA integrity_check(${PROBLEMS_MAX})`).all() as { integrity_check: string }[];
      const found = integrity.map((row) => row.integrity_check).filter((line) => line !== "ok");
      const keys = connection.prepare("PRAGMA foreign_key_check").all() as { table: string; rowid: number; parent: string }[];
      found.push(...keys.map(({ table, rowid, parent }) => `row ${rowid} of ${table} refers to a row of ${parent} that is not there`));
      const { page_size } = connection.prepare("PRAGMA page_size").get() as { page_size: number };
      // SQLite reads the missing bytes of a last page as zeros and reports no problem.
      if (statSync(path).size % page_size !== 0) found.push("the file ends in the middle of a page");
      const isRepairable = repairableIn(connection);
      const lines = found.flatMap((text) => text.split("\n")).slice(0, PROBLEMS_MAX);
      return { problems: lines.filter((line) => !isRepairable(line)), repairable: lines.filter(isRepairable) };
    } finally {
      connection.close();
    }
  } catch (error) {
    assertDescriptorsLeft(); // a file that cannot be opened now is not damaged
    return { problems: [error instanceof Error ? error.message : String(error)], repairable: [] };
  }
}

const TABLES = "checkpoints|checkpoint_tags|knowledge|embedding_records";
const PATTERNS = [
  new RegExp(`^(?:NULL|CHECK|[A-Z]+) (?:value|constraint failed) in (?:${TABLES})(?:\\.|$)`),
  /^row \d+ of (?:checkpoint_tags|embedding_records) refers to/,
  /FTS5 table \S*(?:checkpoint|knowledge)_fts/,
];

/** Recognises repairable problems, only in a project's database: runs and systems have tables of the same names. */
function repairableIn(connection: DatabaseSync): (line: string) => boolean {
  const names = new Set(
    (
      connection.prepare("SELECT name, tbl_name AS parent, type FROM sqlite_master").all() as {
        name: string;
        parent: string;
        type: string;
      }[]
    )
      .filter(({ type, parent }) => type === "index" && TABLES.split("|").includes(parent))
      .map(({ name }) => name),
  );
  const isProject = connection.prepare("SELECT 1 FROM sqlite_master WHERE name = 'quarantined_records'").get() !== undefined;
  return (line) => {
    if (!isProject) return false;
    const index = /(?:missing from|entries in|entry in) index (\S+)$/.exec(line)?.[1];
    return index === undefined ? PATTERNS.some((pattern) => pattern.test(line)) : names.has(index);
  };
}

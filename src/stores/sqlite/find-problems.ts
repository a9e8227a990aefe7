import { statSync } from "node:fs";
import { loadEngine } from "./engine.ts";

/** As many problems as are worth reading; a damaged file can have millions. */
const PROBLEMS_MAX = 100;

/** Reads the whole file and says what is wrong with it. Changes nothing. */
export async function findProblems(path: string): Promise<string[]> {
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
      // SQLite takes the missing bytes of a last page for zeros and finds nothing wrong with that.
      if (statSync(path).size % page_size !== 0) found.push("the file ends in the middle of a page");
      return found.flatMap((text) => text.split("\n")).slice(0, PROBLEMS_MAX);
    } finally {
      connection.close();
    }
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

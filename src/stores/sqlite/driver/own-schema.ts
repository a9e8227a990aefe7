import { damagedCodeIndex } from "../../../model/code-index.ts";
import { CairnError } from "../../../model/errors.ts";
import type { DatabaseSchema } from "../../../model/schema.ts";
import { isFenceTrigger } from "../migration/fence.ts";
import { isCodeFile } from "../projects/code/code-file.ts";
import type { SqliteTx } from "./driver.ts";
import { loadEngine } from "./engine.ts";
import { recordedSchemas } from "./table-facts.ts";

/** A trigger or a view, as the schema table of SQLite holds it. */
interface Program {
  readonly name: string;
  readonly tbl_name: string;
  readonly sql: string;
}

const PROGRAMS = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')";

/** Triggers and views of the file. Most kinds of database have none. */
export function programsOf(tx: SqliteTx): readonly Program[] {
  return tx.all<Program>(PROGRAMS);
}

/**
 * Refuses a file with triggers or views that its schema does not have. A planted file can claim the current schema, and a trigger in it
 * can drop records after their write was acknowledged.
 */
export async function assertOwnPrograms(found: readonly Program[], schema: DatabaseSchema, path: string): Promise<void> {
  const problem = await foreignProgram(found, schema);
  if (problem !== undefined && isCodeFile(path)) throw damagedCodeIndex(path, new Error(`${path} ${problem}`));
  if (problem !== undefined)
    throw new CairnError(
      "unavailable",
      `${path} ${problem}, so the file is not used. If you did not put it there, somebody has tampered with the file: set it aside and restore a backup.`,
      { details: { path, damaged: true } }, // like a damaged file: waiting does not help, and other databases must not suffer for it
    );
}

/** Returns what a check reports about a file that `assertOwnPrograms` would refuse: nothing, or one problem. */
export async function foreignProgramsIn(path: string, schema: DatabaseSchema): Promise<string[]> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path, { readOnly: true, timeout: 1_000 });
  try {
    if (recordedSchemas(connection).length === 0) return []; // its first use creates the schema
    return [(await foreignProgram(connection.prepare(PROGRAMS).all() as unknown as Program[], schema)) ?? []].flat();
  } finally {
    connection.close();
  }
}

/** Describes a trigger or view that the schema does not have, in words that follow the name of the file. */
async function foreignProgram(found: readonly Program[], schema: DatabaseSchema): Promise<string | undefined> {
  if (found.length === 0) return undefined;
  const known = await programsIn(schema);
  const foreign = found.find(({ name, tbl_name: table, sql }) => known.get(name) !== sql && !isFenceTrigger(name, table, sql));
  return foreign && `holds ${JSON.stringify(foreign.name.slice(0, 100))}, a trigger or view that Cairn did not make`;
}

const expected = new WeakMap<DatabaseSchema, Promise<ReadonlyMap<string, string>>>();

/** Returns the triggers and views of a schema, from a database in memory that has that schema. */
function programsIn(schema: DatabaseSchema): Promise<ReadonlyMap<string, string>> {
  let known = expected.get(schema);
  if (!known) {
    known = make(schema);
    expected.set(schema, known);
  }
  return known;
}

async function make(schema: DatabaseSchema): Promise<ReadonlyMap<string, string>> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(":memory:");
  try {
    connection.exec(schema.sql);
    return new Map((connection.prepare(PROGRAMS).all() as unknown as Program[]).map(({ name, sql }) => [name, sql]));
  } finally {
    connection.close();
  }
}

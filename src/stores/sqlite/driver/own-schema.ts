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
export function assertOwnPrograms(found: readonly Program[], schema: DatabaseSchema, path: string): void {
  const problem = foreignProgram(found, schema);
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
    return [foreignProgram(connection.prepare(PROGRAMS).all() as unknown as Program[], schema) ?? []].flat();
  } finally {
    connection.close();
  }
}

/** Describes a trigger or view that the schema does not have, in words that follow the name of the file. */
function foreignProgram(found: readonly Program[], schema: DatabaseSchema): string | undefined {
  const foreign = found.find((program) => !isOwn(program, schema) && !isFenceTrigger(program.name, program.tbl_name, program.sql));
  return foreign && `holds ${JSON.stringify(String(foreign.name).slice(0, 100))}, a trigger or view that Cairn did not make`;
}

/**
 * Reports whether a statement of the schema makes this trigger or view. SQLite stores the text of the statement as it was written. A part
 * of a trigger does not end with END, and a view has no semicolon inside.
 */
function isOwn({ name, sql }: Program, schema: DatabaseSchema): boolean {
  if (typeof sql !== "string" || !schema.sql.includes(`${sql};`)) return false;
  return sql.startsWith(`CREATE VIEW ${name} `) || (sql.startsWith(`CREATE TRIGGER ${name} `) && sql.endsWith("END"));
}

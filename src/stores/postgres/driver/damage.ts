import { CairnError } from "../../../model/errors.ts";
import { type PostgresDatabase, quoteName } from "./driver.ts";

/** Reads every table of a schema once, which finds pages that cannot be read; the server does the rest. `undefined`: there is no such schema. */
export async function schemaProblems(database: PostgresDatabase, schema: string): Promise<string[] | undefined> {
  const tables = await database.read("pg_catalog", (tx) =>
    tx.all<{ name: string | null }>(
      `SELECT c.relname AS name FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind = 'r'
       WHERE n.nspname = $1 ORDER BY c.relname`,
      schema,
    ),
  );
  if (tables.length === 0) return undefined;
  const problems: string[] = [];
  for (const { name } of tables) {
    if (name === null) continue;
    try {
      await database.read(schema, (tx) => tx.exec(`SELECT count(t.*::text) FROM ${quoteName(name)} t`));
    } catch (error) {
      // An unavailable server is no sign of damage.
      if (!(error instanceof CairnError) || !String(error.details?.code).startsWith("XX")) throw error;
      problems.push(`${name}: ${(error.cause as Error).message}`);
    }
  }
  return problems;
}

export interface SchemaQuarantine {
  readonly projectPath: string;
  readonly at: string;
  readonly problems: readonly string[];
}

/** Renames a schema, writes the reason into its comment and returns the new name. Nothing is deleted. */
export async function renameSchema(
  database: PostgresDatabase,
  schema: string,
  { projectPath, at, problems }: SchemaQuarantine,
): Promise<string> {
  const target = `${schema}_damaged_${at.replace(/[-:.]/g, "").toLowerCase()}`;
  const report = JSON.stringify({ project_path: projectPath, quarantined_at: at, problems });
  await database.write("pg_catalog", async (tx) => {
    if (!(await tx.get("SELECT 1 FROM pg_namespace WHERE nspname = $1", schema)))
      throw new CairnError("not_found", `There is no schema ${schema} in ${database.where}, so nothing was set aside.`);
    await tx.exec(`ALTER SCHEMA ${quoteName(schema)} RENAME TO ${quoteName(target)}`);
    const [quoted] = await tx.all<{ text: string }>("SELECT quote_literal($1) AS text", report);
    await tx.exec(`COMMENT ON SCHEMA ${quoteName(target)} IS ${quoted!.text}`);
  });
  return target;
}

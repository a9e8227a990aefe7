import type { DatabaseSchema, RecordedSchema, SchemaPart } from "../../../model/schema.ts";
import { assertSchema, schemaChecksum } from "../../rows/schema-version.ts";
import { DISTRIBUTE_SCHEMA } from "./citus.ts";
import { type PostgresDatabase, type PostgresTx, quoteName } from "./driver.ts";
import { splitStatements } from "./split-statements.ts";

export interface SchemaOptions {
  /** A further schema in which the column types are looked up. */
  readonly typesIn?: string | undefined;
  /** Places a new schema on a worker of Citus. */
  readonly isDistributed?: boolean;
}

/**
 * Creates a PostgreSQL schema with its tables in one transaction, and refuses one with another schema version. Any number of
 * processes may call it at the same time.
 */
export async function ensureSchema(
  database: PostgresDatabase,
  schema: string,
  definition: DatabaseSchema,
  { typesIn, isDistributed = false }: SchemaOptions = {},
): Promise<void> {
  const where = `${database.where} (schema ${schema})`;
  const stateIn = async (tx: PostgresTx) => assertSchema(definition, await recordedSchemas(tx, schema), where);
  // An existing schema needs no lock.
  if ((await database.read(schema, stateIn)) === "current") return;
  await database.write(
    schema,
    async (tx) => {
      await tx.run(LOCK_DEFINITION, definitionLockName(schema));
      await createVersionTable(tx, schema);
      if ((await stateIn(tx)) !== "absent") return;
      await createTables(tx, schema, definition, typesIn);
      if (isDistributed) await tx.exec(DISTRIBUTE_SCHEMA, schema);
    },
    { idempotent: true },
  );
}

/** SQLSTATE of a table that does not exist. */
const UNDEFINED_TABLE = "42P01";

/** Statement that no other process may create tables of a schema until the transaction ends. Its parameter is `definitionLockName`. */
export const LOCK_DEFINITION = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

export function definitionLockName(schema: string): string {
  return `cairn schema of ${schema}`;
}

/**
 * Creates the missing tables of a part, and of the parts that it needs, in one transaction. Any number of processes may call it at the
 * same time. The schema must exist; a schema that is being migrated refuses it.
 */
export async function ensurePart(
  database: PostgresDatabase,
  schema: string,
  definition: DatabaseSchema,
  part: string,
  { typesIn, isDistributed = false }: SchemaOptions = {},
): Promise<void> {
  await database.write(
    schema,
    async (tx) => {
      await tx.run(LOCK_DEFINITION, definitionLockName(schema));
      // The fence of a migration refuses this statement. New tables would have no fence.
      const touched = await tx.run("UPDATE schema_migrations SET checksum = checksum WHERE migration_id = $1", definition.version);
      // Only the remains of a migration lack the version: the tables are elsewhere.
      if (touched === 0) throw Object.assign(new Error(`The schema ${schema} has no tables.`), { code: UNDEFINED_TABLE });
      if (typesIn) await tx.exec(`SET LOCAL search_path TO ${quoteName(schema)}, ${typesIn}`);
      const existing = new Set(await tableNames(tx, schema));
      for (const { sql, tables } of partsNeededBy(definition, part)) {
        if (existing.has(tables[0]!)) continue;
        for (const statement of isDistributed ? splitStatements(sql) : [sql]) await tx.exec(statement);
      }
    },
    { idempotent: true },
  );
}

/** Returns a part after the parts that it needs. */
export function partsNeededBy({ parts = {} }: DatabaseSchema, name: string): readonly SchemaPart[] {
  const part = parts[name]!;
  return [...(part.needs ?? []).map((needed) => parts[needed]!), part];
}

/** Reads the catalog by SQL: what the server cached before this process held the lock may be old. */
async function tableNames(tx: PostgresTx, schema: string): Promise<string[]> {
  const rows = await tx.all<{ name: string }>(
    "SELECT c.relname AS name FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'",
    schema,
  );
  return rows.map(({ name }) => name);
}

/** Comes before the schema is read: creating the table makes the server see what another process committed under the lock. */
async function createVersionTable(tx: PostgresTx, schema: string): Promise<void> {
  // Not IF NOT EXISTS, which may answer from what the server cached before this process held the lock.
  if (!(await tx.get("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1", schema)))
    await tx.exec(`CREATE SCHEMA ${quoteName(schema)}`);
  // Columns of bounded length need no TOAST table: there is one table like this per project.
  await tx.exec(`CREATE TABLE IF NOT EXISTS schema_migrations (
    migration_id integer PRIMARY KEY,
    migration_name varchar(100) NOT NULL,
    checksum varchar(64) NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`);
}

async function createTables(tx: PostgresTx, schema: string, definition: DatabaseSchema, typesIn: string | undefined): Promise<void> {
  if (typesIn) await tx.exec(`SET LOCAL search_path TO ${quoteName(schema)}, ${typesIn}`);
  await tx.exec(definition.sql);
  await tx.run(
    "INSERT INTO schema_migrations (migration_id, migration_name, checksum) VALUES ($1, $2, $3)",
    definition.version,
    definition.name,
    schemaChecksum(definition),
  );
}

async function recordedSchemas(tx: PostgresTx, schema: string): Promise<RecordedSchema[]> {
  if (!(await tableExists(tx, schema, "schema_migrations"))) return [];
  return tx.all<RecordedSchema>(
    // A prepared statement needs the same types in every schema, and those of a tombstone have no length.
    "SELECT migration_id AS version, migration_name::text AS name, checksum::text AS checksum FROM schema_migrations ORDER BY migration_id",
  );
}

export async function tableExists(tx: PostgresTx, schema: string, table: string): Promise<boolean> {
  const row = await tx.get<{ found: boolean }>("SELECT to_regclass($1) IS NOT NULL AS found", `${quoteName(schema)}.${quoteName(table)}`);
  return row!.found;
}

import type { AppliedMigration, Migration } from "../../../model/schema-version.ts";
import { migrationChecksum, pendingMigrations } from "../../../model/schema-version.ts";
import { type PostgresDatabase, type PostgresTx, quoteName } from "./driver.ts";

/**
 * Makes the schema if need be and brings it up to date, all steps in one transaction. Any number of processes may do this at once.
 * `typesIn` is a further schema in which the steps' types are looked up.
 */
export async function migratePostgres(
  database: PostgresDatabase,
  schema: string,
  migrations: readonly Migration[],
  typesIn?: string,
): Promise<void> {
  const where = `${database.where} (schema ${schema})`;
  // The common start finds nothing to do, and then takes no lock.
  const pending = await database.read(schema, async (tx) => pendingMigrations(migrations, await appliedMigrations(tx, schema), where));
  if (pending.length === 0) return;
  await database.write(
    schema,
    async (tx) => {
      await tx.run("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", `cairn migrations of ${schema}`);
      // Not IF NOT EXISTS, which may answer from what the server remembered before the lock was ours.
      if (!(await tx.get("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1", schema)))
        await tx.exec(`CREATE SCHEMA ${quoteName(schema)}`);
      await tx.exec(`CREATE TABLE IF NOT EXISTS schema_migrations (
          migration_id integer PRIMARY KEY,
          migration_name text NOT NULL UNIQUE,
          checksum text NOT NULL,
          applied_at timestamptz NOT NULL DEFAULT now()
        )`);
      if (typesIn) await tx.exec(`SET LOCAL search_path TO ${quoteName(schema)}, ${typesIn}`);
      for (const migration of pendingMigrations(migrations, await appliedMigrations(tx, schema), where)) {
        await tx.exec(migration.sql);
        await tx.run(
          "INSERT INTO schema_migrations (migration_id, migration_name, checksum) VALUES ($1, $2, $3)",
          migration.id,
          migration.name,
          migrationChecksum(migration),
        );
      }
    },
    { idempotent: true },
  );
}

async function appliedMigrations(tx: PostgresTx, schema: string): Promise<AppliedMigration[]> {
  if (!(await tableExists(tx, schema, "schema_migrations"))) return [];
  return tx.all<AppliedMigration>(
    "SELECT migration_id AS id, migration_name AS name, checksum FROM schema_migrations ORDER BY migration_id",
  );
}

export async function tableExists(tx: PostgresTx, schema: string, table: string): Promise<boolean> {
  const row = await tx.get<{ found: boolean }>("SELECT to_regclass($1) IS NOT NULL AS found", `${quoteName(schema)}.${quoteName(table)}`);
  return row!.found;
}

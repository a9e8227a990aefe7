import type { AppliedMigration, Migration } from "../../../model/schema-version.ts";
import { migrationChecksum, pendingMigrations } from "../../../model/schema-version.ts";
import type { SqliteDatabase, SqliteTx } from "./driver.ts";
import { assertOwnPrograms, programsOf } from "./own-schema.ts";

export type { Migration };

/** Brings the schema up to date, all steps in one transaction, so that a kill leaves the old schema or the new. */
export async function migrateSqlite(database: SqliteDatabase, migrations: readonly Migration[]): Promise<void> {
  // The common start finds nothing to do, and then needs no write lock.
  const pending = database.read((tx) => pendingMigrations(migrations, applied(tx), database.path)).length;
  if (pending > 0) await apply(database, migrations);
  await assertOwnPrograms(database.read(programsOf), migrations, database.path);
}

async function apply(database: SqliteDatabase, migrations: readonly Migration[]): Promise<void> {
  await database.write((tx) => {
    tx.exec(`CREATE TABLE IF NOT EXISTS schema_migrations (
      migration_id INTEGER PRIMARY KEY,
      migration_name TEXT NOT NULL UNIQUE,
      checksum TEXT NOT NULL,
      applied_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
    )`);
    for (const migration of pendingMigrations(migrations, applied(tx), database.path)) {
      tx.exec(migration.sql);
      tx.run(
        "INSERT INTO schema_migrations (migration_id, migration_name, checksum) VALUES (?, ?, ?)",
        migration.id,
        migration.name,
        migrationChecksum(migration),
      );
    }
  });
}

function applied(tx: SqliteTx): AppliedMigration[] {
  if (!tx.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'")) return [];
  return tx.all<AppliedMigration>(
    "SELECT migration_id AS id, migration_name AS name, checksum FROM schema_migrations ORDER BY migration_id",
  );
}

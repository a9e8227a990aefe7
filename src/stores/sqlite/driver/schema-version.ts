import type { DatabaseSchema, RecordedSchema } from "../../../model/schema.ts";
import { assertSchema, schemaChecksum } from "../../rows/schema-version.ts";
import type { SqliteDatabase, SqliteTx } from "./driver.ts";
import { assertOwnPrograms, programsOf } from "./own-schema.ts";

/** Creates the schema in an empty file, in one transaction, and refuses a file with another schema. */
export async function ensureSchema(database: SqliteDatabase, schema: DatabaseSchema): Promise<void> {
  const stateIn = (tx: SqliteTx) => assertSchema(schema, recordedSchemas(tx), database.path);
  // An existing schema needs no write lock.
  if (database.read(stateIn) === "absent")
    await database.write((tx) => {
      if (stateIn(tx) === "absent") createSchema(tx, schema);
    });
  assertOwnPrograms(database.read(programsOf), schema, database.path);
}

function createSchema(tx: SqliteTx, schema: DatabaseSchema): void {
  tx.exec(`CREATE TABLE schema_migrations (
    migration_id INTEGER PRIMARY KEY,
    migration_name TEXT NOT NULL UNIQUE,
    checksum TEXT NOT NULL,
    applied_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
  )`);
  tx.exec(schema.sql);
  tx.run(
    "INSERT INTO schema_migrations (migration_id, migration_name, checksum) VALUES (?, ?, ?)",
    schema.version,
    schema.name,
    schemaChecksum(schema),
  );
}

function recordedSchemas(tx: SqliteTx): RecordedSchema[] {
  if (!tx.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'")) return [];
  return tx.all<RecordedSchema>(
    "SELECT migration_id AS version, migration_name AS name, checksum FROM schema_migrations ORDER BY migration_id",
  );
}

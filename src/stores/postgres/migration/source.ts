import type pg from "pg";
import { TOMBSTONE_VERSION } from "../../../model/migration.ts";
import type { MigrationSource } from "../../../ports/migration.ts";
import { openPostgres, quoteName } from "../driver/driver.ts";
import { ensurePgvector } from "../driver/pgvector.ts";
import { ensureSchema } from "../driver/schema-version.ts";
import { connectTo, isTombstone, postgresCounters, postgresRows, schemaExists, transaction, unregister } from "./endpoint.ts";
import { createFence, dropFence, lockSchema, readFence, storeCounters, storedCounters, tablesOf } from "./fence.ts";
import type { PostgresMigrationOptions } from "./target.ts";
import { isOnWorker, lockOnWorker } from "./worker-lock.ts";

export interface PostgresSourceOptions extends Omit<PostgresMigrationOptions, "sameSource"> {
  /** Written to the tombstone. */
  readonly migratedTo: string;
}

/** Returns a PostgreSQL schema as the source of a migration back to SQLite. */
export function postgresMigrationSource({
  url,
  schema,
  definition,
  shape,
  migratedTo,
  trace = () => {},
}: PostgresSourceOptions): MigrationSource {
  const database = openPostgres({ url, poolMax: 1 });
  const where = `${database.where} (schema ${schema})`;
  let client: pg.Client | undefined;
  let workerLock: pg.Client | undefined;

  async function connect(): Promise<pg.Client> {
    if (client) return client;
    const made = await connectTo(url, schema, where);
    try {
      await lockSchema(made, schema, where);
      await holdWorkerLock(made);
    } catch (error) {
      await made.end();
      throw error;
    }
    client = made;
    return made;
  }

  /** Holds the lock on the worker that has the schema, if Citus placed it on one. */
  async function holdWorkerLock(db: pg.Client): Promise<void> {
    if (!workerLock && (await isOnWorker(db, schema))) workerLock = await lockOnWorker(url, schema, where);
  }

  async function hasTables(db: pg.Client): Promise<boolean> {
    return (await schemaExists(db, schema)) && !(await isTombstone(db, schema)) && (await tablesOf(db, schema)).length > 0;
  }

  /** Restores the archived schema of a migration that is undone. */
  async function restore(db: pg.Client, migrationId: string): Promise<void> {
    const archived = archiveName(schema, migrationId);
    if (!(await schemaExists(db, archived))) return;
    if (await isTombstone(db, schema)) await db.query(`DROP SCHEMA ${quoteName(schema)} CASCADE`);
    await db.query(`ALTER SCHEMA ${quoteName(archived)} RENAME TO ${quoteName(schema)}`);
  }

  return {
    where,
    lock: async () => void (await connect()),

    async exists() {
      return hasTables(await connect());
    },

    isRemoved: async () => !(await schemaExists(await connect(), schema)),

    async unknownTables() {
      const db = await connect();
      if (!(await readFence(db, schema)))
        await ensureSchema(database, schema, definition, {
          typesIn: shape.kind === "project" ? await ensurePgvector(database) : undefined,
        });
      const known = new Set([...shape.tables.map(({ name }) => name), ...shape.derived]);
      return (await tablesOf(db, schema)).filter((table) => !known.has(table));
    },

    async *rows(table) {
      yield* postgresRows(await connect(), table);
    },

    async counters() {
      const db = await connect();
      const stored = (await isOnWorker(db, schema)) ? await storedCounters(db, schema) : undefined;
      return stored ?? postgresCounters(db, schema, shape);
    },

    async fence(migrationId) {
      const db = await connect();
      await transaction(db, where, () => restore(db, migrationId));
      await holdWorkerLock(db); // before the fence, which tests it
      const fence = await readFence(db, schema);
      if (fence?.migrationId === migrationId && fence.role === "source") return;
      await transaction(db, where, async () => {
        await createFence(db, schema, { migrationId, role: "source" });
        if (await isOnWorker(db, schema)) await storeCounters(db, await postgresCounters(db, schema, shape));
      });
      trace("fenced");
    },

    async archive(migrationId) {
      const db = await connect();
      const archived = archiveName(schema, migrationId);
      const place = `${database.where} (schema ${archived})`;
      if (await schemaExists(db, archived)) return place;
      await transaction(db, where, async () => {
        await unregister(db, schema);
        await db.query(`ALTER SCHEMA ${quoteName(schema)} RENAME TO ${quoteName(archived)}`);
        await db.query(`CREATE SCHEMA ${quoteName(schema)}`);
        await db.query(`CREATE TABLE ${quoteName(schema)}.schema_migrations
          (migration_id integer PRIMARY KEY, migration_name text NOT NULL UNIQUE, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`);
        await db.query(`INSERT INTO ${quoteName(schema)}.schema_migrations VALUES ($1, $2, '')`, [
          TOMBSTONE_VERSION,
          `migrated to ${migratedTo}`,
        ]);
        // Listing projects and systems reads these tables.
        await db.query(`CREATE TABLE ${quoteName(schema)}.project_info (id integer PRIMARY KEY, project_id text, created_at timestamptz)`);
        await db.query(`CREATE TABLE ${quoteName(schema)}.metadata (key text PRIMARY KEY, value text NOT NULL)`);
      });
      trace("archived");
      return place;
    },

    async unfence(migrationId) {
      const db = await connect();
      await transaction(db, where, async () => {
        await restore(db, migrationId);
        const fence = await readFence(db, schema);
        if (fence?.migrationId === migrationId && fence.role === "source") await dropFence(db);
      });
      trace("unfenced");
    },

    async close() {
      await workerLock?.end();
      await client?.end();
      client = workerLock = undefined;
      await database.close();
    },
  };
}

function archiveName(schema: string, migrationId: string): string {
  return `archived_${schema}_${migrationId.replaceAll("-", "_")}`;
}

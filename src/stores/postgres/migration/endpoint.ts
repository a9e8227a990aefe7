import pg from "pg";
import copyStreams from "pg-copy-streams";
import { CairnError } from "../../../model/errors.ts";
import { TOMBSTONE_VERSION } from "../../../model/migration.ts";
import type { Counters, DatabaseShape, Row, TableShape } from "../../../ports/migration.ts";
import { poll, retry } from "../../../scheduling/retry.ts";
import { quoteName } from "../driver/driver.ts";
import { isCollision, translatePostgresError } from "../driver/errors.ts";
import { rowDecoder } from "./binary.ts";

export const FENCE_TABLE = "cairn_migration_fence";
/** SQLSTATEs of a fenced table, in a class that PostgreSQL does not use: the migration runs, or was abandoned. */
const MIGRATING_STATE = "CR001";
const ABANDONED_STATE = "CR002";

/** Tables that hold rows of every collection. Those of the code index stay behind: it is derived, and SQLite keeps it in another file. */
const WITH_COLLECTION = ["embedding_versions", "vectors", "vector_index", "vector_outbox"];

/** Opens a connection with one schema in its search path and without time limits, because large tables take long. */
export async function connectTo(url: string, schema: string, where: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "cairn migrate",
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    statement_timeout: 0,
    options: "-c DateStyle=ISO -c TimeZone=UTC -c client_encoding=UTF8",
  });
  client.on("error", () => {}); // the next statement raises it
  try {
    await client.connect();
    await client.query(`SET search_path TO ${quoteName(schema)}`);
  } catch (error) {
    await client.end().catch(() => {});
    throw translatePostgresError(error, where);
  }
  return client;
}

/** Reads the rows of a table in batches, by binary COPY. */
export async function* postgresRows(client: pg.Client, table: TableShape): AsyncGenerator<readonly Row[]> {
  const columns = table.columns.map(({ name }) => quoteName(name));
  const isShared = table.kind === "project" && WITH_COLLECTION.includes(table.name);
  const select = `SELECT ${columns.join(", ")} FROM ${quoteName(table.name)} ${isShared ? "WHERE collection <> 'code'" : ""}`;
  const stream = client.query(copyStreams.to(`COPY (${select}) TO STDOUT (FORMAT binary)`));
  const decoder = rowDecoder(table);
  for await (const piece of stream) {
    const rows = decoder.push(piece as Uint8Array);
    if (rows.length > 0) yield rows;
  }
  decoder.end();
}

/** Returns the last value of each sequence. */
export async function postgresCounters(client: pg.Client, schema: string, shape: DatabaseShape): Promise<Counters> {
  const found: Record<string, string> = {};
  for (const { name, counter } of shape.tables) {
    if (counter === undefined) continue;
    const { rows } = await client.query<{ last: string }>(
      "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, $2)::regclass), 0)::text AS last",
      [`${quoteName(schema)}.${quoteName(name)}`, counter],
    );
    found[name] = rows[0]!.last;
  }
  return found;
}

/**
 * Creates triggers that refuse every INSERT, UPDATE and DELETE on the schema's tables, except in a session whose setting
 * `cairn.migration` is the migration's id. Creating a trigger waits for writes in progress, so the tables hold every acknowledged write.
 * Call it in a transaction.
 */
export async function createFence(client: pg.Client, schema: string, { migrationId, role }: Fence): Promise<void> {
  await client.query(`CREATE TABLE IF NOT EXISTS ${FENCE_TABLE} (migration_id text NOT NULL, role text NOT NULL)`);
  await client.query(`DELETE FROM ${FENCE_TABLE}`);
  await client.query(`INSERT INTO ${FENCE_TABLE} (migration_id, role) VALUES ($1, $2)`, [migrationId, role]);
  await client.query(`CREATE OR REPLACE FUNCTION cairn_migration_fence() RETURNS trigger LANGUAGE plpgsql AS $body$
    BEGIN
      IF current_setting('cairn.migration', true) IS DISTINCT FROM '${literal(migrationId)}' THEN
        -- The migration's own connection holds this lock as long as it lives.
        IF pg_try_advisory_xact_lock_shared(hashtextextended('${migrationLockName(literalSchema(schema))}', 0)) THEN
          RAISE EXCEPTION 'cairn: a migration of this database was abandoned' USING ERRCODE = '${ABANDONED_STATE}';
        END IF;
        RAISE EXCEPTION 'cairn: this database is being migrated' USING ERRCODE = '${MIGRATING_STATE}';
      END IF;
      RETURN NULL;
    END $body$`);
  for (const table of await tablesOf(client, schema))
    await client.query(
      `CREATE OR REPLACE TRIGGER cairn_migration_fence BEFORE INSERT OR UPDATE OR DELETE ON ${quoteName(table)} FOR EACH STATEMENT EXECUTE FUNCTION cairn_migration_fence()`,
    );
}

/** Removes the triggers and the id. */
export async function dropFence(client: pg.Client): Promise<void> {
  await client.query(`DROP FUNCTION IF EXISTS cairn_migration_fence() CASCADE; DROP TABLE IF EXISTS ${FENCE_TABLE}`);
}

/** The fence of a schema. `role` distinguishes an incomplete target, which may be dropped, from a source, which must not. */
export interface Fence {
  readonly migrationId: string;
  readonly role: "target" | "source";
}

/** Returns the fence of this schema. */
export async function readFence(client: pg.Client, schema: string): Promise<Fence | undefined> {
  if (!(await isFenced(client, schema))) return undefined;
  const { rows } = await client.query<{ found: boolean }>("SELECT to_regclass($1) IS NOT NULL AS found", [
    `${quoteName(schema)}.${FENCE_TABLE}`,
  ]);
  if (!rows[0]!.found) return undefined;
  const [row] = (await client.query<{ migration_id: string; role: Fence["role"] }>(`SELECT migration_id, role FROM ${FENCE_TABLE}`)).rows;
  return row && { migrationId: row.migration_id, role: row.role };
}

async function isFenced(client: pg.Client, schema: string): Promise<boolean> {
  const { rows } = await client.query(
    "SELECT 1 FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.proname = 'cairn_migration_fence' AND n.nspname = $1",
    [schema],
  );
  return rows.length > 0;
}

/** Returns the tables of the schema, without the fence's own. */
export async function tablesOf(client: pg.Client, schema: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname <> $2 ORDER BY c.relname",
    [schema, FENCE_TABLE],
  );
  return rows.map(({ name }) => name);
}

/** Runs `work` as one transaction and repeats it after a deadlock or serialization failure. */
export async function transaction<T>(client: pg.Client, where: string, work: () => Promise<T>): Promise<T> {
  const once = async () => {
    try {
      await client.query("BEGIN");
      const value = await work();
      await client.query("COMMIT");
      return value;
    } catch (error) {
      await client.query("ROLLBACK").catch(() => {}); // a broken connection has rolled back by itself
      throw error;
    }
  };
  try {
    return await retry(once, { backoff: { firstMs: 10, maxMs: 500 }, isRetryable: isCollision, attempts: 20 });
  } catch (error) {
    throw translateRowError(error, where);
  }
}

/** Returns whether this schema is a tombstone: the remains after a migration back to SQLite. */
export async function isTombstone(client: pg.Client, schema: string): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>("SELECT to_regclass($1) IS NOT NULL AS found", [
    `${quoteName(schema)}.schema_migrations`,
  ]);
  if (!rows[0]!.found) return false;
  return (await client.query("SELECT 1 FROM schema_migrations WHERE migration_id = $1", [TOMBSTONE_VERSION])).rows.length > 0;
}

export async function schemaExists(client: pg.Client, schema: string): Promise<boolean> {
  return (await client.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema])).rows.length > 0;
}

/** Milliseconds to wait for another migration: the server notices a killed process with a delay. */
const LOCK_WAIT_MS = 15_000;

/** Names the advisory lock that a migration holds on its schema for as long as it runs. */
export function migrationLockName(schema: string): string {
  return `cairn migration of ${schema}`;
}

/** Locks the schema against other migrations until the connection ends. */
export async function lockSchema(client: pg.Client, schema: string, where: string): Promise<void> {
  const tryLock = async () => {
    const { rows } = await client.query<{ held: boolean }>("SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS held", [
      migrationLockName(schema),
    ]);
    return rows[0]!.held || undefined;
  };
  if (!(await poll(tryLock, { everyMs: 200, limitMs: LOCK_WAIT_MS })))
    throw new CairnError("conflict", `Another process is migrating ${where} now. Wait until it has finished.`);
}

/** Translates an error; the message of PostgreSQL names the row that it refused. */
function translateRowError(error: unknown, where: string): unknown {
  const { code, detail, message } = error as { code?: string; detail?: string; message?: string };
  if (code !== undefined && /^(22|23|54)/.test(code))
    return new CairnError("conflict", `${where} refused a row: ${message}${detail ? ` (${detail})` : ""}. Nothing was changed.`, {
      cause: error,
    });
  return translatePostgresError(error, where);
}

/** Returns the schema's name if it may stand inside SQL text. */
function literalSchema(schema: string): string {
  quoteName(schema);
  return schema;
}

function literal(migrationId: string): string {
  if (!/^[0-9a-z-]{1,64}$/.test(migrationId)) throw new CairnError("internal", "Invalid migration id.");
  return migrationId;
}

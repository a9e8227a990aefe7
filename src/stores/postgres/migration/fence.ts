import type pg from "pg";
import { CairnError } from "../../../model/errors.ts";
import type { Counters } from "../../../ports/migration.ts";
import { poll } from "../../../scheduling/retry.ts";
import { quoteName } from "../driver/driver.ts";
import { definitionLockName, LOCK_DEFINITION } from "../driver/schema-version.ts";

/** Holds the id of the migration that fenced the schema. */
export const FENCE_TABLE = "cairn_migration_fence";
/** SQLSTATEs of a fenced table, in a class that PostgreSQL does not use: the migration runs, or was abandoned. */
const MIGRATING_STATE = "CR001";
const ABANDONED_STATE = "CR002";

/**
 * Creates triggers that refuse every INSERT, UPDATE and DELETE on the schema's tables, except in a session whose setting
 * `cairn.migration` is the migration's id. Creating a trigger waits for writes in progress, so the tables hold every acknowledged write.
 * Call it in a transaction.
 */
export async function createFence(client: pg.Client, schema: string, { migrationId, role }: Fence): Promise<void> {
  // Nobody may create a table between the list of tables and the end of this transaction: it would have no fence.
  await client.query(LOCK_DEFINITION, [definitionLockName(schema)]);
  await client.query(`CREATE TABLE IF NOT EXISTS ${FENCE_TABLE} (migration_id text NOT NULL, role text NOT NULL, counters text)`);
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

/** Stores the counters of a source in its fence: on Citus, a write that the fence refuses has drawn a number before. */
export async function storeCounters(client: pg.Client, counters: Counters): Promise<void> {
  await client.query(`UPDATE ${FENCE_TABLE} SET counters = $1`, [JSON.stringify(counters)]);
}

/** Returns the counters that the fence of this schema holds. */
export async function storedCounters(client: pg.Client, schema: string): Promise<Counters | undefined> {
  if ((await readFence(client, schema))?.role !== "source") return undefined;
  const { rows } = await client.query<{ counters: string | null }>(`SELECT counters FROM ${FENCE_TABLE}`);
  return rows[0]?.counters ? (JSON.parse(rows[0].counters) as Counters) : undefined;
}

/** Removes the triggers and the id. */
export async function dropFence(client: pg.Client): Promise<void> {
  await client.query("DROP FUNCTION IF EXISTS cairn_migration_fence() CASCADE");
  await client.query(`DROP TABLE IF EXISTS ${FENCE_TABLE}`);
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

/** Milliseconds to wait for another migration: the server notices a killed process with a delay. */
export const LOCK_WAIT_MS = 15_000;

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

/** Returns the schema's name if it may stand inside SQL text. */
function literalSchema(schema: string): string {
  quoteName(schema);
  return schema;
}

function literal(migrationId: string): string {
  if (!/^[0-9a-z-]{1,64}$/.test(migrationId)) throw new CairnError("internal", "Invalid migration id.");
  return migrationId;
}

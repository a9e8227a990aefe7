import type pg from "pg";
import { CairnError } from "../../../model/errors.ts";
import { poll } from "../../../scheduling/retry.ts";
import { quoteName } from "../driver/driver.ts";
import { connectTo } from "./endpoint.ts";
import { LOCK_WAIT_MS, migrationLockName } from "./fence.ts";

/** Returns whether Citus has placed this schema on a worker. */
export async function isOnWorker(client: pg.Client, schema: string): Promise<boolean> {
  const { rows } = await client.query<{ citus: boolean }>("SELECT to_regclass('pg_catalog.pg_dist_schema') IS NOT NULL AS citus");
  if (!rows[0]!.citus) return false;
  const sql = "SELECT 1 FROM pg_catalog.pg_dist_schema d JOIN pg_catalog.pg_namespace n ON n.oid = d.schemaid WHERE n.nspname = $1";
  return (await client.query(sql, [schema])).rows.length > 0;
}

/**
 * Takes the lock of a migration on the worker that has the schema, where the fence tests it, and holds it until the returned connection
 * ends. The lock belongs to the session on the worker, and the open transaction keeps that session. The savepoint gives up the lock of
 * the table that led to the worker: the migration changes it.
 */
export async function lockOnWorker(url: string, schema: string, where: string): Promise<pg.Client> {
  const holder = await connectTo(url, schema, where);
  try {
    await holder.query("SET idle_in_transaction_session_timeout = 0");
    const tryLock = async () => {
      await holder.query("BEGIN");
      await holder.query("SAVEPOINT before_table");
      const { rows } = await holder.query<{ held: boolean }>(
        `SELECT pg_try_advisory_lock(hashtextextended('${migrationLockName(schema)}', 0)) AS held FROM ${quoteName(schema)}.schema_migrations LIMIT 1`,
      );
      await holder.query("ROLLBACK TO SAVEPOINT before_table");
      if (rows[0]?.held) return true;
      await holder.query("ROLLBACK");
      return undefined;
    };
    if (await poll(tryLock, { everyMs: 200, limitMs: LOCK_WAIT_MS })) return holder;
    throw new CairnError("conflict", `Another process is migrating ${where} now. Wait until it has finished.`);
  } catch (error) {
    await holder.end().catch(() => {});
    throw error;
  }
}

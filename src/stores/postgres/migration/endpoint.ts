import pg from "pg";
import copyStreams from "pg-copy-streams";
import { CairnError } from "../../../model/errors.ts";
import { TOMBSTONE_VERSION } from "../../../model/migration.ts";
import type { Counters, DatabaseShape, Row, TableShape } from "../../../ports/migration.ts";
import { retry } from "../../../scheduling/retry.ts";
import { CATALOGUE_TABLE } from "../catalogue/store.ts";
import { quoteName } from "../driver/driver.ts";
import { isCollision, translatePostgresError } from "../driver/errors.ts";
import { type SessionSettings, setUpSession } from "../driver/session.ts";
import { rowDecoder } from "./binary.ts";

/** Tables that hold rows of every collection. Those of the code index stay behind: it is derived, and SQLite keeps it in another file. */
const WITH_COLLECTION = ["embedding_versions", "vectors", "vector_index", "vector_outbox"];

const CONNECT_TIMEOUT_MS = 10_000;
const SETTINGS: SessionSettings = [
  ["statement_timeout", "0"],
  ["DateStyle", "ISO"],
  ["TimeZone", "UTC"],
];

/**
 * Opens a connection with one schema in its search path and without time limits, because large tables take long. Refuses a pooler: a
 * migration holds a lock of its session until it ends, so that the end of its process releases the lock.
 */
export async function connectTo(url: string, schema: string, where: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "cairn migrate",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  });
  client.on("error", () => {}); // the next statement raises it
  try {
    await client.connect();
    if (await setUpSession(client, SETTINGS, CONNECT_TIMEOUT_MS)) throw pooledError(where);
    await client.query(`SET search_path TO ${quoteName(schema)}`);
  } catch (error) {
    await client.end().catch(() => {});
    throw translatePostgresError(error, where);
  }
  return client;
}

function pooledError(where: string): CairnError {
  return new CairnError(
    "unavailable",
    `A migration needs a direct connection, and ${where} is behind a connection pooler. Use the address of PostgreSQL itself for the migration. Nothing was changed.`,
  );
}

/** Reads the rows of a table in batches, by binary COPY. A table that was never used does not exist, and has none. */
export async function* postgresRows(client: pg.Client, table: TableShape): AsyncGenerator<readonly Row[]> {
  if (!(await hasTable(client, table.name))) return;
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

/** Removes a project whose schema is being replaced from the catalogue, inside a transaction. A list of projects registers it again. */
export async function unregister(client: pg.Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ found: boolean }>("SELECT to_regclass($1) IS NOT NULL AS found", [CATALOGUE_TABLE]);
  if (rows[0]!.found) await client.query(`DELETE FROM ${CATALOGUE_TABLE} WHERE schema_name = $1`, [schema]);
}

/** Returns whether the search path has a table of this name. */
export async function hasTable(client: pg.Client, name: string): Promise<boolean> {
  return (await client.query<{ found: boolean }>("SELECT to_regclass($1) IS NOT NULL AS found", [quoteName(name)])).rows[0]!.found;
}

/** Returns the last value of each sequence; zero where the table does not exist. */
export async function postgresCounters(client: pg.Client, schema: string, shape: DatabaseShape): Promise<Counters> {
  const found: Record<string, string> = {};
  for (const { name, counter } of shape.tables) {
    if (counter === undefined) continue;
    if (!(await hasTable(client, name))) {
      found[name] = "0";
      continue;
    }
    const { rows } = await client.query<{ last: string }>(
      "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, $2)::regclass), 0)::text AS last",
      [`${quoteName(schema)}.${quoteName(name)}`, counter],
    );
    found[name] = rows[0]!.last;
  }
  return found;
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

/** Translates an error; the message of PostgreSQL names the row that it refused. */
function translateRowError(error: unknown, where: string): unknown {
  const { code, detail, message } = error as { code?: string; detail?: string; message?: string };
  if (code !== undefined && /^(22|23|54)/.test(code))
    return new CairnError("conflict", `${where} refused a row: ${message}${detail ? ` (${detail})` : ""}. Nothing was changed.`, {
      cause: error,
    });
  return translatePostgresError(error, where);
}

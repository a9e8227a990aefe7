import { randomBytes } from "node:crypto";
import type pg from "pg";
import { CairnError } from "../../../model/errors.ts";

/** The `kind` in the details of an error that lasts until the pooler or the configuration is changed. */
const POOLER_PROBLEM = "pooler";

/** Settings that every transaction needs: name and value, in the order in which they are set. */
export type SessionSettings = readonly (readonly [name: string, value: string])[];

/**
 * Gives a new connection its settings if it reaches PostgreSQL itself, and returns false then. Returns true for a connection through a
 * pooler, which gets no settings, because another client may have its server connection next. A pooler invents the process id that it
 * reports at the start, so the id differs from that of the server process. The server compares both, in one round trip.
 */
export async function setUpSession(client: pg.ClientBase, settings: SessionSettings, timeoutMs: number): Promise<boolean> {
  const { processID } = client as unknown as { readonly processID: number | null };
  const isDirect = `pg_catalog.pg_backend_pid() = ${Number(processID ?? -1)}`;
  const set = settings.map(([name, value]) => `CASE WHEN ${isDirect} THEN pg_catalog.set_config('${name}', '${value}', false) END`);
  const query: pg.QueryConfig & { query_timeout: number } = {
    text: `SELECT ${isDirect} AS direct, ${set.join(", ")}`,
    query_timeout: timeoutMs,
  };
  const { rows } = await client.query<{ direct: boolean }>(query);
  return !rows[0]!.direct;
}

/** Returns the same settings as SQL that holds until the transaction ends. */
export function localSettings(settings: SessionSettings): string {
  return settings.map(([name, value]) => `; SET LOCAL ${name} = '${value}'`).join("");
}

/**
 * Raises `unavailable` if the pooler does not manage prepared statements. Such a pooler passes on the name of a statement, so the server
 * knows the name; one that manages them gives statements names of its own.
 */
export async function assertManagesPrepared(client: pg.ClientBase, where: string): Promise<void> {
  const name = `cairn_probe_${randomBytes(8).toString("hex")}`;
  const text = "SELECT 1 FROM pg_catalog.pg_prepared_statements WHERE name = $1";
  const { rows } = await client.query({ name, text, values: [name] });
  if (rows.length > 0) throw unpreparedError(where);
}

/** Returns the error for `postgres.prepared_statements: true` with a pooler that loses prepared statements. */
export function unpreparedError(where: string, cause?: unknown): CairnError {
  return new CairnError(
    "unavailable",
    `The connection pooler at ${where} does not manage prepared statements. Remove postgres.prepared_statements from the configuration, or use PgBouncer 1.21 or newer with max_prepared_statements.`,
    { cause, details: { where, kind: POOLER_PROBLEM } },
  );
}

/** Returns the error for a pooler that gives each statement to another session. */
export function statementPoolingError(where: string, cause: unknown): CairnError {
  return new CairnError(
    "unavailable",
    `The connection pooler at ${where} pools statements, so it refuses transactions. Set pool_mode = transaction.`,
    { cause, details: { where, kind: POOLER_PROBLEM } },
  );
}

import type { DatabaseSync } from "node:sqlite";
import { CairnError } from "../../../model/errors.ts";
import { waitLimitMs } from "../../../scheduling/calls.ts";
import { poll } from "../../../scheduling/retry.ts";
import { isBusy, MIGRATING, translateSqliteError } from "../driver/errors.ts";

/** Holds the id of the migration that fenced the database. */
export const FENCE_TABLE = "cairn_migration_fence";

/**
 * Creates triggers that raise an error before every write to every ordinary table; FTS5 tables change only together with one. They are
 * created in one transaction: the file holds every write that was acknowledged before, and none after. They affect every process, also
 * other SQLite programs. Refused calls wait and are repeated in `migrate/relocate.ts`.
 */
export async function createFence(connection: DatabaseSync, path: string, migrationId: string): Promise<void> {
  await inWriteTransaction(connection, path, () => {
    if (readFenceId(connection) === migrationId) return;
    connection.exec(`CREATE TABLE IF NOT EXISTS ${FENCE_TABLE} (migration_id TEXT NOT NULL)`);
    connection.exec(`DELETE FROM ${FENCE_TABLE}`);
    connection.prepare(`INSERT INTO ${FENCE_TABLE} (migration_id) VALUES (?)`).run(migrationId);
    for (const table of ordinaryTables(connection))
      for (const event of EVENTS) connection.exec(fenceTrigger(table, event).replace("CREATE TRIGGER", "CREATE TRIGGER IF NOT EXISTS"));
  });
}

/** Returns whether this is a trigger of a fence, exactly as `createFence` creates it. */
export function isFenceTrigger(name: string, table: string, sql: string): boolean {
  return EVENTS.some((event) => name === triggerName(table, event) && sql === fenceTrigger(table, event));
}

const EVENTS = ["INSERT", "UPDATE", "DELETE"];

function fenceTrigger(table: string, event: string): string {
  return `CREATE TRIGGER ${triggerName(table, event)} BEFORE ${event} ON ${table} BEGIN SELECT RAISE(ABORT, '${MIGRATING}'); END`;
}

/** Removes the triggers and the id. */
export async function dropFence(connection: DatabaseSync, path: string): Promise<void> {
  await inWriteTransaction(connection, path, () => {
    const triggers = connection.prepare(
      "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'cairn\\_fence\\_%' ESCAPE '\\'",
    );
    for (const { name } of triggers.all() as { name: string }[]) connection.exec(`DROP TRIGGER ${name}`);
    connection.exec(`DROP TABLE IF EXISTS ${FENCE_TABLE}`);
  });
}

/** Returns the id of the migration that fenced this database. */
export function readFenceId(connection: DatabaseSync): string | undefined {
  if (!connection.prepare("SELECT 1 FROM sqlite_master WHERE name = ?").get(FENCE_TABLE)) return undefined;
  return (connection.prepare(`SELECT migration_id FROM ${FENCE_TABLE}`).get() as { migration_id: string } | undefined)?.migration_id;
}

/** Returns the tables that can have triggers: FTS5 tables and their shadow tables cannot. */
export function ordinaryTables(connection: DatabaseSync): string[] {
  const rows = connection
    .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
    .all() as { name: string; sql: string }[];
  const virtual = rows.filter(({ sql }) => /^CREATE VIRTUAL TABLE/i.test(sql)).map(({ name }) => name);
  return rows
    .map(({ name }) => name)
    .filter((name) => name !== FENCE_TABLE && !virtual.some((table) => name === table || name.startsWith(`${table}_`)));
}

function triggerName(table: string, event: string): string {
  return `cairn_fence_${table}_${event.toLowerCase()}`;
}

/** Runs `work` in a write transaction after those in progress. */
async function inWriteTransaction(connection: DatabaseSync, path: string, work: () => void): Promise<void> {
  let busy: unknown;
  const begin = () => {
    try {
      connection.exec("BEGIN IMMEDIATE");
      return true;
    } catch (error) {
      if (!isBusy(error)) throw translateSqliteError(error, path);
      busy = error;
      return undefined;
    }
  };
  if (!(await poll(begin, { everyMs: 6, limitMs: waitLimitMs() })))
    throw new CairnError("unavailable", `Other processes hold the write lock on ${path}. Try again.`, { cause: busy });
  try {
    work();
    connection.exec("COMMIT");
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    throw translateSqliteError(error, path);
  }
}

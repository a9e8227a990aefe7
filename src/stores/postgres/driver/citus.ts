import { CairnError } from "../../../model/errors.ts";
import type { PostgresDatabase } from "./driver.ts";

/**
 * Settings that every node of Citus needs. Cairn has triggers on its tables, and each writes to tables of its own schema only. All tables
 * of a schema are on one node, so the triggers are safe.
 */
const SETTINGS = ["citus.enable_unsafe_triggers", "citus.allow_nested_distributed_execution"] as const;

/** Distributes each new schema, also schemas that must stay on the coordinator. */
const DISTRIBUTE_ALL = "citus.enable_schema_based_sharding";

/** Statement that returns the version of the extension, if the database has it. */
export const CITUS_VERSION = "SELECT extversion AS version FROM pg_catalog.pg_extension WHERE extname = 'citus'";

/** A Citus cluster, reached through its coordinator. */
export interface Citus {
  readonly version: string;
}

/**
 * Returns the Citus of this database; `undefined` for plain PostgreSQL, and for a Citus without nodes. Raises `unavailable` with the
 * reason if Cairn cannot work on it.
 */
export async function findCitus(database: PostgresDatabase): Promise<Citus | undefined> {
  const found = await database.read("pg_catalog", (tx) => tx.get<{ version: string }>(CITUS_VERSION));
  if (!found) return undefined;
  const [node] = await database.statement<{ group: number; nodes: number; user: string; off: string[]; all: string | null }>(
    `SELECT (SELECT groupid FROM pg_catalog.pg_dist_local_group) AS group, (SELECT count(*) FROM pg_catalog.pg_dist_node) AS nodes,
            quote_ident(current_user) AS user, ${missingSettings("text[]")} AS off, current_setting('${DISTRIBUTE_ALL}', true) AS all`,
    [],
    { idempotent: true },
  );
  const { group, nodes, user, off, all } = node!;
  if (group !== 0) throw refuse(database, "is a worker of Citus", "Use the address of the coordinator.");
  if (nodes === 0) return undefined;
  if (all === "on")
    throw refuse(database, `has ${DISTRIBUTE_ALL} = on`, `Let an administrator run: ALTER ROLE ${user} RESET ${DISTRIBUTE_ALL}`);
  // An unreachable worker is no reason to refuse the projects of the others.
  const workers = await database.statement<{ result: string }>(
    "SELECT result FROM run_command_on_workers($1) WHERE success",
    [`SELECT ${missingSettings("text[]")}::text`],
    { idempotent: true },
  );
  const missing = SETTINGS.filter((name) => off.includes(name) || workers.some(({ result }) => result.includes(name)));
  if (missing.length > 0)
    throw refuse(
      database,
      `is a Citus without ${missing.join(" and ")}, which the triggers of Cairn need on every node`,
      `Let an administrator run on the coordinator: ${missing.map((name) => `ALTER ROLE ${user} SET ${name} = on`).join("; ")}. Then start Cairn again.`,
    );
  return found;
}

/** Statement that distributes a schema with its tables and rows: Citus chooses the worker. */
export const DISTRIBUTE_SCHEMA = "SELECT pg_catalog.citus_schema_distribute($1::regnamespace)";

/** SQL for the bytes of the relation `c`, with its indexes. On Citus the coordinator has none of a distributed table, and asks the worker. */
export const LOCAL_BYTES = "pg_catalog.pg_total_relation_size(c.oid)";
export const CITUS_BYTES = `CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_dist_partition p WHERE p.logicalrelid = c.oid)
  THEN pg_catalog.citus_total_relation_size(c.oid, fail_on_error => false) ELSE ${LOCAL_BYTES} END`;

/** Returns SQL for the names of the settings that are not on. */
function missingSettings(type: string): string {
  const off = SETTINGS.map((name) => `CASE WHEN current_setting('${name}', true) IS DISTINCT FROM 'on' THEN '${name}' END`);
  return `array_remove(ARRAY[${off.join(", ")}]::${type}, NULL)`;
}

function refuse(database: PostgresDatabase, what: string, advice: string): CairnError {
  return new CairnError("unavailable", `${database.where} ${what}. ${advice}`, { details: { where: database.where, kind: "citus" } });
}

import type { DatabaseKind } from "../../../model/backup.ts";
import type { HealthProbe, ProbedDatabase, UnfinishedMigration } from "../../../ports/health-probe.ts";
import { migrationLockName } from "../migration/fence.ts";
import { schemaProblems } from "./damage.ts";
import type { PostgresDatabase } from "./driver.ts";

const SCHEMAS = `SELECT n.nspname AS name, coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relkind IN ('r', 'm')), 0)::text AS bytes,
  EXISTS (SELECT 1 FROM pg_proc p WHERE p.pronamespace = n.oid AND p.proname = 'cairn_migration_fence') AS fenced
  FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
  WHERE n.nspname ~ '^(project_[0-9a-f]{16}|shared|runs|system_.+)$' GROUP BY n.oid, n.nspname ORDER BY n.nspname`;

/** A migration holds this lock as long as it runs. */
const LOCK_IS_FREE = "SELECT pg_try_advisory_xact_lock_shared(hashtextextended($1, 0)) AS free";

/** Inspects the schemas of a PostgreSQL database. Disk space, processes and backups are left to the server's administrator. */
export function postgresHealth(database: PostgresDatabase): HealthProbe {
  return {
    engine: () =>
      database.read("pg_catalog", async (tx) => {
        const server = await tx.get<{ version: string }>("SELECT current_setting('server_version') AS version");
        const vector = await tx.get<{ version: string }>("SELECT extversion AS version FROM pg_extension WHERE extname = 'vector'");
        return `PostgreSQL ${server!.version}${vector ? `, pgvector ${vector.version}` : ""}`;
      }),
    async databases() {
      const rows = await database.read("pg_catalog", (tx) => tx.all<{ name: string; bytes: string; fenced: boolean }>(SCHEMAS));
      return rows.map(({ name, bytes, fenced }): ProbedDatabase => {
        const kind = kindOf(name);
        return { kind, id: name, location: name, bytes: Number(bytes), schema: "current", halfSnapshots: [], fenced };
      });
    },
    systems: async () => [], // the triggers only concern systems on SQLite
    check: async ({ location }) => (await schemaProblems(database, location)) ?? [],
    migrated: async () => [],
    async unfinishedMigrations(databases) {
      const fenced = databases.filter(({ fenced: isFenced }) => isFenced);
      if (fenced.length === 0) return []; // sends no query to a server that may be unavailable
      return database.read("pg_catalog", async (tx) => {
        const found: UnfinishedMigration[] = [];
        for (const { kind, id, location } of fenced) {
          const free = await tx.get<{ free: boolean }>(LOCK_IS_FREE, migrationLockName(location));
          found.push({ kind, id, running: !free!.free, elsewhere: true });
        }
        return found;
      });
    },
    disks: async () => [],
    leftovers: async () => [],
  };
}

function kindOf(schema: string): DatabaseKind {
  if (schema === "shared" || schema === "runs") return schema;
  return schema.startsWith("system_") ? "system" : "project";
}

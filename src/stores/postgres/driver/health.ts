import type { DatabaseKind } from "../../../model/backup.ts";
import type { HealthProbe, ProbedDatabase, UnfinishedMigration } from "../../../ports/health-probe.ts";
import { migrationLockName } from "../migration/fence.ts";
import { CITUS_VERSION } from "./citus.ts";
import { schemaProblems } from "./damage.ts";
import type { PostgresDatabase } from "./driver.ts";

const SCHEMAS = `SELECT n.nspname AS name, coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relkind IN ('r', 'm')), 0)::text AS bytes,
  EXISTS (SELECT 1 FROM pg_proc p WHERE p.pronamespace = n.oid AND p.proname = 'cairn_migration_fence') AS fenced
  FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
  WHERE n.nspname ~ '^(project_[0-9a-f]{16}|shared|runs|system_.+)$' GROUP BY n.oid, n.nspname ORDER BY n.nspname`;

/** The bytes of distributed schemas, by one question to each node. */
const DISTRIBUTED_BYTES = `SELECT n.nspname AS name, sum(s.shard_size)::text AS bytes FROM citus_shards s
  JOIN pg_class c ON c.oid = s.table_name JOIN pg_namespace n ON n.oid = c.relnamespace GROUP BY n.nspname`;

/** A migration holds this lock as long as it runs. */
const LOCK_IS_FREE = "SELECT pg_try_advisory_xact_lock_shared(hashtextextended($1, 0)) AS free";

/** Inspects the schemas of a PostgreSQL database. Disk space, processes and backups are left to the server's administrator. */
export function postgresHealth(database: PostgresDatabase): HealthProbe {
  return {
    engine: () =>
      database.read("pg_catalog", async (tx) => {
        const server = await tx.get<{ version: string }>("SELECT current_setting('server_version') AS version");
        const vector = await tx.get<{ version: string }>("SELECT extversion AS version FROM pg_extension WHERE extname = 'vector'");
        const citus = await tx.get<{ version: string }>(CITUS_VERSION);
        return `PostgreSQL ${server!.version}${vector ? `, pgvector ${vector.version}` : ""}${citus ? `, Citus ${citus.version}` : ""}`;
      }),
    async databases() {
      const { rows, distributed } = await database.read("pg_catalog", async (tx) => ({
        rows: await tx.all<{ name: string; bytes: string; fenced: boolean }>(SCHEMAS),
        distributed: (await tx.get(CITUS_VERSION)) ? await tx.all<{ name: string; bytes: string }>(DISTRIBUTED_BYTES) : [],
      }));
      const elsewhere = new Map(distributed.map(({ name, bytes }) => [name, Number(bytes)]));
      return rows.map(({ name, bytes: local, fenced }): ProbedDatabase => {
        const kind = kindOf(name);
        const bytes = elsewhere.get(name) ?? Number(local);
        return { kind, id: name, location: name, bytes, schema: "current", halfSnapshots: [], fenced };
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

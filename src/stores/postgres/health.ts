import type { DatabaseKind } from "../../model/backup.ts";
import type { HealthProbe, ProbedDatabase } from "../../ports/health-probe.ts";
import { schemaProblems } from "./damage.ts";
import { openPostgres, type PostgresDatabase } from "./driver.ts";

const SCHEMAS = `SELECT n.nspname AS name, coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relkind IN ('r', 'm')), 0)::text AS bytes
  FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
  WHERE n.nspname ~ '^(project_[0-9a-f]{16}|shared|runs|system_.+)$' GROUP BY n.nspname ORDER BY n.nspname`;

/** Schemas of a PostgreSQL database. Room on disks, processes and backups are the server's business. */
export function postgresHealth({ url }: { readonly url: string }): HealthProbe {
  async function connected<T>(work: (database: PostgresDatabase) => Promise<T>): Promise<T> {
    const database = openPostgres({ url, poolMax: 1 });
    try {
      return await work(database);
    } finally {
      await database.close();
    }
  }

  return {
    engine: () =>
      connected((database) =>
        database.read("pg_catalog", async (tx) => {
          const server = await tx.get<{ version: string }>("SELECT current_setting('server_version') AS version");
          const vector = await tx.get<{ version: string }>("SELECT extversion AS version FROM pg_extension WHERE extname = 'vector'");
          return `PostgreSQL ${server!.version}${vector ? `, pgvector ${vector.version}` : ""}`;
        }),
      ),
    databases: () =>
      connected(async (database) => {
        const rows = await database.read("pg_catalog", (tx) => tx.all<{ name: string; bytes: string }>(SCHEMAS));
        return rows.map(({ name, bytes }): ProbedDatabase => {
          const kind = kindOf(name);
          return { kind, id: name, location: name, bytes: Number(bytes), schema: "current", halfSnapshots: [] };
        });
      }),
    systems: async () => [], // whoever is here has moved already
    check: ({ location }) => connected(async (database) => (await schemaProblems(database, location)) ?? []),
    away: async () => [],
    disks: async () => [],
    leftovers: async () => [],
  };
}

function kindOf(schema: string): DatabaseKind {
  if (schema === "shared" || schema === "runs") return schema;
  return schema.startsWith("system_") ? "system" : "project";
}

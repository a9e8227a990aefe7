import { randomBytes } from "node:crypto";
import pg from "pg";
import type { TestDatabase } from "./postgres.ts";

/** The address of a Citus coordinator, as a superuser. Without it the tests of Citus are reported as not run. */
export const citusUrl = process.env.CITUS_TEST_URL;

export interface CitusDatabase extends TestDatabase {
  /** Runs a statement on the coordinator, or on another node. */
  query(sql: string, url?: string): Promise<Record<string, unknown>[]>;
  /** Runs a statement on every node. */
  everywhere(sql: string): Promise<void>;
  /** Returns the addresses of the workers. */
  workers(): Promise<readonly string[]>;
  /** Returns the node of a distributed schema; `undefined` for a schema on the coordinator. */
  nodeOf(schema: string): Promise<string | undefined>;
}

/** Creates a database with Citus and pgvector on the coordinator and its workers. `settings` become settings of the database on every node. */
export async function citusDatabase(settings: Readonly<Record<string, string>> = CITUS_SETTINGS): Promise<CitusDatabase> {
  const name = `cairn_test_${process.env.CAIRN_TEST_RUN ?? "solo"}_${randomBytes(6).toString("hex")}`;
  const coordinator = new URL(citusUrl!);
  const workers = await ask(
    coordinator.href,
    "SELECT nodename AS host, nodeport AS port FROM pg_dist_node WHERE groupid > 0 ORDER BY groupid",
  );
  const nodes = [coordinator, ...workers.map(({ host, port }) => at(coordinator, `${host}:${port}`))];
  for (const node of nodes) {
    await ask(node.href, `CREATE DATABASE ${name}`);
    const url = within(node, name);
    await ask(url, "CREATE EXTENSION citus");
    await ask(url, "CREATE EXTENSION vector");
    for (const [setting, value] of Object.entries(settings)) await ask(url, `ALTER DATABASE ${name} SET ${setting} = ${value}`);
  }
  const url = within(coordinator, name);
  await ask(url, "SELECT citus_set_coordinator_host($1, $2)", [coordinator.hostname, Number(coordinator.port || 5432)]);
  for (const { host, port } of workers) await ask(url, "SELECT citus_add_node($1, $2)", [host, port]);
  return {
    url,
    query: (sql, node) => (node === undefined ? ask(url, sql) : ask(alone(node), sql)),
    async everywhere(sql) {
      for (const node of nodes) await ask(alone(within(node, name)), sql);
    },
    workers: async () => nodes.slice(1).map((node) => within(node, name)),
    async nodeOf(schema) {
      const [found] = await ask(
        url,
        "SELECT DISTINCT nodename || ':' || nodeport AS node FROM citus_shards WHERE table_name::text LIKE $1",
        [`${schema}.%`],
      );
      return found?.node as string | undefined;
    },
    async drop() {
      for (const node of nodes) await ask(node.href, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

const CITUS_SETTINGS = { "citus.enable_unsafe_triggers": "on", "citus.allow_nested_distributed_execution": "on" };

function at(coordinator: URL, host: string): URL {
  const url = new URL(coordinator);
  url.host = host;
  return url;
}

function within(node: URL, name: string): string {
  const url = new URL(node);
  url.pathname = `/${name}`;
  return url.href;
}

/** Returns the address with the option that a statement concerns this node only. */
function alone(node: string): string {
  const url = new URL(node);
  url.searchParams.set("options", "-c citus.enable_ddl_propagation=off");
  return url.href;
}

async function ask(url: string, sql: string, params: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 60_000 });
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(sql, [...params])).rows ?? [];
  } finally {
    await client.end();
  }
}

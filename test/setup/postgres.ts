import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { isAlive } from "../support/processes.ts";
import { citusDatabase } from "./citus.ts";

/** False in a fast run, which omits suites that need PostgreSQL and reports it. */
export const postgresWanted = process.env.CAIRN_TEST_FAST !== "1";

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** Creates an empty database on the test server and starts the server if necessary. Remaining databases are dropped at the end of the run. */
export async function testDatabase(): Promise<TestDatabase> {
  if (process.env.CAIRN_TEST_ON_CITUS === "1") return citusDatabase();
  const server = await serverUrl();
  const name = `cairn_test_${process.env.CAIRN_TEST_RUN ?? "solo"}_${randomBytes(6).toString("hex")}`;
  await query(server, `CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => query(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`).then(() => {}) };
}

export interface OwnCluster {
  readonly url: string;
  /** Stops it cleanly and closes all connections. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Sends SIGKILL to the server process: only durable data remain. */
  kill(): Promise<void>;
  destroy(): Promise<void>;
}

/** Creates a private server with fsync on, which the test may stop, start and kill. Its port stays the same. */
export async function ownCluster(): Promise<OwnCluster> {
  const name = `own-${randomBytes(6).toString("hex")}`;
  const url = (await script("create", name)).trim();
  const home = await dataFolder(url);
  return {
    url,
    stop: () => script("halt", name).then(() => {}),
    async start() {
      // After a kill the old server's children take a moment to end; a new server does not start before.
      for (let attempt = 1; ; attempt++) {
        try {
          return void (await script("boot", name));
        } catch (error) {
          if (attempt === 240) throw error;
          await sleep(250);
        }
      }
    },
    async kill() {
      const pid = Number(readFileSync(`${home}/postmaster.pid`, "utf8").split("\n")[0]);
      process.kill(pid, "SIGKILL");
      while (isAlive(pid)) await sleep(10);
    },
    destroy: () => script("destroy", name).then(() => {}),
  };
}

/** Releases the shared server, which stops after its last user. */
export async function releaseServer(): Promise<void> {
  if (!process.env.CAIRN_TEST_POSTGRES_URL && postgresWanted) await script("release", holder());
}

/** Drops remaining databases on a developer's own server. The shared server is deleted with its databases. */
export async function dropDatabasesOfRun(): Promise<void> {
  const server = process.env.CAIRN_TEST_POSTGRES_URL;
  if (!server || !postgresWanted) return;
  const pattern = `cairn\\_test\\_${process.env.CAIRN_TEST_RUN}\\_%`;
  const { rows } = await query(server, "SELECT datname FROM pg_database WHERE datname LIKE $1", [pattern]);
  for (const { datname } of rows) await query(server, `DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
}

let starting: Promise<string> | undefined;

async function serverUrl(): Promise<string> {
  if (!postgresWanted) throw new Error("A fast run must not ask for PostgreSQL: guard the suite with postgresWanted.");
  const own = process.env.CAIRN_TEST_POSTGRES_URL;
  starting ??= own ? Promise.resolve(own) : script("acquire", holder()).then((url) => url.trim());
  return starting;
}

/** Returns the id of the process that runs all tests: the server runs until it ends. */
function holder(): string {
  return process.env.CAIRN_TEST_HOLDER ?? String(process.pid);
}

async function script(...args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(resolve(import.meta.dirname, "../../scripts/postgres.sh"), args);
    return stdout;
  } catch (error) {
    const stderr = (error as { stderr?: string }).stderr?.trim();
    throw new Error(`The tests need PostgreSQL, and scripts/postgres.sh ${args.join(" ")} failed:\n${stderr || error}`);
  }
}

async function dataFolder(url: string): Promise<string> {
  const { rows } = await query(url, "SHOW data_directory");
  return rows[0].data_directory;
}

async function query(url: string, sql: string, params: readonly unknown[] = []): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 60_000 });
  client.on("error", () => {}); // a server that is stopped later must not end the test process
  await client.connect();
  try {
    return await client.query(sql, [...params]);
  } finally {
    await client.end();
  }
}

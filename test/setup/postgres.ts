import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { isAlive } from "../support/processes.ts";

/** False in a fast run: suites that need PostgreSQL are left out, and the run says so. */
export const postgresWanted = process.env.CAIRN_TEST_FAST !== "1";

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** A fresh, empty database on the test server, which is started if need be. What is not dropped goes at the end of the run. */
export async function testDatabase(): Promise<TestDatabase> {
  const server = await serverUrl();
  const name = `cairn_test_${process.env.CAIRN_TEST_RUN ?? "solo"}_${randomBytes(6).toString("hex")}`;
  await query(server, `CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => query(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`).then(() => {}) };
}

export interface OwnCluster {
  readonly url: string;
  /** Ends it cleanly, cutting all connections. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** kill -9 on the server process: its memory is gone, only what was made durable remains. */
  kill(): Promise<void>;
  destroy(): Promise<void>;
}

/** A server of the test's own, with fsync on, to be stopped, started and killed at will. Its port stays the same. */
export async function ownCluster(): Promise<OwnCluster> {
  const name = `own-${randomBytes(6).toString("hex")}`;
  const url = (await script("create", name)).trim();
  const home = await dataFolder(url);
  return {
    url,
    stop: () => script("halt", name).then(() => {}),
    async start() {
      // After a kill the old server's children need a moment to notice; until they are gone a new one refuses to start.
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

/** Lets the shared server stop, if this run was the last to use it. */
export async function releaseServer(): Promise<void> {
  if (!process.env.CAIRN_TEST_POSTGRES_URL && postgresWanted) await script("release", holder());
}

/** On the shared server leftovers vanish with it; on a person's own server they would stay. */
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

/** The server stays up until this process, the one that runs all the tests, is done. */
function holder(): string {
  return process.env.CAIRN_TEST_HOLDER ?? String(process.pid);
}

async function script(...args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(resolve(import.meta.dirname, "../../scripts/postgres.sh"), args);
    return stdout;
  } catch (error) {
    const said = (error as { stderr?: string }).stderr?.trim();
    throw new Error(`The tests need PostgreSQL, and scripts/postgres.sh ${args.join(" ")} failed:\n${said || error}`);
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

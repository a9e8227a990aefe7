import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { systemClock } from "../../src/model/ids.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { END, graph } from "../../src/runs.ts";
import { openPostgres, type PostgresDatabase } from "../../src/stores/postgres/driver/driver.ts";
import { postgresKeyStore } from "../../src/stores/postgres/keys/store.ts";
import { connectTo } from "../../src/stores/postgres/migration/endpoint.ts";
import { postgresIndexQueue } from "../../src/stores/postgres/projects/index-queue.ts";
import { postgresRunStore } from "../../src/stores/postgres/runs/store.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { postgresSystemStorage } from "../../src/stores/postgres/systems/storage.ts";
import { runStoreContract, storageContract, systemStorageContract } from "../../src/testing/index.ts";
import { builtCommand } from "../cli/stage.ts";
import { indexQueueContract } from "../code/index-queue.ts";
import { type Pooler, startPooler } from "../setup/pgbouncer.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";
import { keyStoreContract } from "./key-contract.ts";

let database: TestDatabase;
let pooler: Pooler;
let url: string;
beforeAll(async () => {
  database = await testDatabase();
  pooler = await startPooler(database.url);
  url = pooler.through(database.url);
});
afterAll(async () => {
  await pooler.stop();
  await database.drop();
});

describe("Through PgBouncer in transaction mode, PostgreSQL storage", () => {
  let storage: Storage;
  const openStorage = () => postgresStorage({ url, now: systemClock });
  beforeAll(() => {
    storage = openStorage();
  });
  afterAll(() => storage.close());
  for (const { name, run } of storageContract({ storage: () => storage, openAgain: openStorage })) it(name, run);
});

describe("Through PgBouncer in transaction mode, the run store", () => {
  const open = async () => {
    const store = postgresRunStore({ url, poolMax: 8 });
    for (const { runId } of await store.listRuns({ limit: 1_000 })) await store.deleteRun(runId);
    await direct("TRUNCATE runs.runs, runs.checkpoints, runs.graphs, runs.workers");
    return store;
  };
  for (const { name, run } of runStoreContract({ clock: "own", open })) it(name, run);
});

describe("Through PgBouncer in transaction mode, system storage", () => {
  const open = async () => {
    for (const { name } of await direct<{ name: string }>("SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'system\\_%'"))
      await direct(`DROP SCHEMA ${name} CASCADE`);
    return postgresSystemStorage({ url, poolMax: 4 });
  };
  for (const { name, run } of systemStorageContract({ open })) it(name, run);
});

keyStoreContract("through PgBouncer in transaction mode", async () => {
  await direct("DROP SCHEMA IF EXISTS cairn_keys CASCADE");
  const connections = openPostgres({ url, poolMax: 2 });
  return { store: postgresKeyStore(connections), close: () => connections.close() };
});

indexQueueContract("through PgBouncer in transaction mode", async (perform, options) => {
  const connections = { database: openPostgres({ url, poolMax: 3 }), intake: openPostgres({ url, poolMax: 2 }) };
  const queue = postgresIndexQueue({ ...connections, perform, pollEveryMs: 50, drainMs: 200, leaseMs: 300, ...options });
  const close = async () => {
    await queue.close();
    for (const one of Object.values(connections)) await one.close();
  };
  return { ...queue, close };
});

describe("Connections through PgBouncer", () => {
  const opened: PostgresDatabase[] = [];
  const connect = (options: Partial<Parameters<typeof openPostgres>[0]> = {}) => {
    const one = openPostgres({ url, ...options });
    opened.push(one);
    return one;
  };
  afterAll(() => Promise.all(opened.map((one) => one.close())));

  it("leave no prepared statement, setting, lock or temporary table in a server session", async () => {
    const connections = connect();
    await Promise.all(Array.from({ length: 20 }, (_, n) => connections.statement("SELECT $1::int AS n", [n])));
    await connections.read("pg_catalog", (tx) => tx.all("SELECT now()"));
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const seen = new Map<number, unknown>();
    try {
      // Consecutive transactions are given to the server sessions in turn.
      for (let query = 0; query < 12; query++) {
        const { rows } = await client.query(`SELECT pg_backend_pid() AS pid, (SELECT count(*)::int FROM pg_prepared_statements) AS prepared,
          (SELECT count(*)::int FROM pg_settings WHERE source = 'session' AND name IN ('search_path', 'statement_timeout', 'lock_timeout',
             'idle_in_transaction_session_timeout', 'hnsw.ef_search', 'enable_seqscan', 'enable_sort')) AS settings,
          (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS locks,
          (SELECT count(*)::int FROM pg_class WHERE relpersistence = 't') AS temporary`);
        const { pid, ...state } = rows[0];
        seen.set(pid, state);
      }
    } finally {
      await client.end();
    }
    expect(seen.size).toBeGreaterThan(1);
    for (const state of seen.values()) expect(state).toEqual({ prepared: 0, settings: 0, locks: 0, temporary: 0 });
  });

  it("bring time limits and formats with each transaction", async () => {
    await direct(`ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET TimeZone = 'Asia/Tokyo'`);
    const other = await startPooler(database.url);
    try {
      const connections = connect({ url: other.through(database.url), statementTimeoutMs: 200 });
      const [row] = await connections.statement<{ at: string }>("SELECT '2026-01-02T03:04:05Z'::timestamptz AS at", []);
      expect(row!.at).toBe("2026-01-02T03:04:05.000Z");
      await expect(connections.statement("SELECT pg_sleep(20)", [])).rejects.toMatchObject({ code: "timeout" });
    } finally {
      await direct(`ALTER DATABASE "${new URL(url).pathname.slice(1)}" RESET TimeZone`);
      await Promise.all(opened.splice(0).map((one) => one.close()));
      await other.stop();
    }
  });

  it("are refused with the reason when prepared statements are demanded of a pooler that does not manage them", async () => {
    const error = {
      code: "unavailable",
      message: expect.stringMatching(/does not manage prepared statements\. Remove postgres\.prepared/),
    };
    await expect(connect({ preparedStatements: true }).statement("SELECT 1", [])).rejects.toMatchObject(error);
  });

  it("are refused with the reason when the pooler pools statements", async () => {
    const other = await startPooler(database.url, { pool_mode: "statement" });
    const storage = postgresStorage({ url: other.through(database.url), now: systemClock });
    try {
      const error = { code: "unavailable", message: expect.stringMatching(/Set pool_mode = transaction/) };
      await expect(storage.check()).rejects.toMatchObject(error);
      const home = mkdtempSync(join(tmpdir(), "cairn-pooler-"));
      const env = { PATH: process.env.PATH!, HOME: home, CAIRN_STORAGE: other.through(database.url), CAIRN_EMBEDDER_KIND: "none" };
      const started = await promisify(execFile)(builtCommand(), ["serve", "--port", "0"], { cwd: home, env }).catch((reason) => reason);
      rmSync(home, { recursive: true, force: true });
      expect(started).toMatchObject({ code: expect.any(Number), stderr: expect.stringMatching(/Set pool_mode = transaction/) });
    } finally {
      await storage.close();
      await other.stop();
    }
  });

  it("report what the pooler says about the server behind it", async () => {
    const missing = connect({ url: url.replace(/[^/]*$/, "no_such_database") });
    await expect(missing.statement("SELECT 1", [])).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/cannot be reached \(.*no_such_database.*does not exist/),
    });
  });

  it("are refused by a migration, which holds a lock of its session", async () => {
    await expect(connectTo(url, "runs", "the database")).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/needs a direct connection.*Use the address of PostgreSQL itself/),
    });
    const client = await connectTo(database.url, "runs", "the database");
    await client.end();
  });

  it("prepare no statement after a pooler that gave no sign of itself has lost one", async () => {
    const session = await startPooler(database.url, { pool_mode: "transaction", default_pool_size: 1 });
    const disguised = await disguise(session.through(database.url));
    try {
      const [one, two] = [connect({ url: disguised.url, poolMax: 1 }), connect({ url: disguised.url, poolMax: 1 })];
      for (const connections of [one, two, one, two])
        expect(await connections.read("pg_catalog", (tx) => tx.get("SELECT $1::int + 1 AS two", 1))).toEqual({ two: 2 });
    } finally {
      await Promise.all(opened.splice(0).map((one) => one.close()));
      await disguised.close();
      await session.stop();
    }
  });
});

describe("Cairn through PgBouncer in transaction mode", () => {
  it("saves, searches, indexes files and executes runs", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "cairn-pooler-"));
    const cairn = await open({ storage: url, dataDir, stateDir: dataDir, embedder: [testEmbedder()] });
    const projectPath = "/srv/pooled";
    try {
      const saves = Array.from({ length: 30 }, (_, n) => cairn.checkpoints.save({ projectPath, summary: `Rotated certificate ${n}` }));
      const ids = new Set((await Promise.all(saves)).map(({ id }) => id));
      expect(ids.size).toBe(30);
      const { hits } = await cairn.checkpoints.search({ projectPath, query: "certificate rotation", topK: 30 });
      expect(new Set(hits.map(({ record }) => record.id))).toEqual(ids);

      const files = [{ path: "src/greet.ts", content: "export function greetVisitor() {\n  return 1;\n}\n" }];
      const { id } = await cairn.indexing.send({ projectPath, files });
      await expect.poll(async () => (await cairn.indexing.job(id)).status).toBe("completed");
      expect((await cairn.code.search({ projectPath, query: "greetVisitor" })).hits[0]!.path).toBe("src/greet.ts");

      const double = graph<{ n: number }>({ name: "double" })
        .node("double", ({ n }) => ({ n: 2 * n }))
        .edge("double", END)
        .entry("double")
        .compile();
      const worker = cairn.runs.worker({ graphs: [double], pollMs: 20 });
      for (let n = 0; n < 5; n++) await double.enqueue({ n }, { store: cairn.runs.store, runId: `double-${n}` });
      await expect.poll(async () => (await cairn.runs.store.listRuns({ graph: "double", status: "completed" })).length).toBe(5);
      await worker.close();
    } finally {
      await cairn.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

async function direct<Row extends pg.QueryResultRow>(sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Stands in front of a pooler with one server connection and reports the process id of that connection, as PostgreSQL itself does. */
async function disguise(target: string): Promise<{ url: string; close(): Promise<void> }> {
  const client = new pg.Client({ connectionString: target });
  await client.connect();
  const pid: number = (await client.query("SELECT pg_backend_pid() AS pid")).rows[0].pid;
  await client.end();
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = createConnection(Number(new URL(target).port), "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    near.pipe(far);
    far.on("end", () => near.end());
    far.on("data", (data) => {
      const keyData = data.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
      if (keyData >= 0) data.writeInt32BE(pid, keyData + 5);
      near.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

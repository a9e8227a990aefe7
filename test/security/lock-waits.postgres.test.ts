import { createConnection, createServer, type Socket } from "node:net";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName, systemClock, systemDatabaseName } from "../../src/model/ids.ts";
import { openRunStore } from "../../src/open/open-run-store.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { fillProject } from "../migrate/full-project.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { runCheckpoint } from "../support/run-checkpoint.ts";
import { callAll, type Held, unlike503 } from "./locked-calls.ts";

const project = "/locked";
const SCHEMAS: Record<Held, string> = { project: projectDatabaseName(project), runs: "runs", system: systemDatabaseName("shop") };

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  const storage = postgresStorage({ url: database.url, now: systemClock });
  await fillProject(storage, project, { records: 3 });
  await storage.close();
  const runs = await openRunStore({ storage: "postgres", url: database.url });
  await runs.save(runCheckpoint());
  await runs.close();
  const cairn = await opened();
  const shop = cairn.systems.open("shop", { maxAttempts: 1, snapshots: { everyMs: 0 } });
  const fail = () => {
    throw new Error("It does not work.");
  };
  await shop.component("till").port("orders").receive({ id: "m", offset: 0 }, fail);
  await shop.close();
  await cairn.close();
});
afterAll(() => database.drop());

function opened(url = database.url, poolMax = 30): Promise<Cairn> {
  return open({ storage: url, embedder: [], postgres: { poolMax } });
}

/** Locks all tables of a schema, as a long migration or a careless administrator would. */
async function lockSchema(schema: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: database.url });
  client.on("error", () => {});
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = $1",
    [schema],
  );
  expect(rows.length).toBeGreaterThan(0);
  await client.query("BEGIN");
  await client.query(`LOCK TABLE ${rows.map(({ name }) => name).join(", ")} IN ACCESS EXCLUSIVE MODE`);
  return () => client.end();
}

/** Passes everything on to PostgreSQL until it is frozen. */
async function freezable(): Promise<{ url: string; freeze(): void; close(): void }> {
  const target = new URL(database.url);
  const upstream = Number(target.port);
  const sockets = new Set<Socket>();
  let frozen = false;
  const server = createServer((socket) => {
    const other = createConnection(upstream, "127.0.0.1");
    for (const [from, to] of [
      [socket, other],
      [other, socket],
    ] as const) {
      sockets.add(from);
      from.on("data", (data) => frozen || to.write(data));
      from.on("close", () => frozen || to.destroy());
      from.on("error", () => {});
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  target.port = String((server.address() as { port: number }).port);
  return {
    url: target.href,
    freeze() {
      frozen = true;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

describe("a caller who makes Cairn wait for PostgreSQL", () => {
  it.each<Held>(["project", "runs", "system"])("gets 503 with Retry-After while another session holds the tables: %s", async (held) => {
    const cairn = await opened();
    expect((await cairn.checkpoints.list({ projectPath: project })).total).toBe(3); // connected before
    const release = await lockSchema(SCHEMAS[held]);
    const answers = await callAll(cairn, held, project).finally(release);
    expect(unlike503(answers)).toEqual([]);
    expect((await cairn.checkpoints.list({ projectPath: project })).total).toBe(3);
    await cairn.close();
  });

  it("gets 503 with Retry-After while the only connection is busy", async () => {
    const cairn = await opened(database.url, 1);
    expect((await cairn.checkpoints.list({ projectPath: project })).total).toBe(3);
    const release = await lockSchema(SCHEMAS.project);
    expect(unlike503(await callAll(cairn, "project", project).finally(release))).toEqual([]);
    await cairn.close();
  });

  it("gets 503 while the server accepts and does not answer", async () => {
    const proxy = await freezable();
    const cairn = await opened(proxy.url);
    expect((await cairn.checkpoints.list({ projectPath: project })).total).toBe(3);
    proxy.freeze();
    const answers = await callAll(cairn, "project", project);
    for (const [name, { status, body }] of answers) expect([name, status], JSON.stringify(body)).toEqual([name, 503]);
    proxy.close();
    await cairn.close();
  });
});

import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { freshProject, sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";

describe("events and open transactions of PostgreSQL", () => {
  let databases: TestDatabase[];
  let storage: Storage;
  beforeAll(async () => {
    databases = [await testDatabase(), await testDatabase()];
    storage = postgresStorage({ url: databases[0]!.url, now: systemClock });
  });
  afterAll(async () => {
    await storage.close();
    for (const database of databases) await database.drop();
  });

  /** Runs the work while a transaction that has written something is open in a database. */
  async function whileOpen(url: string, work: () => Promise<void>): Promise<void> {
    const client = new pg.Client(url);
    await client.connect();
    await client.query("BEGIN; SELECT pg_current_xact_id()");
    await work();
    await client.query("ROLLBACK");
    await client.end();
  }

  it("waits for an older transaction of the same database, which may still write one", async () => {
    const project = freshProject();
    const { checkpoints, events } = await storage.create(project);
    const start = await events.head();
    await whileOpen(databases[0]!.url, async () => {
      await checkpoints.put(sampleCheckpoint(project, { id: "a" }));
      expect(await events.readAfter(start, 10)).toEqual({ events: [], isExpired: false, isPending: true });
    });
    await expect.poll(async () => (await events.readAfter(start, 10)).events, { timeout: 120_000 }).toMatchObject([{ id: "a" }]);
  });

  it("does not wait for transactions of another server, from which the log was moved or restored", async () => {
    const project = freshProject();
    const { checkpoints, events } = await storage.create(project);
    const client = new pg.Client(databases[0]!.url);
    await client.connect();
    const table = `${projectDatabaseName(project)}.events`;
    await client.query(`INSERT INTO ${table} (transaction, kind, action, id) VALUES ('281474976710656', 'checkpoint', 'saved', 'foreign')`);
    await client.end();
    const start = await events.head();
    await checkpoints.put(sampleCheckpoint(project, { id: "c" }));
    await expect.poll(() => events.readAfter(start, 10), { timeout: 120_000 }).toMatchObject({ events: [{ id: "c" }], isPending: false });
  });

  it("accepts positions with sequences of up to 19 digits", async () => {
    const project = freshProject();
    const { checkpoints, events } = await storage.create(project);
    const client = new pg.Client(databases[0]!.url);
    await client.connect();
    await client.query(`ALTER TABLE ${projectDatabaseName(project)}.events ALTER COLUMN sequence RESTART WITH ${2n ** 62n + 1n}`);
    await client.end();
    const start = await events.head();
    for (const id of ["d", "e", "f"]) await checkpoints.put(sampleCheckpoint(project, { id }));
    const read = async (position: string) => (await events.readAfter(position, 10)).events;
    await expect.poll(async () => (await read(start)).map(({ id }) => id), { timeout: 120_000 }).toEqual(["d", "e", "f"]);
    const [first, ...others] = await read(start);
    expect(first!.position.split(".")[1]).toBe("4611686018427387905");
    expect(await read(first!.position)).toEqual(others);
    expect(await events.readAfter("0.0", 2)).toMatchObject({ events: [{ id: "d" }, { id: "e" }], isExpired: false });
  });

  it("does not wait for transactions of other databases of the server", async () => {
    const project = freshProject();
    const { checkpoints, events } = await storage.create(project);
    const start = await events.head();
    await whileOpen(databases[1]!.url, async () => {
      await checkpoints.put(sampleCheckpoint(project, { id: "b" }));
      await expect.poll(async () => (await events.readAfter(start, 10)).events, { timeout: 120_000 }).toMatchObject([{ id: "b" }]);
    });
  });
});

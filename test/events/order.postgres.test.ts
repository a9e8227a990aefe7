import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import type { EventLog } from "../../src/ports/event-log.ts";
import { openPostgres } from "../../src/stores/postgres/driver/driver.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";

const P = "/home/me/project";
const never = new AbortController().signal;
let database: TestDatabase;
const clients: pg.Client[] = [];
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(async () => {
  for (const client of clients) await client.end();
  await database.drop();
});

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  clients.push(client);
  return client;
}

/** Reads until the order of all events is certain: a server has other transactions, such as that of autovacuum. */
async function readAll(log: EventLog, position: string) {
  for (;;) {
    const page = await log.readAfter(position, 100);
    if (!page.isPending) return page.events.map(({ id }) => id);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe("the event log on PostgreSQL", () => {
  it("waits for an older transaction, and then returns both in an order that stays", async () => {
    const shared = openPostgres({ url: database.url });
    const storage = postgresStorage({ database: shared, now: () => new Date().toISOString() });
    const { checkpoints, events } = await storage.create(P);
    const start = await events.head();
    const older = await connect();
    const add = (id: string) => `INSERT INTO ${projectDatabaseName(P)}.events (kind, action, id) VALUES ('checkpoint', 'saved', '${id}')`;
    await older.query("BEGIN");
    await older.query(add("first of the older"));
    await checkpoints.put(sampleCheckpoint(P, { id: "newer" }));
    expect(await events.readAfter(start, 10)).toEqual({ events: [], isExpired: false, isPending: true });
    const between = await events.head(); // a client that connects now gets both
    await older.query(add("second of the older"));
    await older.query("COMMIT");
    const order = ["first of the older", "second of the older", "newer"];
    expect(await readAll(events, start)).toEqual(order);
    expect(await readAll(events, between)).toEqual(order);
    expect((await events.readAfter(start, 1)).events.map(({ id }) => id)).toEqual(order.slice(0, 1));
    await storage.close();
    await shared.close();
  });

  it("reports the saves of several nodes to each node, exactly once", async () => {
    const nodes: Cairn[] = [];
    for (let count = 0; count < 2; count++) nodes.push(await open({ storage: database.url, embedder: { kind: "none" } }));
    const projectPath = "/home/me/shared-by-nodes";
    const streams = [];
    for (const node of nodes) streams.push(await node.events.follow({ projects: [projectPath] }));
    const saved = await Promise.all(
      Array.from({ length: 60 }, (_, index) => nodes[index % 2]!.checkpoints.save({ projectPath, summary: `Number ${index}` })),
    );
    for (const stream of streams) {
      const ids: string[] = [];
      while (ids.length < saved.length)
        for (const message of await stream.next(10_000, never)) if (message.type === "change") ids.push(message.event.id);
      expect(await stream.next(1_200, never)).toEqual([]);
      expect(ids.toSorted()).toEqual(saved.map(({ id }) => id).toSorted());
      stream.close();
    }
    for (const node of nodes) await node.close();
  });
});

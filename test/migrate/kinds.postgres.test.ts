import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CairnSaver } from "../../src/adapters/langgraph/index.ts";
import { postgresThreads } from "../../src/adapters/langgraph/postgres.ts";
import { sqliteThreads } from "../../src/adapters/langgraph/sqlite.ts";
import { systemClock } from "../../src/model/ids.ts";
import { openSystemStorage } from "../../src/open/open-system-storage.ts";
import type { ComponentChange } from "../../src/ports/system-store.ts";
import { openRunStore } from "../../src/runs.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { runCheckpoint } from "../support/run-checkpoint.ts";
import { AT } from "./full-project.ts";
import { places } from "./place.ts";

let database: TestDatabase;
const place = places();
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

/** Bytes as text, whichever class they have. */
const plain = (value: unknown) =>
  JSON.parse(
    JSON.stringify(value, (_, part) =>
      part instanceof Uint8Array || part?.type === "Buffer" ? Buffer.from(part.data ?? part).toString("hex") : part,
    ),
  );
const state = (text: string) => Buffer.from(text);

describe("runs", () => {
  it("are migrated there and back while they are open, and stay the same", async () => {
    const { dataDir, migrations } = place();
    const which = { kind: "runs", id: "runs" } as const;
    const store = await openRunStore({ storage: "sqlite", path: join(dataDir, "runs.db") });
    const checkpoint = (nodeId: string, state: string | Uint8Array) =>
      runCheckpoint({ runId: "run-1", nodeId, state, note: 'Заметка "x"' });
    await store.save(checkpoint("a", '{"text":"Прогресс 🧭"}'));
    await store.save(checkpoint("b", new Uint8Array([0, 1, 255])));
    await store.save(checkpoint("c", "x".repeat(1_200_000))); // compressed
    await store.save(checkpoint("d", new Uint8Array(0)));
    const lease = await store.start({
      runId: "held",
      graph: "g",
      fingerprint: "f",
      owner: "me",
      leaseMs: 60_000,
      first: checkpoint("start", "{}"),
    });
    const shape = { graph: "g", fingerprint: "f", version: "1", entry: "a", nodes: [{ name: "a", type: "step" as const }], edges: [] };
    await store.saveGraph(shape);
    const queued = await store.enqueue({ runId: "queued", graph: "g", fingerprint: "f", first: checkpoint("start", "{}") });
    const before = await Promise.all(["a", "b", "c", "d"].map((node) => store.load("run-1", node)));

    const up = await migrations.migrate({ to: database.url, which });
    expect(up.databases[0]).toMatchObject({ outcome: "migrated" });
    expect(await Promise.all(["a", "b", "c", "d"].map((node) => store.load("run-1", node)))).toEqual(before);
    expect(await store.save(checkpoint("e", "on PostgreSQL"))).toMatchObject({ sequence: 5 });
    await store.renew(lease, 60_000);
    expect(await store.getGraph("g", "f")).toEqual(shape);
    expect(await store.getRun("queued")).toEqual(queued);

    const down = await migrations.migrate({ to: "sqlite", which });
    expect(down.databases[0]!.tables.find(({ table }) => table === "checkpoints")?.rows).toBe(7);
    expect(await store.getGraph("g", "f")).toEqual(shape);
    expect(await store.getRun("queued")).toEqual(queued);
    expect((await store.load("run-1", "e")).state).toBe("on PostgreSQL");
    expect(await Promise.all(["a", "b", "c", "d"].map((node) => store.load("run-1", node)))).toEqual(before);
    expect(await store.save(checkpoint("f", "back"))).toMatchObject({ sequence: 6 });
    await store.renew(lease, 60_000);
    await store.close();

    const again = await migrations.migrate({ to: database.url, which });
    expect(again.databases[0]).toMatchObject({ outcome: "migrated", rows: down.databases[0]!.rows + 1 });
  });
});

describe("systems", () => {
  it("are migrated there and back while they are open, and stay the same", async () => {
    const { stateDir, migrations } = place();
    const which = { kind: "system", id: "shop" } as const;
    const storage = await openSystemStorage({ storage: "sqlite", stateDir });
    const system = await storage.create("shop");
    const change = (version: number, offset: number): ComponentChange => ({
      component: "c",
      version,
      at: AT,
      ports: [{ port: "p", firstOffset: 0, position: offset, highest: offset, prunedTo: -1, aheadAdded: [], closesGap: false }],
      messages: [
        {
          port: "p",
          id: `m${offset}`,
          offset,
          timestamp: 1.25,
          status: "done",
          attempts: 1,
          reason: null,
          data: offset === 0 ? null : state("д🧭"),
        },
      ],
      state: [["k", state(`value ${offset}`)]],
    });
    expect(await system.commit(change(0, 0))).toBe(true);
    expect(await system.commit(change(1, 1))).toBe(true);
    await system.beginSnapshot({ id: "s1", createdAt: AT, mode: "consistent" });
    await system.addSnapshotPart("s1", { component: "c", checksum: "0".repeat(64), data: new Uint8Array([1, 0, 2]) });
    const read = async () => [
      await system.load("c", [
        { port: "p", id: "m0" },
        { port: "p", id: "m1" },
      ]),
      await system.state("c", ["k"]),
      await system.snapshots(),
    ];
    const before = plain(await read());

    const up = await migrations.migrate({ to: database.url, which });
    expect(plain(await read())).toEqual(before);
    expect(await system.commit(change(2, 2))).toBe(true);
    expect(await storage.systems()).toEqual(["shop"]);

    const down = await migrations.migrate({ to: "sqlite", which });
    expect(down.databases[0]!.rows).toBe(up.databases[0]!.rows + 1);
    expect(await system.commit(change(2, 3))).toBe(false); // it is at version 3 here too
    expect(Buffer.from((await system.state("c", ["k"]))[0]!).toString()).toBe("value 2");
    await storage.close();
  });
});

describe("LangGraph's threads", () => {
  it("are migrated while a saver has them open, and stay the same", async () => {
    const { dataDir, migrations } = place();
    const path = join(dataDir, "threads.db");
    const which = { kind: "threads", path } as const;
    const store = sqliteThreads({ path, now: systemClock });
    const key = { threadId: "нить", namespace: "", checkpointId: "1" };
    const typed = (text: string) => ({ type: "json", data: state(text) });
    await store.put({
      ...key,
      parentId: null,
      checkpoint: typed('{"v":4,"id":"1","channel_values":{"messages":["м"],"канал":2},"channel_versions":{},"versions_seen":{}}'),
      metadata: typed('{"a":1}'),
      changed: ["messages", "канал"],
      unchanged: [],
      deltas: ["d"],
    });
    await store.put({
      ...key,
      checkpointId: "2",
      parentId: "1",
      checkpoint: typed('{"v":4,"id":"2","channel_values":{"z":3},"channel_versions":{},"versions_seen":{}}'),
      metadata: typed('{"a":2}'),
      changed: ["z"],
      unchanged: ["messages", "канал"],
      deltas: [],
    });
    await store.putWrites(key, [{ taskId: "t", index: -1, channel: "c", value: { type: "bytes", data: new Uint8Array(0) } }]);
    const saver = new CairnSaver({ storage: "sqlite", path });
    const config = { configurable: { thread_id: "нить", checkpoint_ns: "", checkpoint_id: "2" } };
    const outlines = await store.outlines("нить");
    const found = await store.get("нить", "", "2");
    await store.close();
    await saver.getTuple({ configurable: { thread_id: "none" } });

    const up = await migrations.migrate({ to: database.url, which });
    expect(up.databases[0]!.rows).toBe(3);
    const there = postgresThreads({ url: database.url });
    expect(await there.outlines("нить")).toEqual(outlines);
    expect(plain(await there.get("нить", "", "2"))).toEqual(plain(found));
    await there.close();
    expect((await saver.getTuple(config))?.checkpoint.channel_values).toEqual({ messages: ["м"], канал: 2, z: 3 });

    const down = await migrations.migrate({ to: "sqlite", which });
    expect(down.databases[0]!.tables).toEqual(up.databases[0]!.tables);
    const back = sqliteThreads({ path, now: systemClock });
    expect(await back.outlines("нить")).toEqual(outlines);
    expect(plain(await back.get("нить", "", "2"))).toEqual(plain(found));
    await back.close();
  });
});

import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { openPostgres } from "../../src/stores/postgres/driver/driver.ts";
import { postgresKeyStore } from "../../src/stores/postgres/keys/store.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { keyStoreContract } from "./key-contract.ts";

keyStoreContract("on PostgreSQL", async () => {
  const place = await testDatabase();
  const database = openPostgres({ url: place.url, poolMax: 2 });
  const close = async () => {
    await database.close();
    await place.drop();
  };
  return { store: postgresKeyStore(database), close };
});

describe("API keys of several servers on one PostgreSQL database", () => {
  let place: TestDatabase;
  let dataDir: string;
  let nodes: readonly Cairn[];
  let now = "2026-03-01T00:00:00.000Z";
  beforeAll(async () => {
    place = await testDatabase();
    dataDir = await mkdtemp(join(tmpdir(), "cairn-keys-"));
    const node = () => open({ storage: place.url, dataDir, now: () => now, embedder: { kind: "none" } });
    nodes = [await node(), await node()];
  });
  afterAll(async () => {
    for (const node of nodes) await node.close();
    await place.drop();
    await rm(dataDir, { recursive: true, force: true });
  });
  const create = (node: Cairn) => node.keys.create({ label: "team", access: "read", projects: "all" });

  it("are valid on every server and are refused by every server after revocation", async () => {
    const { key, id } = await create(nodes[0]!);
    expect(await nodes[1]!.keys.verify(key)).toMatchObject({ id });
    await nodes[0]!.keys.revoke(id);
    expect(await nodes[0]!.keys.verify(key)).toBeUndefined();
    await expect.poll(() => nodes[1]!.keys.verify(key), { timeout: 10_000 }).toBeUndefined();
    expect(await readdir(dataDir)).not.toContain("keys.json");
  });

  it("are read again for a new one, although the keys were cached a moment ago", async () => {
    await nodes[1]!.keys.list();
    const { key, id } = await create(nodes[0]!);
    expect(await nodes[1]!.keys.verify(key)).toMatchObject({ id });
  });

  it("show on one server that another one was used", async () => {
    const { key, id } = await create(nodes[0]!);
    expect(await nodes[1]!.keys.verify(key)).toBeDefined();
    await expect.poll(async () => (await nodes[0]!.keys.list()).find((one) => one.id === id)?.lastUsedAt).toBe(now);
  });

  it("are counted by all servers together for rate limits", async () => {
    const [one, two] = nodes.map((node) => node.keys.exchangeUsage!);
    const exchange = async (node: typeof one, calls: Record<string, number>) =>
      Object.fromEntries(await node!(new Map(Object.entries(calls))));
    expect(await exchange(one, { a: 5 })).toEqual({});
    expect(await exchange(two, { a: 3, b: 1 })).toEqual({}); // the first exchange of a key shows no earlier calls
    expect(await exchange(one, { a: 1 })).toEqual({ a: 3 });
    expect(await exchange(two, { a: 0, b: 4 })).toEqual({ a: 1 });
    expect(await exchange(one, { a: 0 })).toEqual({});
  });

  it("overlap when one is rotated, on every server", async () => {
    const { key, id } = await create(nodes[0]!);
    const next = await nodes[1]!.keys.rotate({ id, overlapHours: 2 });
    expect(next.replaced).toMatchObject({ id, expiresAt: "2026-03-01T02:00:00.000Z" });
    expect(await nodes[0]!.keys.verify(next.key)).toMatchObject({ access: "read", label: "team" });
    expect(await nodes[0]!.keys.verify(key)).toMatchObject({ id });
    now = "2026-03-01T02:00:00.000Z";
    expect(await nodes[0]!.keys.verify(key)).toBeUndefined();
    expect(await nodes[1]!.keys.verify(next.key)).toBeDefined();
  });

  it("come from the data folder when they are migrated, once", async () => {
    const local = await open({ dataDir, embedder: { kind: "none" } });
    const keys = [await create(local), await create(local)];
    await expect(local.keys.migrate()).rejects.toMatchObject({ code: "conflict" });
    await local.close();
    expect(await nodes[0]!.keys.migrate()).toEqual({ migrated: 2, present: 0 });
    for (const { key, id } of keys) expect(await nodes[1]!.keys.verify(key)).toMatchObject({ id });
    expect(await readdir(dataDir)).toContain("keys.json.migrated");
    expect(await nodes[0]!.keys.migrate()).toEqual({ migrated: 0, present: 0 });
  });
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { type QdrantStorageOptions, qdrantStorage } from "../../src/vectors/qdrant/storage.ts";
import { checkpointOf, unitVector } from "../migrate/full-project.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { API_KEY, openQdrantPlace, type QdrantPlace } from "../support/qdrant-place.ts";

const project = `/srv/passes-${process.pid}`;
const WAIT = { timeout: 120_000, interval: 20 };
/** Passes run only when the storage is closed. */
const AT_CLOSE = { firstDelayMs: 600_000, longestDelayMs: 600_000, closeMs: 120_000 };

describe.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])("passes to Qdrant beside %s", (kind) => {
  let place: QdrantPlace;
  let database: TestDatabase | undefined;
  let dataDir: string;
  const opened: Storage[] = [];
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-passes-"));
    place = await openQdrantPlace("the stand-in");
    if (kind === "postgres") database = await testDatabase();
  });
  afterEach(async () => {
    for (const storage of opened.splice(0)) await storage.close();
    await place.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const keep = (storage: Storage) => {
    opened.push(storage);
    return storage;
  };
  const openDatabases = () =>
    database ? postgresStorage({ url: database.url, now: systemClock }) : sqliteStorage({ dataDir, now: systemClock });
  const openWith = (options: Partial<QdrantStorageOptions>) =>
    keep(qdrantStorage(openDatabases(), { url: place.url, apiKey: API_KEY, ...options }));
  async function close(storage: Storage): Promise<void> {
    opened.splice(opened.indexOf(storage), 1);
    await storage.close();
  }
  /** Saves a record with a vector and returns the query that finds it. */
  async function saveOne(storage: Storage) {
    const { checkpoints } = await storage.create(project);
    const { versionId } = await checkpoints.embeddings.addVersion({ model: "test-passes", version: "1", dimension: 8 });
    await checkpoints.put(checkpointOf(project, 1), [{ versionId, vector: unitVector(1) }]);
    return { filter: {}, limit: 5, semantic: { versionId, vector: unitVector(1) } };
  }
  const pointCount = async () => [...(await place.tenants(project)).values()].flat().length;

  it("refill a lost collection of a project that is only searched", async () => {
    const standIn = place.standIn!;
    const writer = openWith(AT_CLOSE);
    const query = await saveOne(writer);
    await close(writer);
    expect(await pointCount()).toBe(1);
    standIn.calls.splice(0);
    const reader = openWith({ firstDelayMs: 1, pauseMs: 0, compareEveryMs: 0 });
    const { checkpoints } = (await reader.find(project))!;
    const search = async () => (await checkpoints.candidates(query)).degraded;
    expect(await search()).toBeUndefined();
    // The end of the first pass: it found as many points as vectors.
    await vi.waitFor(() => expect(standIn.calls.some((call) => call.endsWith("/points/count"))).toBe(true), WAIT);
    const [collection] = await place.client.collections();
    await place.client.deleteCollection(collection!);
    expect(await search()).toContain("the database searched its own vectors");
    await vi.waitFor(async () => expect(await pointCount()).toBe(1), WAIT);
    await vi.waitFor(async () => expect(await search()).toBeUndefined(), WAIT);
  });

  it("do not create a project again that another process deleted", async () => {
    const storage = openWith(AT_CLOSE);
    await saveOne(storage);
    const other = keep(openDatabases());
    await other.remove(project);
    await close(storage);
    expect(await other.projects()).toEqual([]);
  });

  it("create nothing in a project without vectors", async () => {
    const storage = openWith(AT_CLOSE);
    const { checkpoints, knowledge } = await storage.create(project);
    await checkpoints.candidates({ filter: {}, limit: 5, text: "anything" });
    await knowledge.candidates({ filter: {}, limit: 5, text: "anything" });
    const enabled = vi.spyOn(checkpoints.embeddings.outbox!, "enable");
    await close(storage);
    expect(enabled).not.toHaveBeenCalled();
    if (!database) return;
    const [found] = await query(database, `SELECT to_regclass('${projectDatabaseName(project)}.vectors') AS vectors`);
    expect(found).toEqual({ vectors: null });
  });

  it.runIf(kind === "postgres")("write nothing to the database when all points are copied, nor does a search", async () => {
    const writer = openWith(AT_CLOSE);
    const wanted = await saveOne(writer);
    await close(writer);
    const name = new URL(database!.url).pathname.slice(1);
    await query(database!, `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    const reader = openWith(AT_CLOSE);
    const { checkpoints } = (await reader.find(project))!;
    const { semantic, degraded } = await checkpoints.candidates(wanted);
    expect(semantic).toHaveLength(1);
    expect(degraded).toBeUndefined();
    place.standIn!.calls.splice(0);
    await close(reader);
    expect(place.standIn!.calls.filter((call) => call.endsWith("/points/count"))).toHaveLength(1);
  });
});

async function query({ url }: TestDatabase, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

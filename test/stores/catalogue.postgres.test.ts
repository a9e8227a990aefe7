import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { PROJECT_SHAPE } from "../../src/migrate/shapes.ts";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { waitLimitMs, withTimeLimit } from "../../src/scheduling/calls.ts";
import { selectFromSchemas } from "../../src/stores/postgres/catalogue/schemas.ts";
import { translatePostgresError } from "../../src/stores/postgres/driver/errors.ts";
import { postgresMigrationSource } from "../../src/stores/postgres/migration/source.ts";
import { projectSchema } from "../../src/stores/postgres/projects/project-schema.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";
import { sampleKnowledge } from "../../src/testing/knowledge-contract.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";

let database: TestDatabase;
let client: pg.Client;
const opened: Storage[] = [];

function openStorage(): Storage {
  const storage = postgresStorage({ url: database.url, now: systemClock });
  opened.push(storage);
  return storage;
}

beforeAll(async () => {
  database = await testDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  for (const storage of opened) await storage.close();
  await database.drop();
});

async function tablesOf(project: string): Promise<string[]> {
  const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1", [projectDatabaseName(project)]);
  return rows.map(({ tablename }) => tablename);
}

const entryOf = async (storage: Storage, project: string) =>
  (await storage.catalogue()).projects.find(({ projectPath }) => projectPath === project);

/** Lets the announcements of all writes end, as time does. */
const settle = () => client.query("UPDATE cairn_catalogue.projects SET changes_until = now() - interval '1 second'");

const sourceOf = (project: string) =>
  postgresMigrationSource({
    url: database.url,
    schema: projectDatabaseName(project),
    definition: projectSchema,
    shape: PROJECT_SHAPE,
    migratedTo: "a test",
  });

/** Migrates the project away, as another process does. */
async function migrateAway(project: string): Promise<void> {
  const source = sourceOf(project);
  await source.fence("20260101-test");
  await source.archive("20260101-test");
  await source.close();
}

describe("the tables of a project on PostgreSQL", () => {
  it("take at most 300,000 bytes of the database before the first record", async () => {
    const storage = openStorage();
    await storage.create("/size/first"); // creates what all projects share
    const size = async () => Number((await client.query("SELECT pg_database_size(current_database()) AS bytes")).rows[0].bytes);
    const before = await size();
    const projects = Array.from({ length: 20 }, (_, index) => `/size/${index}`);
    for (const project of projects) await storage.create(project);
    expect((await size()) - before).toBeLessThanOrEqual(projects.length * 300_000);
  });

  it("are created by the first write of their part, and never by a read", async () => {
    const storage = openStorage();
    const project = "/parts/one";
    const { checkpoints, knowledge, code, events } = await storage.create(project);
    const base = ["checkpoints", "events", "idempotency_keys", "project_info", "schema_migrations"];
    await checkpoints.put(sampleCheckpoint(project, { id: "a" }));
    await checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" });
    await checkpoints.listDeleted({ limit: 5 });
    await checkpoints.embeddings.versions();
    await knowledge.list({ limit: 1 });
    await knowledge.candidates({ filter: {}, limit: 5, text: "anything" });
    expect(await knowledge.feedback("absent", { success: true } as never)).toBeUndefined();
    expect(await knowledge.purge(["absent"])).toBe(0);
    await code.counts();
    await code.reconcile();
    await code.compact(10);
    await events.codeMark();
    await storage.checkRecords(project);
    await storage.repairRecords(project);
    expect(await tablesOf(project)).toEqual(base);
    await knowledge.put(sampleKnowledge({ id: "k" }));
    expect(await tablesOf(project)).toEqual(expect.arrayContaining([...base, "knowledge", "embedding_records", "vectors"]));
    expect(await tablesOf(project)).not.toContain("code_chunks");
    await checkpoints.delete(["a"], systemClock());
    expect(await tablesOf(project)).toContain("deleted_records");
  });

  it("are created once when several processes write the first record at the same time", async () => {
    const project = "/parts/race";
    const storages = Array.from({ length: 5 }, openStorage);
    await storages[0]!.create(project);
    const stores = await Promise.all(storages.map((storage) => storage.create(project)));
    const added = await Promise.all(stores.map(({ knowledge }, index) => knowledge.put(sampleKnowledge({ id: `k${index}` }))));
    expect(added).toEqual([true, true, true, true, true]);
    expect((await stores[0]!.knowledge.list({ limit: 10 })).total).toBe(5);
  });

  it("are not created while the project is being migrated", async () => {
    const storage = openStorage();
    const project = "/parts/fenced";
    const { checkpoints, knowledge } = await storage.create(project);
    await checkpoints.put(sampleCheckpoint(project, { id: "a" }));
    const source = sourceOf(project);
    await source.fence("20260101-test");
    await expect(knowledge.put(sampleKnowledge({ id: "k" }))).rejects.toMatchObject({ details: { migrating: true } });
    expect(await tablesOf(project)).not.toContain("knowledge");
    await source.unfence("20260101-test");
    await source.close();
    expect(await knowledge.put(sampleKnowledge({ id: "k" }))).toBe(true);
  });

  it.each(["before", "after"])("are neither empty nor created again when the project was migrated away %s their first use", async (use) => {
    const project = `/parts/away/${use}`;
    const stores = await Promise.all([openStorage(), openStorage()].map((storage) => storage.create(project)));
    await stores[0]!.checkpoints.put(sampleCheckpoint(project, { id: "a" }));
    if (use === "after") {
      await stores[0]!.knowledge.put(sampleKnowledge({ id: "k" }));
      for (const { knowledge } of stores) expect((await knowledge.list({ limit: 1 })).total).toBe(1);
    }
    await migrateAway(project);
    const left = await tablesOf(project);
    await expect(stores[0]!.knowledge.list({ limit: 1 })).rejects.toMatchObject({ details: { code: "42P01" } });
    await expect(stores[1]!.knowledge.put(sampleKnowledge({ id: "l" }))).rejects.toMatchObject({ details: { migrating: true } });
    expect(await tablesOf(project)).toEqual(left);
  });

  it("are not read as empty after a quarantine", async () => {
    const [one, other] = [openStorage(), openStorage()];
    const project = "/parts/quarantined";
    const { knowledge } = await one.create(project);
    await other.quarantine(project, ["a test"]);
    await expect(knowledge.list({ limit: 1 })).rejects.toMatchObject({ details: { code: "42P01" } });
  });

  it("are found again after another process erased the project and created it without them", async () => {
    const [one, other] = [openStorage(), openStorage()];
    const project = "/parts/again";
    const { knowledge } = await one.create(project);
    await knowledge.put(sampleKnowledge({ id: "k" }));
    await other.remove(project);
    await (await other.create(project)).checkpoints.put(sampleCheckpoint(project, { id: "a" }));
    expect((await knowledge.list({ limit: 1 })).total).toBe(0);
    expect(await knowledge.put(sampleKnowledge({ id: "k" }))).toBe(true);
  });
});

describe("the catalogue of projects", () => {
  it("is current for every process, before and after announcements end", async () => {
    const [one, other] = [openStorage(), openStorage()];
    const project = "/catalogue/current";
    const [first, second] = [await one.create(project), await other.create(project)];
    for (let index = 0; index < 3; index++) {
      await first.checkpoints.put(sampleCheckpoint(project, { id: `first ${index}` }));
      await second.checkpoints.put(sampleCheckpoint(project, { id: `second ${index}` }));
      expect((await entryOf(one, project))?.checkpoints).toBe(2 * index + 2);
      expect((await entryOf(other, project))?.checkpoints).toBe(2 * index + 2);
    }
    await settle();
    expect((await entryOf(one, project))?.checkpoints).toBe(6);
    const { rows } = await client.query("SELECT checkpoints FROM cairn_catalogue.projects WHERE project_path = $1", [project]);
    expect(rows[0].checkpoints).toBe("6");
    // A process that has announced nothing yet.
    await (await openStorage().create(project)).checkpoints.put(sampleCheckpoint(project, { id: "later" }));
    expect((await entryOf(one, project))?.checkpoints).toBe(7);
  });

  it("is written once for many saves", async () => {
    const storage = openStorage();
    const project = "/catalogue/quiet";
    const { checkpoints } = await storage.create(project);
    const version = async () => {
      const { rows } = await client.query("SELECT xmin::text AS xmin FROM cairn_catalogue.projects WHERE project_path = $1", [project]);
      return rows[0].xmin;
    };
    const before = await version();
    for (let index = 0; index < 10; index++) await checkpoints.put(sampleCheckpoint(project, { id: String(index) }));
    expect(await version()).toBe(before);
  });

  it("reports and repairs counts that do not match, and registers projects that it lacks", async () => {
    const storage = openStorage();
    const project = "/catalogue/altered";
    await (await storage.create(project)).checkpoints.put(sampleCheckpoint(project, { id: "a" }));
    await settle();
    await entryOf(storage, project);
    expect(await storage.checkRecords(project)).toMatchObject({ stale: [] });
    await client.query("UPDATE cairn_catalogue.projects SET checkpoints = 40 WHERE project_path = $1", [project]);
    expect((await storage.checkProject(project)).stale).toEqual(["the catalogue has other counts of checkpoints"]);
    expect(await storage.repairRecords(project)).toMatchObject({ rebuilt: ["catalogue of projects"] });
    expect(await storage.checkRecords(project)).toMatchObject({ stale: [] });
    expect((await entryOf(storage, project))?.checkpoints).toBe(1);

    await client.query("DELETE FROM cairn_catalogue.projects WHERE project_path = $1", [project]);
    expect(await storage.projects()).toContain(project);
    await client.query("DROP SCHEMA cairn_catalogue CASCADE");
    expect((await entryOf(storage, project))?.checkpoints).toBe(1);
  });

  it("is current after the machine slept, which stops one of its clocks", async () => {
    const storage = openStorage();
    const project = "/catalogue/slept";
    const { checkpoints } = await storage.create(project);
    await settle();
    expect((await entryOf(storage, project))?.checkpoints).toBe(0);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    try {
      await checkpoints.put(sampleCheckpoint(project, { id: "a" }));
    } finally {
      vi.useRealTimers();
    }
    expect((await entryOf(storage, project))?.checkpoints).toBe(1);
  });

  it("does not list a project that was migrated away, although a process tries to write to it", async () => {
    const project = "/catalogue/away";
    await openStorage().create(project);
    const storage = openStorage();
    const { checkpoints } = (await storage.find(project))!;
    await migrateAway(project);
    await expect(checkpoints.put(sampleCheckpoint(project, { id: "a" }))).rejects.toMatchObject({ details: { migrating: true } });
    expect(await storage.projects()).not.toContain(project);
    expect(await entryOf(storage, project)).toBeUndefined();
  });

  it("lists the other projects when one of them cannot be counted", async () => {
    const storage = openStorage();
    for (const project of ["/unread/a", "/unread/b"])
      await (await storage.create(project)).checkpoints.put(sampleCheckpoint(project, { id: "a" }));
    const table = `${projectDatabaseName("/unread/b")}.checkpoints`;
    await client.query(`ALTER TABLE ${table} RENAME COLUMN updated_at TO renamed`);
    const { projects, unread } = await storage.catalogue({ isWanted: (path) => path.startsWith("/unread/") });
    expect(projects.map(({ projectPath }) => projectPath)).toEqual(["/unread/a"]);
    expect(unread).toEqual([{ projectPath: "/unread/b", reason: expect.any(String) }]);
    expect(await storage.catalogue({ isWanted: (path) => path === "/unread/b" })).toEqual({ projects: [], unread });
    await expect(storage.checkRecords("/unread/b")).rejects.toThrow("updated_at");
    await client.query(`ALTER TABLE ${table} RENAME COLUMN renamed TO updated_at`);
  });

  it("does not use up the time of a call on a project that is locked", { timeout: 60_000 }, async () => {
    const storage = openStorage();
    for (const project of ["/locked/a", "/locked/b"])
      await (await storage.create(project)).checkpoints.put(sampleCheckpoint(project, { id: "a" }));
    await client.query(`BEGIN; LOCK TABLE ${projectDatabaseName("/locked/b")}.checkpoints IN ACCESS EXCLUSIVE MODE`);
    const { projects, unread, leftMs } = await withTimeLimit(20_000, async () => {
      const found = await storage.catalogue({ isWanted: (path) => path.startsWith("/locked/") });
      return { ...found, leftMs: waitLimitMs() };
    });
    await client.query("ROLLBACK");
    expect(projects).toMatchObject([{ projectPath: "/locked/a", checkpoints: 1 }]);
    expect(unread).toEqual([{ projectPath: "/locked/b", reason: expect.stringContaining("is locked by another change") }]);
    expect(leftMs).toBeGreaterThan(0); // for the other projects of the call
  });

  it("asks no schema on its own when the connection is lost", async () => {
    let asked = 0;
    const read = async () => {
      asked++;
      throw translatePostgresError(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }), "a test");
    };
    const query = { schemas: ["a", "b"], tables: [], select: () => undefined };
    await expect(selectFromSchemas({ read } as never, query)).rejects.toThrow("cannot be reached");
    expect(asked).toBe(1);
  });
});

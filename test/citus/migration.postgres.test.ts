import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PROJECT_SHAPE } from "../../src/migrate/shapes.ts";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import { open } from "../../src/open/open.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { openPostgres } from "../../src/stores/postgres/driver/driver.ts";
import { ensurePgvector } from "../../src/stores/postgres/driver/pgvector.ts";
import { ensureSchema } from "../../src/stores/postgres/driver/schema-version.ts";
import { postgresMigrationSource } from "../../src/stores/postgres/migration/source.ts";
import { projectSchema } from "../../src/stores/postgres/projects/project-schema.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";
import { sampleKnowledge } from "../../src/testing/knowledge-contract.ts";
import { fillProject, unitVector } from "../migrate/full-project.ts";
import { makeProject, places, projectFile, projectNamed } from "../migrate/place.ts";
import { type CitusDatabase, citusDatabase, citusUrl } from "../setup/citus.ts";

describe.skipIf(!citusUrl)("migration to Citus and back", () => {
  const place = places();
  let database: CitusDatabase;
  let storage: Storage;
  beforeAll(async () => {
    database = await citusDatabase();
    storage = postgresStorage({ url: database.url, now: systemClock });
  });
  afterAll(async () => {
    await storage?.close();
    await database?.drop();
  });
  const nodeOf = (project: string) => database.nodeOf(projectDatabaseName(project));

  it("places the project on a worker with all its rows, and brings it back the same", async () => {
    const where = place();
    const which = projectNamed("/there/and/back");
    await makeProject(where, which.id);
    const up = await where.migrations.migrate({ to: database.url, which });
    expect(up.databases[0]).toMatchObject({ outcome: "migrated" });
    expect(existsSync(projectFile(where, which.id))).toBe(false);
    expect(await nodeOf(which.id)).toBeDefined();

    const { checkpoints, knowledge } = (await storage.find(which.id))!;
    const semantic = { versionId: 1, vector: unitVector(5) };
    const found = await checkpoints.candidates({ filter: {}, limit: 5, text: "прогресс parseConfig", semantic });
    expect(found.keyword.length).toBeGreaterThan(0);
    expect(found.semantic[0]?.id).toBe("checkpoint-5");
    expect(await storage.checkRecords(which.id)).toMatchObject({ damaged: [], stale: [] });
    expect(await storage.sizeBytes(which.id)).toBeGreaterThan(100_000);

    // The counters continue, and the triggers are in place.
    await checkpoints.put(sampleCheckpoint(which.id, { id: "after" }));
    await knowledge.put(sampleKnowledge({ id: "after" }));
    expect(await checkpoints.get("after")).toMatchObject({ id: "after" });
    await checkpoints.purge(["after"]);
    await knowledge.purge(["after"]);

    const down = await where.migrations.migrate({ to: "sqlite", which });
    expect(down.databases[0]).toMatchObject({ outcome: "migrated", tables: up.databases[0]!.tables });
    expect(existsSync(projectFile(where, which.id))).toBe(true);
    expect(await nodeOf(which.id)).toBeUndefined();
  });

  it("fills an empty schema that is on a worker already, as of a process that died before its first write", async () => {
    const where = place();
    const which = projectNamed("/already/created");
    const created = openPostgres({ url: database.url, poolMax: 1 });
    const typesIn = await ensurePgvector(created);
    await ensureSchema(created, projectDatabaseName(which.id), projectSchema, { typesIn, isDistributed: true });
    await created.close();
    expect(await nodeOf(which.id)).toBeDefined();
    await makeProject(where, which.id);
    expect((await where.migrations.migrate({ to: database.url, which })).databases[0]).toMatchObject({ outcome: "migrated" });
    expect(await nodeOf(which.id)).toBeDefined();
    expect((await (await storage.find(which.id))!.checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" })).total).toBe(6);
  });

  it("rolls back all projects except one that was deleted on Citus", async () => {
    const where = place();
    const names = ["/undone/a", "/undone/b"];
    for (const name of names) await makeProject(where, name, 2);
    await where.migrations.migrate({ to: database.url, which: "all" });
    const cairn = await open({ dataDir: where.dataDir, embedder: [] });
    await cairn.databases.delete({ projectPath: "/undone/b", confirm: "/undone/b" });
    await cairn.close();
    const { databases } = await where.migrations.migrate({ rollback: true, which: "all" });
    expect(databases.map(({ outcome }) => outcome).sort()).toEqual(["rolled_back", "unchanged"]);
    expect(names.filter((name) => existsSync(projectFile(where, name)))).toEqual(["/undone/a"]);
  });

  it("refuses writes to a fenced project, and reports whether its migration runs", async () => {
    const project = "/fenced/on/a/worker";
    await fillProject(storage, project, { records: 2 });
    const { checkpoints } = (await storage.find(project))!;
    const openSource = () =>
      postgresMigrationSource({
        url: database.url,
        schema: projectDatabaseName(project),
        definition: projectSchema,
        shape: PROJECT_SHAPE,
        migratedTo: "a test",
      });
    const put = (id: string) => checkpoints.put(sampleCheckpoint(project, { id }));
    const total = async () => (await checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" })).total;
    const before = await total();

    let source = openSource();
    await source.fence("20260101-test");
    const counters = await source.counters();
    await expect(put("refused")).rejects.toMatchObject({ details: { migrating: true } });
    expect(await source.counters()).toEqual(counters); // though the coordinator drew a number for the refused record
    await source.close(); // as when its process ends
    await expect(put("refused")).rejects.toThrow(/unfinished, and no process runs it/);
    expect(await total()).toBe(before);

    source = openSource();
    await source.lock();
    await expect(put("refused")).rejects.toMatchObject({ details: { migrating: true } });
    await source.unfence("20260101-test");
    await source.close();
    await put("accepted");
    expect(await total()).toBe(before + 1);
  });
});

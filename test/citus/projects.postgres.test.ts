import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { openPostgres } from "../../src/stores/postgres/driver/driver.ts";
import { postgresHealth } from "../../src/stores/postgres/driver/health.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";
import { type CitusDatabase, citusDatabase, citusUrl } from "../setup/citus.ts";
import { testEmbedder } from "../support/embedders.ts";

const PROJECTS = ["/on/one", "/on/two", "/on/three", "/on/four"];
const all = { mayTouch: () => true };

describe.skipIf(!citusUrl)("projects on Citus", () => {
  let database: CitusDatabase;
  let nodes: [Cairn, Cairn];
  beforeAll(async () => {
    database = await citusDatabase();
    const start = () => open({ storage: database.url, embedder: [testEmbedder()] });
    nodes = [await start(), await start()];
    for (const [index, projectPath] of PROJECTS.entries())
      for (const summary of [`The certificate of number ${index} expired.`, "The queue is full."])
        await nodes[index % 2]!.checkpoints.save({ projectPath, summary });
  });
  afterAll(async () => {
    for (const node of nodes ?? []) await node.close();
    await database?.drop();
  });

  it("are spread over the workers, and everything that projects share stays on the coordinator", async () => {
    const [one] = nodes;
    await one.keys.create({ label: "test", access: "read", projects: "all" });
    await one.knowledge.save({ kind: "faq", question: "Where is shared knowledge?", answer: "On a worker.", projectPath: "/on/one" });
    await one.indexing.depth();
    await one.runs.list({});
    const places = new Map<string, string | undefined>();
    for (const { nspname } of await database.query("SELECT nspname FROM pg_namespace WHERE nspname ~ '^(project_|cairn_|runs|shared)'"))
      places.set(String(nspname), await database.nodeOf(String(nspname)));
    const projects = PROJECTS.map((project) => places.get(projectDatabaseName(project)));
    expect(new Set(projects).size).toBe((await database.workers()).length);
    expect(projects).not.toContain(undefined);
    for (const schema of ["cairn_catalogue", "cairn_queue", "cairn_keys", "runs"]) expect(places.has(schema)).toBe(true);
    for (const [schema, node] of places) if (!schema.startsWith("project_")) expect([schema, node]).toEqual([schema, undefined]);
  });

  it("are searched one by one and all together, in keyword, semantic and hybrid mode", async () => {
    const [, two] = nodes;
    for (const mode of ["keyword", "semantic", "hybrid"] as const) {
      const found = await two.checkpoints.searchAll({ query: "certificate expired", mode, ...all });
      expect(found).toMatchObject({ projects: PROJECTS.length, partial: false });
      const best = found.hits.slice(0, PROJECTS.length).map(({ record }) => record.projectPath);
      expect(best.sort(), mode).toEqual([...PROJECTS].sort());
      const { hits } = await two.checkpoints.search({ projectPath: "/on/two", query: "certificate expired", mode });
      expect(hits[0]!.record.summary).toBe("The certificate of number 1 expired.");
    }
    const { projects } = await two.stats.projects(all);
    expect(projects.map(({ projectPath, checkpoints }) => [projectPath, checkpoints]).sort()).toEqual(
      PROJECTS.map((project) => [project, 2]).sort(),
    );
  });

  it("are indexed through the queue by any server, and searched", async () => {
    const [one, two] = nodes;
    const projectPath = "/on/three";
    const files = Array.from({ length: 12 }, (_, index) => ({ path: `f${index}.ts`, content: `export function work${index}() {}\n` }));
    for (const node of nodes) await node.indexing.start();
    const jobs = await Promise.all(files.map((file, index) => nodes[index % 2]!.indexing.send({ projectPath, files: [file] })));
    for (const { id } of jobs) await expect.poll(async () => (await two.indexing.job(id, { waitMs: 1_000 })).status).toBe("completed");
    expect(await one.code.stats({ projectPath })).toMatchObject({ files: 12 });
    expect((await two.code.search({ projectPath, query: "work7" })).hits[0]!.path).toBe("f7.ts");
  });

  it("log events in an order that stays, with positions of more than 15 digits", async () => {
    const storage = postgresStorage({ url: database.url, now: () => new Date().toISOString() });
    const project = "/on/four";
    const { checkpoints, events } = (await storage.find(project))!;
    const start = await events.head();
    const older = new pg.Client({ connectionString: database.url });
    await older.connect();
    const edit = `UPDATE ${projectDatabaseName(project)}.checkpoints SET revision = revision + 1 WHERE summary = 'The queue is full.'`;
    await older.query("BEGIN");
    await older.query(edit);
    await checkpoints.put(sampleCheckpoint(project, { id: "newer" }));
    expect(await events.readAfter(start, 10)).toEqual({ events: [], isExpired: false, isPending: true });
    await older.query("COMMIT");
    await older.end();
    const read = async () => (await events.readAfter(start, 10)).events;
    await expect.poll(async () => (await read()).map(({ action }) => action)).toEqual(["edited", "saved"]);
    const [edited, saved] = await read();
    for (const { position } of [edited!, saved!]) expect(BigInt(position.split(".")[1]!)).toBeGreaterThan(2n ** 48n);
    expect((await events.readAfter(edited!.position, 10)).events).toEqual([saved]);
    await storage.close();
  });

  it("report the bytes that they take on their worker", async () => {
    const shared = openPostgres({ url: database.url });
    const storage = postgresStorage({ database: shared, now: () => new Date().toISOString() });
    const health = postgresHealth(shared);
    const bytes = (await storage.sizeBytes("/on/one"))!;
    expect(bytes).toBeGreaterThan(100_000);
    const probed = (await health.databases(1)).find(({ id }) => id === projectDatabaseName("/on/one"))!;
    expect(Math.abs(probed.bytes - bytes)).toBeLessThan(100_000);
    expect(await health.engine()).toMatch(/^PostgreSQL .*, Citus \d+/);
    expect(await health.check(probed)).toEqual([]);
    await shared.close();
  });

  it("continue on another worker after they were moved there, and end the event log at that point", async () => {
    const storage = postgresStorage({ url: database.url, now: () => new Date().toISOString() });
    const project = "/on/two";
    const schema = projectDatabaseName(project);
    const { checkpoints, events } = (await storage.find(project))!;
    const before = await database.nodeOf(schema);
    const other = (await database.workers()).map((url) => new URL(url)).find(({ host }) => host !== before)!;
    await database.query(`SELECT citus_schema_move('${schema}', '${other.hostname}', ${other.port}, 'block_writes')`);
    expect(await database.nodeOf(schema)).toBe(other.host);
    const position = await events.head();
    await checkpoints.put(sampleCheckpoint(project, { id: "moved" }));
    await expect.poll(async () => (await events.readAfter(position, 10)).events).toMatchObject([{ id: "moved" }]);
    expect((await nodes[0].checkpoints.search({ projectPath: project, query: "certificate expired" })).hits).not.toEqual([]);
    await nodes[1].knowledge.save({ kind: "faq", question: "How?", answer: "So.", projectPath: project });
    expect(await storage.checkRecords(project)).toMatchObject({ damaged: [], stale: [] });
    await storage.close();
  });

  it("are deleted with their schema, and can be created again", async () => {
    const [one, two] = nodes;
    const projectPath = "/on/one";
    await one.databases.delete({ projectPath, confirm: projectPath });
    expect(await database.query(`SELECT 1 FROM pg_namespace WHERE nspname = '${projectDatabaseName(projectPath)}'`)).toEqual([]);
    expect((await two.stats.projects(all)).total).toBe(PROJECTS.length - 1);
    await one.checkpoints.save({ projectPath, summary: "Again." });
    expect((await two.checkpoints.list({ projectPath })).total).toBe(1);
    expect(await database.nodeOf(projectDatabaseName(projectPath))).toBeDefined();
  });
});

import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { places, projectNamed } from "../migrate/place.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";
import { createManyProjects, manyProject } from "../support/many-projects.ts";

const PROJECTS = 120;

let database: TestDatabase;
let storage: Storage;
let cairn: Cairn;
/** Searches every project, whatever its bound. */
let thorough: Cairn;
let searched: string[] = [];
const place = places();
const embedder = () => [testEmbedder({ dimension: 96 })];

beforeAll(async () => {
  database = await testDatabase();
  storage = postgresStorage({ url: database.url, now: systemClock });
  const counting: Storage = {
    ...storage,
    async find(projectPath) {
      searched.push(projectPath);
      return storage.find(projectPath);
    },
  };
  cairn = await open({ storage: counting, embedder: embedder() });
  thorough = await open({ storage: withoutBounds(storage), embedder: embedder() });
  await createManyProjects(cairn, PROJECTS);
});
afterAll(async () => {
  await cairn.close();
  await thorough.close();
  await storage.close();
  await database.drop();
});

// biome-ignore lint/suspicious/noExplicitAny: answers are looked at field by field
const call = (of: Cairn, name: string, input: Record<string, unknown> = {}): Promise<any> =>
  invoke(of, operations.find((one) => one.name === name)!, input, { caller: LOCAL_CALLER });

/** Searches without the time limit of a call, which a slow machine may reach. */
const search = (of: Cairn, query: string, mode?: "hybrid" | "semantic" | "keyword") =>
  of.checkpoints.searchAll({ query, mode, mayTouch: () => true });
const idsOf = ({ hits }: { readonly hits: readonly { readonly record: { readonly id: string } }[] }) => hits.map(({ record }) => record.id);

describe(`a search of ${PROJECTS} projects`, () => {
  it.each(["hybrid", "semantic", "keyword"] as const)(
    "finds in mode %s what a search of each project finds, and searches few of them",
    async (mode) => {
      for (const query of ["certificate rotation", "deadlock in the queue of the proxy"]) {
        searched = [];
        const found = await search(cairn, query, mode);
        const visited = new Set(searched).size;
        const expected = await search(thorough, query, mode);
        expect(idsOf(found), query).toEqual(idsOf(expected));
        expect(found).toMatchObject({ projects: PROJECTS, partial: false, degraded: [], mergedBy: expected.mergedBy });
        expect(visited, query).toBeLessThan(PROJECTS / 2);
      }
    },
  );

  it("finds nothing in the projects that have no term of the query", async () => {
    searched = [];
    expect(await search(cairn, "nothing-like-it", "keyword")).toMatchObject({ hits: [], projects: PROJECTS, partial: false });
    expect(searched).toEqual([]);
  });

  it("applies filters before it decides which projects to search", async () => {
    await cairn.checkpoints.save({ projectPath: manyProject(7), summary: "certificate of the only tagged record", tags: ["rare"] });
    const found = await call(cairn, "checkpoint_search_all", { query: "certificate", tags: ["rare"] });
    expect(found.results).toHaveLength(1);
    expect(found.results[0].checkpoint.project_path).toBe(manyProject(7));
  });

  it("reports a project that cannot be read as missing in every list, and returns the others", async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const table = `${projectDatabaseName(manyProject(3))}.checkpoints`;
    await client.query(`ALTER TABLE ${table} RENAME COLUMN created_order TO hidden`);
    await client.query(`ALTER TABLE ${table} RENAME COLUMN updated_at TO hidden_too`);
    const found = await call(cairn, "checkpoint_search_all", { query: "certificate rotation" });
    expect(found).toMatchObject({ partial: true });
    expect(found.degraded.join()).toContain(manyProject(3));
    expect(found.results).toHaveLength(5);
    const listed = await call(cairn, "project_list", { limit: 5 });
    expect(listed).toMatchObject({ total: PROJECTS, partial: true });
    expect(listed.degraded.join()).toContain(manyProject(3));
    expect(await call(cairn, "checkpoint_list_all", { limit: 5 })).toMatchObject({ partial: true });
    expect(await call(cairn, "checkpoint_days_all")).toMatchObject({ partial: true });
    expect(await call(cairn, "stats", { limit: 5 })).toMatchObject({ total: PROJECTS, partial: true });
    await client.query(`ALTER TABLE ${table} RENAME COLUMN hidden TO created_order`);
    await client.query(`ALTER TABLE ${table} RENAME COLUMN hidden_too TO updated_at`);
    await client.end();
  });

  it("lists and counts all of them", async () => {
    const all = { mayTouch: () => true };
    const listed = await cairn.stats.projects({ ...all, limit: 100 });
    expect(listed).toMatchObject({ total: PROJECTS, partial: false });
    expect(listed.projects).toHaveLength(100);
    const times = listed.projects.map(({ lastActivityAt }) => lastActivityAt);
    expect(times).toEqual([...times].sort().reverse());
    const { days, partial } = await cairn.checkpoints.daysAll(all);
    expect(days.reduce((sum, { count }) => sum + count, 0)).toBe(PROJECTS + 1);
    expect(partial).toBe(false);
    expect(await cairn.doctor.examine({ quick: true })).toMatchObject({ partial: false });
  });

  it("merges by rank when projects have vectors of different models", async () => {
    const other = await open({ storage, embedder: [testEmbedder({ model: "other", dimension: 32 })] });
    await other.checkpoints.save({ projectPath: "/many/other", summary: "certificate rotation by another model" });
    const both = [testEmbedder({ dimension: 96 }), testEmbedder({ model: "other", dimension: 32 })];
    const [bounded, full] = [await open({ storage, embedder: both }), await open({ storage: withoutBounds(storage), embedder: both })];
    const found = await search(bounded, "certificate rotation");
    expect(found.mergedBy).toBe("rank");
    expect(idsOf(found)).toEqual(idsOf(await search(full, "certificate rotation")));
    for (const one of [other, bounded, full]) await one.close();
  });
});

describe("a search of all projects whose bounds cannot be found", () => {
  it("searches every project", async () => {
    const boundless: Storage = { ...storage, searchBounds: () => Promise.reject(new Error("no bounds")) };
    const failing = await open({ storage: boundless, embedder: embedder() });
    const found = await search(failing, "certificate rotation");
    expect(found.partial).toBe(false);
    expect(idsOf(found)).toEqual(idsOf(await search(thorough, "certificate rotation")));
    await failing.close();
  });

  it("reports a migrated project whose server is unavailable, and searches the others", async () => {
    const where = place();
    const server = await testDatabase();
    const first = await open({ ...where, embedder: [] });
    await createManyProjects(first, 10);
    await first.close();
    await where.migrations.migrate({ to: server.url, which: projectNamed(manyProject(3)) });
    await server.drop();
    const local = await open({ ...where, embedder: [] });
    const found = await search(local, "certificate rotation", "keyword");
    expect(found).toMatchObject({ partial: true, projects: 9 });
    expect(found.degraded.join()).toContain(manyProject(3));
    expect(found.hits.length).toBeGreaterThan(0);
    await local.close();
  });
});

function withoutBounds({ searchBounds: _, ...storage }: Storage): Storage {
  return storage;
}

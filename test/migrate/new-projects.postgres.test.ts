import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { open } from "../../src/open/open.ts";
import { stage } from "../cli/stage.ts";
import { startPooler } from "../setup/pgbouncer.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { makeProject, type Place, places, projectFile, projectNamed } from "./place.ts";

let database: TestDatabase;
const place = places();
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const openAt = ({ dataDir }: Place) => open({ dataDir, embedder: { kind: "none" } });
const all = { mayTouch: () => true };

describe("projects after a migration", () => {
  it("begin on PostgreSQL once all databases are there, also in a process that was running, and in SQLite again after the way back", async () => {
    const where = place();
    await makeProject(where, "/old", 2);
    const running = await openAt(where);
    await running.checkpoints.save({ projectPath: "/old", summary: "Before." });
    await where.migrations.migrate({ to: database.url, which: "all" });
    const settings = join(where.dataDir, "projects", "new-projects.json");
    expect(statSync(settings).mode & 0o777).toBe(0o600);

    for (const cairn of [running, await openAt(where)]) {
      await cairn.checkpoints.save({ projectPath: "/new/one", summary: "After the migration." });
      expect(existsSync(projectFile(where, "/new/one"))).toBe(false);
      expect((await cairn.stats.projects(all)).projects.map(({ projectPath }) => projectPath).sort()).toEqual(["/new/one", "/old"]);
      if (cairn !== running) await cairn.close();
    }
    expect((await running.checkpoints.list({ projectPath: "/new/one" })).total).toBe(2);
    expect((await running.checkpoints.list({ projectPath: "/never/saved" })).total).toBe(0);
    expect(existsSync(`${projectFile(where, "/never/saved")}.migration`)).toBe(false);
    await expect(where.migrations.migrate({ rollback: true, which: projectNamed("/new/one") })).rejects.toThrow(
      /created on PostgreSQL.*--to sqlite/,
    );

    const { databases } = await where.migrations.migrate({ to: "sqlite", which: "all" });
    expect(databases.map(({ outcome }) => outcome)).toEqual(databases.map(() => "migrated"));
    expect(existsSync(settings)).toBe(false);
    expect((await running.checkpoints.list({ projectPath: "/new/one" })).total).toBe(2);
    await running.checkpoints.save({ projectPath: "/new/two", summary: "In SQLite." });
    expect(existsSync(projectFile(where, "/new/two"))).toBe(true);
    await running.close();
  });

  it("stay in SQLite after the migration of one project", async () => {
    const where = place();
    await makeProject(where, "/single", 2);
    await where.migrations.migrate({ to: database.url, which: projectNamed("/single") });
    const cairn = await openAt(where);
    await cairn.checkpoints.save({ projectPath: "/single/new", summary: "Local." });
    expect(existsSync(projectFile(where, "/single/new"))).toBe(true);
    await cairn.close();
  });

  it("are not listed any more once they are deleted", async () => {
    const where = place();
    for (const project of ["/gone/a", "/gone/b"]) await makeProject(where, project, 2);
    await where.migrations.migrate({ to: database.url, which: "all" });
    const cairn = await openAt(where);
    expect((await cairn.stats.projects(all)).total).toBe(2);
    await cairn.databases.delete({ projectPath: "/gone/a", confirm: "/gone/a" });
    expect(await cairn.stats.projects(all)).toMatchObject({ total: 1, partial: false, projects: [{ projectPath: "/gone/b" }] });
    expect((await cairn.checkpoints.searchAll({ query: "anything", ...all })).projects).toBe(1);
    await cairn.checkpoints.save({ projectPath: "/gone/a", summary: "Again." });
    expect((await cairn.stats.projects(all)).total).toBe(2);
    expect(existsSync(projectFile(where, "/gone/a"))).toBe(false);
    await cairn.close();
  });
});

describe("migrate all", () => {
  const settingsOf = ({ dataDir }: Place) => join(dataDir, "projects", "new-projects.json");

  it("to SQLite drops the record of a project that was deleted on PostgreSQL, and migrates the others", async () => {
    const where = place();
    const names = ["/deleted/a", "/deleted/b", "/deleted/c"];
    for (const project of names) await makeProject(where, project, 2);
    await where.migrations.migrate({ to: database.url, which: "all" });
    const cairn = await openAt(where);
    await cairn.databases.delete({ projectPath: "/deleted/b", confirm: "/deleted/b" });
    await cairn.close();
    const recorded = () => names.filter((name) => existsSync(`${projectFile(where, name)}.migration`));
    const outcomes = async (dryRun: boolean) => {
      const { databases } = await where.migrations.migrate({ to: "sqlite", which: "all", dryRun });
      for (const { from, to, outcome } of databases) expect(from === to).toBe(outcome === "unchanged");
      return Object.fromEntries(databases.map(({ name, outcome }) => [name.split("/").at(-1), outcome]));
    };
    expect(await outcomes(true)).toEqual({ a: "planned", b: "unchanged", c: "planned" });
    expect(recorded()).toEqual(names);
    expect(await outcomes(false)).toEqual({ a: "migrated", b: "unchanged", c: "migrated" });
    expect(recorded()).toEqual([]);
    expect(names.filter((name) => existsSync(projectFile(where, name)))).toEqual(["/deleted/a", "/deleted/c"]);
  });

  it("with rollback drops the record of a project that was deleted on PostgreSQL, and rolls back the others", async () => {
    const where = place();
    const names = ["/undone/a", "/undone/b", "/undone/c"];
    for (const project of names) await makeProject(where, project, 2);
    await where.migrations.migrate({ to: database.url, which: "all" });
    const cairn = await openAt(where);
    await cairn.databases.delete({ projectPath: "/undone/b", confirm: "/undone/b" });
    await cairn.close();
    await expect(where.migrations.migrate({ rollback: true, which: projectNamed("/undone/b") })).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringMatching(/was deleted/),
    });
    const recorded = () => names.filter((name) => existsSync(`${projectFile(where, name)}.migration`));
    const outcomes = async (dryRun: boolean) => {
      const { databases } = await where.migrations.migrate({ rollback: true, which: "all", dryRun });
      for (const { from, to, outcome } of databases) expect(from === to).toBe(outcome === "unchanged");
      return Object.fromEntries(databases.map(({ name, outcome }) => [name.split("/").at(-1), outcome]));
    };
    expect(await outcomes(true)).toEqual({ a: "planned", b: "unchanged", c: "planned" });
    expect(recorded()).toEqual(names);
    expect(await outcomes(false)).toEqual({ a: "rolled_back", b: "unchanged", c: "rolled_back" });
    expect(recorded()).toEqual([]);
    expect(names.filter((name) => existsSync(projectFile(where, name)))).toEqual(["/undone/a", "/undone/c"]);
  });

  it("to SQLite keeps the record of a project that another folder took over, and reports it", async () => {
    const [where, elsewhere] = [place(), place()];
    for (const one of [where, elsewhere]) await one.migrations.migrate({ to: database.url, which: "all" });
    for (const one of [where, elsewhere]) {
      const cairn = await openAt(one);
      await cairn.checkpoints.save({ projectPath: "/taken", summary: "In both." });
      await cairn.close();
    }
    await elsewhere.migrations.migrate({ to: "sqlite", which: "all" });
    await expect(where.migrations.migrate({ to: "sqlite", which: "all" })).rejects.toMatchObject({ code: "not_found" });
    expect(existsSync(`${projectFile(where, "/taken")}.migration`)).toBe(true);
  });

  it("to PostgreSQL from an empty data folder makes new projects begin there", async () => {
    const where = place();
    expect(await where.migrations.migrate({ to: database.url, which: "all", dryRun: true })).toEqual({ databases: [] });
    expect(existsSync(settingsOf(where))).toBe(false);
    expect(await where.migrations.migrate({ to: database.url, which: "all" })).toEqual({ databases: [] });
    expect(statSync(join(where.dataDir, "projects")).mode & 0o777).toBe(0o700);
    const cairn = await openAt(where);
    await cairn.checkpoints.save({ projectPath: "/first", summary: "On PostgreSQL." });
    expect(existsSync(projectFile(where, "/first"))).toBe(false);
    await cairn.close();
  });

  it.each([
    ["mysql://localhost/cairn", "invalid_input"],
    ["postgres://127.0.0.1:1/cairn", "unavailable"],
  ])("refuses the target %s also if there is no database yet", async (to, code) => {
    const where = place();
    await expect(where.migrations.migrate({ to, which: "all" })).rejects.toMatchObject({ code });
    expect(existsSync(settingsOf(where))).toBe(false);
  });

  it("refuses a pooler also if there is no database yet", async () => {
    const where = place();
    const pooler = await startPooler(database.url);
    onTestFinished(() => pooler.stop());
    const to = pooler.through(database.url);
    await expect(where.migrations.migrate({ to, which: "all" })).rejects.toThrow(/needs a direct connection/);
    expect(existsSync(settingsOf(where))).toBe(false);
  });
});

describe("cairn migrate --project", () => {
  const { cairn, home, clear } = stage();
  afterAll(clear);

  it("migrates projects that have a name, or a folder on another machine only", async () => {
    const env = { CAIRN_DATA_DIR: join(home, "data"), CAIRN_EMBEDDER_KIND: "none" };
    for (const project of ["team-app", "/home/elsewhere/app"]) await makeProject({ dataDir: env.CAIRN_DATA_DIR }, project, 2);
    for (const name of ["team-app", "/home/elsewhere/app"]) {
      const done = await cairn(["migrate", "--to", database.url, "--project", name, "--json"], { env });
      expect(done.code, done.stderr).toBe(0);
      expect(JSON.parse(done.stdout).databases).toMatchObject([{ name: `The project ${name}`, outcome: "migrated" }]);
    }
    const absent = await cairn(["migrate", "--to", database.url, "--project", "nobody-has-this"], { env });
    expect(absent.code).not.toBe(0);
    expect(absent.stderr).toContain("there is nothing to migrate");
    const typed = await cairn(["checkpoint", "save", "A save needs a folder", "--project", "team-app"], { env });
    expect(typed.stderr).toContain("there is no folder");
  });
});

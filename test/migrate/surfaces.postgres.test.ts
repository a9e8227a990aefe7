import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { stage } from "../cli/stage.ts";
import { api, REMOTE } from "../http/api.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { makeProject, places } from "./place.ts";

let database: TestDatabase;
const place = places();
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

describe("cairn migrate", () => {
  const { cairn, project, home, clear } = stage();
  afterAll(clear);
  const env = { CAIRN_DATA_DIR: join(home, "data"), CAIRN_EMBEDDER_KIND: "none" };

  it("migrates a project, which every other command then uses, and rolls back", async () => {
    await cairn(["checkpoint", "save", "Before the migration"], { env });
    const plan = await cairn(["migrate", "--to", database.url, "--dry-run"], { env });
    expect(plan).toMatchObject({ code: 0 });
    expect(plan.stdout).toMatch(/can be migrated from .* Nothing was changed\./);

    // The URL through the pipe, so that its password is in no list of processes.
    const migrated = await cairn(["migrate", "--to", "-", "--json"], { env, stdin: `${database.url}\n` });
    expect(migrated.code, migrated.stderr).toBe(0);
    const [report] = JSON.parse(migrated.stdout).databases;
    expect(report).toMatchObject({ outcome: "migrated", name: `The project ${project}` });
    expect(migrated.stdout + migrated.stderr).not.toContain(new URL(database.url).password || "no password at all");
    expect((await cairn(["checkpoint", "list"], { env })).stdout).toContain("Before the migration");
    expect((await cairn(["stats"], { env })).stdout).toContain(project);

    expect((await cairn(["migrate", "--to", database.url], { env })).stdout).toContain("already");
    const back = await cairn(["migrate", "--rollback"], { env });
    expect(back.stdout).toContain("was rolled back");
    expect((await cairn(["checkpoint", "list"], { env })).stdout).toContain("Before the migration");
    expect(readdirSync(join(env.CAIRN_DATA_DIR, "projects", "archive"))).toHaveLength(1);
  });

  it("migrates everything with --all, and reports invalid input", async () => {
    const known = await cairn(["knowledge", "save", "Why?", "So.", "--scope", "shared"], { env });
    expect(known.code, known.stderr).toBe(0);
    const all = await cairn(["migrate", "--to", database.url, "--all", "--json"], { env });
    expect(all.code, all.stderr).toBe(0);
    const outcomes = JSON.parse(all.stdout).databases.map(({ name, outcome }: { name: string; outcome: string }) => [name, outcome]);
    expect(outcomes).toEqual(expect.arrayContaining([[`The project ${project}`, "migrated"]]));
    expect(existsSync(join(env.CAIRN_DATA_DIR, "projects", "shared.db"))).toBe(false);

    for (const [args, said] of [
      [["--to", "mysql://x"], /postgres:\/\/ URL/],
      [[], /postgres:\/\/ URL/],
      [["--rollback", "--to", "sqlite"], /cannot be combined with rollback/],
      [["--to", "postgres://127.0.0.1:1/none", "--scope", "shared"], /was already migrated to/],
    ] as const) {
      const { code, stderr } = await cairn(["migrate", ...args], { env });
      expect(code, args.join(" ")).not.toBe(0);
      expect(stderr).toMatch(said);
    }
    expect((await cairn(["migrate", "--to", "sqlite", "--all"], { env })).code).toBe(0);
    expect((await cairn(["checkpoint", "list"], { env })).stdout).toContain("Before the migration");
  });
});

describe("where one database is migrated and others are not", () => {
  it("backups, the doctor and lists say so, and the way back leaves the others alone", async () => {
    const where = place();
    await makeProject(where, "/migrated", 2);
    await makeProject(where, "/stays", 2);
    const cairn = await open({ dataDir: where.dataDir, stateDir: where.stateDir, backupDir: join(where.dataDir, "backups"), embedder: [] });
    await cairn.systems.storage.create("shop");
    for (const which of [{ kind: "project", id: "/migrated" } as const, { kind: "system", id: "shop" } as const])
      await cairn.migrations.migrate({ to: database.url, which });

    const backup = await cairn.backups.create("all");
    expect(backup.databases.map(({ id }) => id)).toEqual(["/stays"]);
    expect(backup.onPostgres).toEqual([
      { kind: "project", id: "/migrated" },
      { kind: "system", id: "shop" },
    ]);
    const { findings } = await cairn.doctor.examine({ quick: true });
    expect(findings.filter(({ subject }) => subject === "PostgreSQL")).toMatchObject([
      {
        severity: "note",
        message: expect.stringContaining("project /migrated, system shop"),
        command: expect.stringContaining("--storage"),
      },
    ]);
    const [shop] = (await cairn.systems.list()).systems;
    expect(shop).toMatchObject({ systemId: "shop", location: expect.stringContaining("(schema system_") });

    const { databases } = await cairn.migrations.migrate({ to: "sqlite", which: "all" });
    expect(databases.map(({ name, outcome }) => [name, outcome])).toEqual([
      ["The project /migrated", "migrated"],
      ["The system shop", "migrated"],
    ]);
    await cairn.close();
  });
});

describe("POST /v1/migrate", () => {
  it("needs an admin key, and the server that migrates a project continues to serve it", async () => {
    const where = place();
    const name = "/over/http";
    await makeProject(where, name, 3);
    const cairn = await open({ dataDir: where.dataDir, stateDir: where.stateDir, embedder: { kind: "none" } });
    const { call } = await api({ cairn });
    const { key } = await cairn.keys.create({ label: "writer", access: "write", projects: "all" });
    const headers = { authorization: `Bearer ${key}` };
    const refused = await call("POST", "/v1/migrate", { to: database.url, project_path: name }, { headers, connection: REMOTE });
    expect(refused.status).toBe(403);

    const migrated = await call("POST", "/v1/migrate", { to: database.url, project_path: name });
    expect(migrated.status).toBe(200);
    expect(migrated.body.databases[0]).toMatchObject({ outcome: "migrated" });
    const saved = await cairn.checkpoints.save({ projectPath: name, summary: "On PostgreSQL." });
    expect((await cairn.checkpoints.list({ projectPath: name })).total).toBe(4);
    const back = await call("POST", "/v1/migrate", { rollback: true, project_path: name });
    expect(back.status).toBe(409);
    expect(back.body.error?.message ?? JSON.stringify(back.body)).toContain("was written to since");
    expect((await call("POST", "/v1/migrate", { to: "sqlite", project_path: name })).status).toBe(200);
    expect((await cairn.checkpoints.list({ projectPath: name })).checkpoints.map(({ id }) => id)).toContain(saved.id);
    await cairn.close();
  });

  it("a PostgreSQL that is not there changes nothing", async () => {
    const where = place();
    await makeProject(where, "/no/server", 2);
    const cairn = await open({ dataDir: where.dataDir, stateDir: where.stateDir, embedder: { kind: "none" } });
    const which = { kind: "project", id: "/no/server" } as const;
    await expect(cairn.migrations.migrate({ to: "postgres://127.0.0.1:1/none", which })).rejects.toMatchObject({ code: "unavailable" });
    await cairn.checkpoints.save({ projectPath: "/no/server", summary: "Still here." });
    expect((await cairn.checkpoints.list({ projectPath: "/no/server" })).total).toBe(3);
    await cairn.close();
  });
});

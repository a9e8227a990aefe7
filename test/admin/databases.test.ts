import { existsSync, readFileSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { databaseCheck, databaseQuarantine } from "../../src/admin/database-operations.ts";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { stage } from "../cli/stage.ts";

let at: ReturnType<typeof stage>;
beforeEach(() => {
  at = stage();
});
afterEach(() => at.clear());

describe("a damaged database on the command line", () => {
  it("is named when used, checked, set aside and replaced", async () => {
    const cairn = (...argv: string[]) => at.cairn(argv, { env: { CAIRN_EMBEDDER_KIND: "none" } });
    const saved = await cairn("checkpoint", "save", "Before the damage", "--json");
    expect(saved.code, saved.stderr).toBe(0);
    const checked = await cairn("database", "check", "--json");
    const { location, state } = JSON.parse(checked.stdout);
    expect(state).toBe("sound");
    expect((await cairn("database", "quarantine")).stderr).toMatch(/is not damaged/);

    truncateSync(location, 5_000);
    const used = await cairn("checkpoint", "list");
    expect(used.code).not.toBe(0);
    expect(used.stderr).toMatch(/damaged.*cairn database check.*cairn database quarantine/s);
    expect(JSON.parse((await cairn("database", "check", "--json")).stdout).state).toBe("damaged");

    const { moved_to } = JSON.parse((await cairn("database", "quarantine", "--json")).stdout);
    expect(readFileSync(moved_to)).toHaveLength(5_000);
    expect(existsSync(location)).toBe(false);
    expect((await cairn("checkpoint", "save", "After it")).code).toBe(0);
    expect(JSON.parse((await cairn("checkpoint", "list", "--json")).stdout).total).toBe(1);
  });
});

describe("the database operations", () => {
  it("need admin access, and the key's own project", async () => {
    const cairn = await open({ storage: "memory", embedder: [] });
    for (const operation of [databaseCheck, databaseQuarantine]) {
      const input = { project_path: "/mine" };
      const as = (access: "write" | "admin", projects: "all" | string[]) =>
        invoke(cairn, operation, input, { caller: { access, projects } });
      await expect(as("write", "all")).rejects.toMatchObject({ code: "forbidden" });
      await expect(as("admin", ["/theirs"])).rejects.toMatchObject({ code: "forbidden" });
    }
    expect(await invoke(cairn, databaseCheck, { project_path: "/mine" }, { caller: LOCAL_CALLER })).toMatchObject({ state: "absent" });
    await expect(invoke(cairn, databaseQuarantine, { project_path: "/mine" }, { caller: LOCAL_CALLER })).rejects.toMatchObject({
      code: "not_found",
    });
    await cairn.close();
  });

  it("keep one project's file when another's is set aside", async () => {
    const dataDir = join(at.folder, "data");
    const cairn = await open({ dataDir, embedder: [] });
    for (const projectPath of ["/one", "/two"]) await cairn.checkpoints.save({ projectPath, summary: projectPath });
    await cairn.databases.quarantine({ projectPath: "/one", evenIfSound: true });
    expect((await cairn.checkpoints.list({ projectPath: "/one" })).total).toBe(0);
    expect((await cairn.checkpoints.list({ projectPath: "/two" })).total).toBe(1);
    expect(await cairn.projects()).toEqual(["/two"]);
    expect(existsSync(join(dataDir, "projects", `${projectDatabaseName("/one")}.db-wal`))).toBe(false);
    await cairn.close();
  });
});

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { deleteProject } from "../../src/admin/delete-project.ts";
import { type Cairn, open } from "../../src/index.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { memoryStorage } from "../../src/stores/memory/storage.ts";

const PROJECT = "/home/me/old-app";
let dataDir: string;
let cairn: Cairn;
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-delete-"));
  cairn = await open({ dataDir, embedder: { kind: "none" } });
});
afterEach(async () => {
  await cairn.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const call = (input: Record<string, unknown>, projects: "all" | string[] = "all") =>
  invoke(cairn, operations.find(({ name }) => name === "project_delete")!, input, { caller: { ...LOCAL_CALLER, projects } });

it("erases the files of a project after its path was repeated, and nothing else", async () => {
  for (const projectPath of [PROJECT, "/home/me/app"]) await cairn.checkpoints.save({ projectPath, summary: "Parser done" });
  await cairn.code.indexBatch({ projectPath: PROJECT, files: [{ path: "a.ts", content: "export const a = 1;\n" }] });
  const before = readdirSync(join(dataDir, "projects")).filter((name) => name.endsWith(".db"));
  expect(before.length).toBe(3);
  await expect(call({ project_path: PROJECT })).rejects.toMatchObject({ code: "invalid_input", details: { checkpoints: 1, knowledge: 0 } });
  await expect(call({ project_path: PROJECT, confirm: "/home/me/app" })).rejects.toMatchObject({ code: "invalid_input" });
  expect(await call({ project_path: PROJECT, confirm: PROJECT })).toMatchObject({ project_path: PROJECT, checkpoints: 1, knowledge: 0 });
  expect(readdirSync(join(dataDir, "projects")).filter((name) => name.endsWith(".db")).length).toBe(1);
  expect((await cairn.stats.projects({ mayTouch: () => true })).projects.map(({ projectPath }) => projectPath)).toEqual(["/home/me/app"]);
  await expect(call({ project_path: PROJECT, confirm: PROJECT })).rejects.toMatchObject({ code: "not_found" });
  await cairn.checkpoints.save({ projectPath: PROJECT, summary: "Begun again" });
  expect((await cairn.checkpoints.list({ projectPath: PROJECT })).total).toBe(1);
});

it("refuses the project of another key and the shared knowledge", async () => {
  await cairn.checkpoints.save({ projectPath: PROJECT, summary: "Parser done" });
  await expect(call({ project_path: PROJECT, confirm: PROJECT }, ["/other"])).rejects.toMatchObject({ code: "forbidden" });
  await expect(call({ project_path: "shared", confirm: "shared" })).rejects.toMatchObject({ code: "invalid_input" });
});

it("refuses while index jobs of the project are queued", async () => {
  const storage = memoryStorage();
  await storage.create(PROJECT);
  const queue = { depth: async () => ({ pending: 1, running: 0, capacity: 10 }) };
  await expect(deleteProject({ storage, queue }, { projectPath: PROJECT, confirm: PROJECT })).rejects.toMatchObject({ code: "conflict" });
  expect(await storage.projects()).toEqual([PROJECT]);
});

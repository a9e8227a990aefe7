import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { decorateOperations } from "../../src/client/decorate-operations.ts";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations as served } from "../../src/operations/list.ts";
import { coerceInput } from "../../src/operations/wire.ts";
import { removeFolder } from "../support/processes.ts";

describe("coerceInput", () => {
  const schema = z.strictObject({
    project_path: z.string().optional(),
    count: z.int().default(5),
    wait: z.boolean().default(false),
    mode: z.enum(["hybrid", "keyword"]).default("hybrid"),
    tags: z.array(z.string()).optional(),
    context: z.record(z.string(), z.string()).optional(),
    summary: z.string().optional(),
  });
  it.each([
    [{ count: "7" }, { count: 7 }],
    [{ wait: "true" }, { wait: true }],
    [{ mode: "Keyword" }, { mode: "keyword" }],
    [{ tags: "parser" }, { tags: ["parser"] }],
    [{ tags: "parser, wip" }, { tags: ["parser", "wip"] }],
    [{ tags: '["a,b"]' }, { tags: ["a,b"] }],
    [{ tags: ["a,b"] }, { tags: ["a,b"] }],
    [{ tags: [1, "b"] }, { tags: ["1", "b"] }],
    [{ context: { port: 5432, red: true } }, { context: { port: "5432", red: "true" } }],
    [{ context: '{"branch":"main"}' }, { context: { branch: "main" } }],
    [{ project_path: "/home/a/" }, { project_path: "/home/a" }],
    [{ project_path: "/" }, { project_path: "/" }],
    [{ project_path: "C:\\" }, { project_path: "C:\\" }],
  ])("reads %j as %j", (raw, read) => {
    expect(coerceInput(schema, raw)).toEqual(read);
  });

  it.each([{ count: "seven" }, { wait: "yes" }, { mode: "fuzzy" }, { summary: 7 }, { context: { a: null } }, { stray: "5" }])(
    "leaves %j to the schema, which refuses it",
    (raw) => {
      expect(coerceInput(schema, raw)).toBe(raw);
      expect(schema.safeParse(raw).success).toBe(false);
    },
  );
});

describe("operations of the client side", () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-lenient-")));
  const project = join(folder, "app");
  let cairn: Cairn;
  const operations = decorateOperations(served);
  const call = (name: string, input: object) =>
    invoke(cairn, operations.find((one) => one.name === name)!, input, { caller: LOCAL_CALLER }) as Promise<Record<string, never>>;
  beforeAll(async () => {
    mkdirSync(join(project, ".git"), { recursive: true });
    mkdirSync(join(project, "src"));
    writeFileSync(join(project, "src/a.js"), "export function alpha() {\n  return 1;\n}\n");
    symlinkSync(project, join(folder, "link"));
    cairn = await open({ storage: "memory", embedder: { kind: "none" } });
    await cairn.code.indexBatch({
      projectPath: project,
      files: [{ path: "src/a.js", content: "export function alpha() {\n  return 1;\n}\n" }],
    });
    await call("checkpoint_save", { project_path: `${project}/src/`, summary: "Parser done", tags: "parser", context: { port: 5432 } });
  });
  afterAll(async () => {
    await cairn.close();
    await removeFolder(folder);
  });

  it("stores under one project whether it is named by its root, a subfolder, a link or with a trailing slash", async () => {
    for (const project_path of [project, `${project}/`, join(project, "src"), join(folder, "link")])
      expect(await call("checkpoint_list", { project_path, limit: "5" })).toMatchObject({
        total: 1,
        checkpoints: [{ project_path: project, tags: ["parser"], context: { port: "5432" } }],
      });
  });

  it("reads a file by ./, by an absolute path and through a link", async () => {
    for (const path of ["src/a.js", "./src/a.js", join(project, "src/a.js"), join(folder, "link/src/a.js")])
      expect(await call("code_context", { project_path: project, path, start_line: "1", end_line: 1 })).toMatchObject({
        contexts: [{ path: "src/a.js", text: "export function alpha() {" }],
      });
  });

  it("knows languages by other names, and names the known ones instead of finding nothing", async () => {
    for (const languages of ["js", ["JavaScript"], [".mjs"]])
      expect(await call("code_search", { project_path: project, query: "alpha", languages })).toMatchObject({
        results: [{ path: "src/a.js" }],
      });
    await expect(call("code_search", { project_path: project, query: "alpha", languages: ["klingon"] })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringMatching(/languages: "klingon" is not one of .*javascript/),
    });
  });
});

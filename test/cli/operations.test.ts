import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { stage } from "./stage.ts";

let s: ReturnType<typeof stage>;
beforeEach(() => {
  s = stage();
});
afterEach(() => s.clear());

const json = (text: string) => JSON.parse(text);
const save = async (...args: string[]) => json((await s.cairn(["checkpoint", "save", ...args, "--json"])).stdout);

describe("operations on the command line", () => {
  it("saves, lists, gets and deletes", async () => {
    const saved = await save("Parser done", "--tags", "parser", "--tags=wip", "--context", "branch=main", "--context", "sum=1+1=2");
    expect(saved).toMatchObject({
      summary: "Parser done",
      tags: ["parser", "wip"],
      context: { branch: "main", sum: "1+1=2" },
      project_path: s.project,
    });
    const listed = await s.cairn(["checkpoint", "list", "--json"]);
    expect(json(listed.stdout)).toMatchObject({ total: 1, checkpoints: [{ id: saved.id }] });
    const got = await s.cairn(["checkpoint", "get", saved.id, "--json"]);
    expect(json(got.stdout)).toEqual({ ...saved, freshness: { state: "unknown", anchors: [] } });
    expect(json((await s.cairn(["checkpoint", "delete", saved.id, "--json"])).stdout)).toMatchObject({ deleted: true });
    expect(await s.cairn(["checkpoint", "get", saved.id])).toMatchObject({ code: 3, stdout: "" });
  });

  it("prints exactly one JSON document, on one line if stdout is not a terminal", async () => {
    await save("One");
    const { stdout, stderr } = await s.cairn(["checkpoint", "list", "--json"]);
    expect(stdout.trimEnd()).not.toContain("\n");
    expect(stderr).toBe("");
    expect((await s.cairn(["checkpoint", "list", "--json"], { terminal: true })).stdout).toBe(`${JSON.stringify(json(stdout), null, 2)}\n`);
  });

  it("reports errors as JSON on stderr, with the code of the wire", async () => {
    const { code, stdout, stderr } = await s.cairn(["checkpoint", "get", "nope", "--json"]);
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(json(stderr).error).toMatchObject({ code: "NOT_FOUND", message: expect.stringContaining("nope") });
    const wrong = await s.cairn(["checkpoint", "list", "--limit", "0", "--json"]);
    expect(wrong.code).toBe(2);
    expect(json(wrong.stderr).error).toMatchObject({ code: "VALIDATION_ERROR", details: { issues: [{ field: "limit" }] } });
  });

  it("takes the enclosing git repository as the project", async () => {
    await save("From the root");
    const deep = await s.cairn(["checkpoint", "list", "--json"], { cwd: join(s.project, "src", "deep") });
    expect(json(deep.stdout).total).toBe(1);
    const other = join(s.folder, "other");
    mkdirSync(other);
    expect(json((await s.cairn(["checkpoint", "list", "--json"], { cwd: other })).stdout).total).toBe(0);
    expect(json((await s.cairn(["checkpoint", "list", "--json", "--project", "../project"], { cwd: other })).stdout).total).toBe(1);
    expect(json((await s.cairn(["--json", "--project=../project/src/..", "checkpoint", "list"], { cwd: other })).stdout).total).toBe(1);
  });

  it("rejects a missing project folder", async () => {
    for (const path of ["/no/such/folder", "package.json", "nul\0byte"]) {
      const { code, stderr } = await s.cairn(["checkpoint", "list", "--project", path]);
      expect(code).toBe(2);
      expect(stderr).toContain("--project: there is no folder");
    }
  });

  it("reads one long text from standard input", async () => {
    const text = "First line\n\nSecond, with ünïcödé 🪨";
    const { stdout } = await s.cairn(["checkpoint", "save", "Piped", "--description", "-", "--json"], { stdin: `${text}\n` });
    expect(json(stdout).description).toBe(text);
    expect(json((await s.cairn(["checkpoint", "save", "-", "--json"], { stdin: "A summary" })).stdout).summary).toBe("A summary");
    const both = await s.cairn(["checkpoint", "save", "-", "--description", "-"], { stdin: "x" });
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining("cannot both be read") });
    expect(await s.cairn(["checkpoint", "save", "-"], { stdin: Buffer.from([0xff, 0xfe]) })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("not UTF-8"),
    });
    expect((await s.cairn(["checkpoint", "save", "-"], { stdin: Buffer.alloc(5 * 1024 * 1024, 97) })).code).toBe(7);
  });

  it("names flags, not fields, when a value is wrong", async () => {
    const says = async (...args: string[]) => (await s.cairn(["checkpoint", ...args])).stderr;
    expect(await says("list", "--sort-by", "size")).toContain('--sort-by: must be one of "created_at", "updated_at"');
    expect(await says("list", "--limit", "ten")).toContain("--limit: must be a number");
    expect(await says("list", "--limit", "1.5")).toContain("--limit:");
    expect(await says("save")).toContain("<summary> is missing");
    expect(await says("save", "x".repeat(501))).toContain("<summary>: must have at most 500 characters");
    expect(await says("save", "x", "--context", "novalue")).toContain("--context takes key=value");
    expect(await says("save", "x", "--context", "a=1", "--context", "a=2")).toContain('repeats the key "a"');
    expect(await says("save", "x", "--context", `a=${"v".repeat(501)}`)).toContain("--context (a): must have at most 500");
    expect(await says("save", "two", "words")).toContain('Unexpected argument "words". Put text with spaces in quotes.');
    expect(await says("save", "x", "--summary", "y")).toContain("--summary may be given only once");
    expect(await says("list", "--limit")).toContain("--limit needs a value");
    expect(await says("save", "x", "--tags", "--json")).toContain("--tags=--json");
    expect(await says("list", "--json=yes")).toContain("--json takes no value");
    expect(await says("save", "a\0b")).toContain("NUL");
    expect(await says("save", "a\uD800b")).toContain("surrogate");
  });

  it("stores nothing when a value is invalid", async () => {
    await s.cairn(["checkpoint", "save", "good", "--tags", "x".repeat(51)]);
    await s.cairn(["checkpoint", "save", "good", "--nonsense"]);
    expect(json((await s.cairn(["checkpoint", "list", "--json"])).stdout).total).toBe(0);
  });

  it("accepts text that begins with a dash, after -- or with =", async () => {
    const after = await s.cairn(["checkpoint", "save", "--json", "--", "--dashed"]);
    expect(json(after.stdout).summary).toBe("--dashed");
    expect((await save("--summary=-1 degrees")).summary).toBe("-1 degrees");
  });

  it("exits with 130 on Ctrl-C and reports the cancellation", async () => {
    expect(await s.cairn(["checkpoint", "list"], { signal: AbortSignal.abort() })).toEqual({
      code: 130,
      stdout: "",
      stderr: "cairn: Cancelled.\n",
    });
  });

  it("reports a data folder that cannot be used", async () => {
    const { code, stderr } = await s.cairn(["checkpoint", "save", "x", "--data-dir", "/dev/null/x"]);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/^cairn: /);
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});

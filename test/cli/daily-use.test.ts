import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { setKey } from "../../src/cli/config-file.ts";
import { nearMiss } from "../../src/cli/near-miss.ts";
import { textWidth } from "../../src/cli/terminal/width.ts";
import { stage } from "./stage.ts";

let s: ReturnType<typeof stage>;
beforeEach(() => {
  s = stage();
});
afterEach(() => s.clear());

describe("cairn without arguments", () => {
  it("prints at most 25 lines that fit 60 columns and name every group", async () => {
    for (const columns of [60, 80, 120]) {
      const { stdout, code } = await s.cairn([], { terminal: true, columns, env: { NO_COLOR: "1" } });
      const lines = stdout.trimEnd().split("\n");
      expect(code).toBe(0);
      expect(lines.length).toBeLessThanOrEqual(25);
      expect(Math.max(...lines.map(textWidth))).toBeLessThanOrEqual(columns);
      for (const noun of new Set(commands.map(({ path }) => path[0]))) expect(stdout).toMatch(new RegExp(`\\b${noun}\\b`));
    }
  });

  it("lists every command with help all", async () => {
    const { stdout } = await s.cairn(["help", "all"]);
    for (const { path } of commands) expect(stdout).toContain(`cairn ${path.join(" ")}`);
  });
});

describe("hints", () => {
  it.each([
    [["checkpoint"], "ls", 'Did you mean "checkpoint list"?'],
    [["checkpoint"], "rm", 'Did you mean "checkpoint delete"?'],
    [[], "list", "cairn ls"],
  ])("help with %j %s", (path, word, hint) => {
    const known = ["list", "get", "delete", "save", "search"];
    expect(nearMiss(path, word, known)).toContain(hint);
  });

  it("are absent for words of no tool", () => expect(nearMiss(["checkpoint"], "zzz", ["list"])).toBeUndefined());
});

describe("lists", () => {
  it("print the flag that shows the rest, without a cursor", async () => {
    for (const summary of ["one", "two", "three"]) await s.cairn(["save", summary]);
    const { stdout } = await s.cairn(["ls", "--limit", "2"]);
    expect(stdout).toContain("1 more: --limit 3");
    expect(stdout).not.toContain("cursor");
    expect((await s.cairn(["ls", "--limit", "3"])).stdout).not.toContain("more");
    expect((await s.cairn(["ls", "--limit", "1", "--offset", "1"])).stdout).toContain("1 more: --limit 2");
  });

  it("return more than one page", async () => {
    const lines = Array.from({ length: 130 }, (_, n) =>
      JSON.stringify({ id: `id-${n}`, summary: `Number ${n}`, created_at: new Date(1_700_000_000_000 + n).toISOString() }),
    );
    expect((await s.cairn(["checkpoint", "import", "-"], { stdin: lines.join("\n") })).stdout).toContain("130 checkpoints imported");
    const { checkpoints } = JSON.parse((await s.cairn(["ls", "--limit", "125", "--json"])).stdout) as { checkpoints: { id: string }[] };
    expect(checkpoints.map(({ id }) => id)).toEqual(Array.from({ length: 125 }, (_, n) => `id-${129 - n}`));
    expect((await s.cairn(["ls", "--limit", "10001"])).code).toBe(2);
  });

  it("say why a search found a record, and fit 60 columns", async () => {
    await s.cairn(["save", "The lexer knows strings, escapes, and numbers with exponents; the parser comes next"]);
    const { stdout } = await s.cairn(["search", "lexer"], { terminal: true, columns: 60, env: { NO_COLOR: "1" } });
    expect(stdout).toMatch(/FOUND BY\n/);
    expect(stdout).toMatch(/keyword #1/);
    for (const line of stdout.split("\n")) expect(textWidth(line)).toBeLessThanOrEqual(60);
  });

  it("count tags and projects", async () => {
    await s.cairn(["save", "one", "--tags", "parser", "--tags", "wip"]);
    await s.cairn(["save", "two", "--tags", "Parser"]);
    expect(JSON.parse((await s.cairn(["tags", "--json"])).stdout).tags).toEqual([
      { tag: "Parser", count: 2 },
      { tag: "wip", count: 1 },
    ]);
    expect(JSON.parse((await s.cairn(["projects", "--json"])).stdout)).toMatchObject({ projects: [{ checkpoints: 2 }], total: 1 });
  });

  it("filter by dates as people write them", async () => {
    await s.cairn(["save", "one"]);
    expect((await s.cairn(["ls", "--created-from", "yesterday"])).stdout).toContain("one");
    expect((await s.cairn(["ls", "--created-before", "yesterday"])).stdout).toBe("No checkpoints.\n");
    const { code, stderr } = await s.cairn(["ls", "--created-from", "soon"]);
    expect(code).toBe(2);
    expect(stderr).toContain('--created-from: "soon" is not a time. Use 2026-11-16, yesterday, 7d');
  });
});

describe("config set and unset", () => {
  const file = () => JSON.parse(readFileSync(join(s.home, ".cairn", "config.json"), "utf8")) as unknown;

  it("write checked values to the user file", async () => {
    expect((await s.cairn(["config", "set", "http.port", "8080"])).stdout).toContain("Set http.port to 8080 in ");
    expect((await s.cairn(["config", "set", "mcp.toolsets", "core,code"])).code).toBe(0);
    expect(file()).toEqual({ http: { port: 8080 }, mcp: { toolsets: ["core", "code"] } });
    expect((await s.cairn(["config", "get", "http.port"])).stdout).toBe("8080\n");
    expect((await s.cairn(["config", "unset", "http.port"])).code).toBe(0);
    expect(file()).toEqual({ mcp: { toolsets: ["core", "code"] } });
    expect((await s.cairn(["config", "unset", "http.port"])).code).toBe(3);
  });

  it("reject unknown keys and wrong values, and change nothing", async () => {
    expect((await s.cairn(["config", "set", "http.prt", "1"])).stderr).toContain("Did you mean http.port?");
    expect((await s.cairn(["config", "set", "http.port", "many"])).code).toBe(2);
    expect(() => file()).toThrow("ENOENT");
  });

  it("report a value of another source that is in effect", async () => {
    const { stdout } = await s.cairn(["config", "set", "http.port", "8080"], { env: { CAIRN_HTTP_PORT: "9000" } });
    expect(stdout).toContain("In effect: 9000 (environment CAIRN_HTTP_PORT)");
  });

  it("show one group, or one value", async () => {
    const { stdout } = await s.cairn(["config", "get", "http"]);
    expect(stdout).toMatch(/^KEY +VALUE +FROM\nhttp\.host /);
    expect(
      stdout
        .trimEnd()
        .split("\n")
        .slice(1)
        .every((line) => line.startsWith("http.")),
    ).toBe(true);
    expect((await s.cairn(["config", "get", "htp"])).code).toBe(2);
  });

  it("remove groups that become empty", () => {
    const content = { a: { b: { c: 1 } }, d: 2 };
    expect(setKey(content, ["a", "b", "c"], undefined)).toBe(true);
    expect(content).toEqual({ d: 2 });
    expect(setKey(content, ["x", "y"], undefined)).toBe(false);
    expect(content).toEqual({ d: 2 });
  });
});

describe("a command", () => {
  it("exits with 3 when there is nothing to delete", async () => {
    for (const argv of [
      ["checkpoint", "delete", "no-such-id"],
      ["knowledge", "delete", "no-such-id"],
      ["checkpoint", "restore", "no-such-id"],
      ["checkpoint", "purge", "no-such-id"],
      ["knowledge", "restore", "no-such-id"],
      ["run", "delete", "no-such-run"],
      ["key", "revoke", "0f3a9c27b1d4"],
    ]) {
      const { code, stdout } = await s.cairn(argv);
      expect({ argv, code, stdout }).toEqual({ argv, code: 3, stdout: "" });
    }
  });

  it("deletes, lists, restores and purges by a short id", async () => {
    const { id } = JSON.parse((await s.cairn(["checkpoint", "save", "Deleted by mistake", "--json"])).stdout);
    const deleted = await s.cairn(["checkpoint", "delete", id.slice(0, 8)]);
    expect(deleted.stdout).toMatch(new RegExp(`^Deleted\\. Undo it until \\d{4}-\\d\\d-\\d\\d with: cairn checkpoint restore ${id}\n$`));
    expect((await s.cairn(["checkpoint", "list"])).stdout).not.toContain("Deleted by mistake");
    expect((await s.cairn(["checkpoint", "list", "--deleted"])).stdout).toContain("Deleted by mistake");
    expect((await s.cairn(["checkpoint", "restore", id.slice(0, 8)])).stdout).toContain(`Restored checkpoint ${id}`);
    expect((await s.cairn(["checkpoint", "list"])).stdout).toContain("Deleted by mistake");
    await s.cairn(["checkpoint", "delete", "latest"]);
    expect(JSON.parse((await s.cairn(["deleted", "purge", "--older-than", "0d", "--json"])).stdout)).toEqual({
      checkpoints: 1,
      knowledge: 0,
    });
    expect((await s.cairn(["checkpoint", "restore", id])).code).toBe(3);
  });

  it("does not overwrite a file with an export, unless asked", async () => {
    await s.cairn(["save", "one"]);
    expect((await s.cairn(["checkpoint", "export", "out.jsonl"])).code).toBe(0);
    const { code, stderr } = await s.cairn(["checkpoint", "export", "out.jsonl"]);
    expect(code).toBe(4);
    expect(stderr).toContain("replace it with --overwrite");
    expect((await s.cairn(["checkpoint", "export", "out.jsonl", "--overwrite"])).code).toBe(0);
  });

  it("clears lists and maps with --no-", async () => {
    await s.cairn(["save", "one", "--tags", "wip", "--context", "branch=main"]);
    const { stdout } = await s.cairn(["checkpoint", "update", "latest", "--no-tags", "--no-context", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ tags: [], context: {} });
    expect((await s.cairn(["checkpoint", "update", "latest", "--tags", "a", "--no-tags"])).code).toBe(2);
  });

  it("names commands and flags in errors", async () => {
    expect((await s.cairn(["checkpoint", "get", "no-such-id"])).stderr).toContain("Use cairn checkpoint list to see");
    expect((await s.cairn(["checkpoint", "prune"])).stderr).toContain("set --older-than, --keep-last or both");
  });

  it.each([
    [["run", "resume"], "<run-id> is missing. Usage: cairn run resume <run-id>"],
    [["search"], "<query> is missing. Usage: cairn checkpoint search <query>"],
    [["run", "get", "nine"], 'There is no run "nine". cairn run list shows the runs.'],
    [["ls", "--since", "yesterday"], 'Unknown flag "--since". Did you mean --created-from?'],
    [["ls", "--zzz"], 'Unknown flag "--zzz". See the flags of the command with --help.'],
    [["--verson"], 'Unknown flag "--verson". Did you mean --version? See: cairn --help'],
    [["ls", "--limit", "ten"], "--limit: must be a number"],
    [["config", "set"], "<key> is missing. cairn config get lists the keys."],
    [["checkpoint", "update", "latest"], "Nothing to change. Give --summary, --description, --context, --tags, --anchors or --supersedes."],
  ])("says what to do after %j", async (argv, message) => {
    await s.cairn(["save", "one"]);
    const { stderr } = await s.cairn(argv);
    expect(stderr).toBe(`cairn: ${message}\n`);
  });

  it("shows no mark of a record that names no code, and no count of zero", async () => {
    await s.cairn(["save", "one"]);
    await s.cairn(["knowledge", "save", "How do we release?", "Push a tag."]);
    for (const argv of [["resume"], ["checkpoint", "get", "latest"], ["knowledge", "get", "latest"], ["knowledge", "search", "release"]])
      expect((await s.cairn(argv)).stdout).not.toMatch(/unknown|OUTDATED/);
  });

  it("notes that tags are not separated by commas", async () => {
    const { code, stderr } = await s.cairn(["save", "one", "--tags", "parser,wip"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'cairn: "parser,wip" is one tag. For several, repeat --tags.\n' });
    expect((await s.cairn(["save", "two", "--tags", "parser", "--tags", "a, b"])).stderr).toBe("");
    expect((await s.cairn(["save", "three", "--tags", "parser,wip", "--json"])).stderr).toBe("");
  });

  it("says what a cancelled call leaves behind", async () => {
    const cancelled = AbortSignal.abort();
    const { code, stderr } = await s.cairn(["checkpoint", "prune", "--keep-last", "1"], { signal: cancelled });
    expect({ code, stderr }).toEqual({
      code: 130,
      stderr: "cairn: Cancelled. Checkpoints that were deleted stay deleted; the others are unchanged.\n",
    });
  });

  it("finds the systems of a project from its subfolders", async () => {
    const { system } = await import("../../src/systems.ts");
    const billing = system({ systemId: "billing", storage: { storage: "sqlite", stateDir: join(s.project, ".state") } });
    await billing.component("till").port("orders").receive({ id: "1", offset: 0 });
    await billing.close();
    for (const cwd of [s.project, join(s.project, "src", "deep")])
      expect((await s.cairn(["system", "list"], { cwd })).stdout).toContain("billing");
    expect((await s.cairn(["system", "requeue", "billing", "tll", "orders"])).stderr).toContain('no component "tll". There are: till.');
  });

  it("takes a text for code similar", async () => {
    writeFileSync(join(s.project, "retry.py"), "def retry(call):\n    return call()\n");
    await s.cairn(["code", "index", "--wait"]);
    expect((await s.cairn(["code", "similar", "retry a call"])).stdout).toContain("retry.py");
    expect((await s.cairn(["code", "similar", "retry.py", "1"])).code).toBe(0);
    expect((await s.cairn(["code", "similar", "retry.py:1"])).code).toBe(0);
    expect(await s.cairn(["code", "similar", "rety.py:1"])).toMatchObject({
      code: 3,
      stderr: "cairn: There is no file rety.py. For a text, use --text.\n",
    });
  });
});

describe("unknown variables", () => {
  it("are reported, and the command runs", async () => {
    const { code, stderr, stdout } = await s.cairn(["ls"], { env: { CAIRN_EMBEDER_KIND: "none" } });
    expect({ code, stdout }).toEqual({ code: 0, stdout: "No checkpoints.\n" });
    expect(stderr).toContain('Ignored unknown variable "CAIRN_EMBEDER_KIND": did you mean "CAIRN_EMBEDDER_KIND"?');
  });
});

import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { stage } from "./stage.ts";

const { cairn, project, clear } = stage();
const mcp = join(project, ".mcp.json");
const settings = join(project, ".claude", "settings.json");
beforeEach(() => {
  rmSync(mcp, { force: true });
  rmSync(join(project, ".claude"), { recursive: true, force: true });
});
afterAll(clear);
const content = (path: string) => JSON.parse(readFileSync(path, "utf8"));

describe("cairn init", () => {
  it("writes .mcp.json once, and prints the entries for other clients", async () => {
    const { code, stdout } = await cairn(["init", "--launch", "npx"]);
    expect(code).toBe(0);
    expect(content(mcp)).toEqual({ mcpServers: { cairn: { command: "npx", args: ["-y", "cairn-memory", "mcp"] } } });
    expect(stdout).toMatch(/created .*\.mcp\.json/);
    for (const client of ["Claude Desktop", "Cursor", "VS Code", "Codex", "Gemini CLI", "opencode", "Windsurf"])
      expect(stdout).toContain(client);
    expect(stdout, "an entry for all projects must not name one").not.toContain(JSON.stringify(project));
    expect(existsSync(settings)).toBe(false);
    expect((await cairn(["init", "--launch", "npx"])).stdout).toMatch(/unchanged/);
    const { files, other_clients } = JSON.parse((await cairn(["init", "--json"])).stdout);
    expect(files[0].change).toBe("changed"); // a checkout is started by its path
    expect(content(mcp).mcpServers.cairn).toMatchObject({ command: "node", args: [expect.stringMatching(/main\.cjs$/), "mcp"] });
    expect(other_clients).toHaveLength(7);
  });

  it("writes nothing where the configuration is invalid", async () => {
    expect(await cairn(["init", "--set", "http=1"])).toMatchObject({ code: 2, stdout: "" });
    expect(existsSync(join(project, ".mcp.json"))).toBe(false);
  });

  it("keeps other content, and --remove restores the files byte for byte", async () => {
    const theirs = `${JSON.stringify({ mcpServers: { other: { command: "x", args: [], env: { A: "b" } } }, extra: [1, { a: null }] }, null, "\t")}\n`;
    const theirHooks = JSON.stringify(
      {
        permissions: { allow: ["Bash"] },
        hooks: { PreCompact: [{ matcher: "auto", hooks: [{ type: "command", command: "backup" }] }], Stop: [] },
      },
      null,
      4,
    );
    mkdirSync(join(project, ".claude"));
    writeFileSync(mcp, theirs);
    writeFileSync(settings, theirHooks);
    expect((await cairn(["init", "--hooks"])).code).toBe(0);
    expect(Object.keys(content(mcp).mcpServers)).toEqual(["other", "cairn"]);
    expect(content(settings).hooks.PreCompact).toMatchObject([
      { matcher: "auto", hooks: [{ command: "backup" }] },
      { hooks: [{ type: "command", command: expect.stringMatching(/ hook pre-compact$/), timeout: 60 }] },
    ]);
    expect(Object.keys(content(settings).hooks).sort()).toEqual(["PostCompact", "PreCompact", "SessionEnd", "SessionStart", "Stop"]);
    await cairn(["init", "--hooks"]);
    expect(content(settings).hooks.PreCompact).toHaveLength(2);
    expect((await cairn(["init", "--remove"])).code).toBe(0);
    expect(readFileSync(mcp, "utf8")).toBe(theirs);
    expect(readFileSync(settings, "utf8")).toBe(theirHooks);
  });

  it("sets up the hooks of Codex and Gemini CLI where the project has a folder for them, and removes them", async () => {
    for (const folder of [".codex", ".gemini"]) mkdirSync(join(project, folder));
    await cairn(["init", "--hooks"]);
    const codex = JSON.parse(readFileSync(join(project, ".codex/hooks.json"), "utf8")).hooks;
    expect(Object.keys(codex)).toEqual(["SessionStart", "PreCompact", "PostCompact", "SessionEnd"]);
    expect(codex.PostCompact[0].hooks[0].command).toMatch(/ hook post-compact$/);
    const gemini = JSON.parse(readFileSync(join(project, ".gemini/settings.json"), "utf8")).hooks;
    expect(gemini.PreCompress[0].hooks[0]).toMatchObject({ command: expect.stringMatching(/ hook pre-compact$/), timeout: 60_000 });
    await cairn(["init", "--remove"]);
    expect(existsSync(join(project, ".codex/hooks.json")) || existsSync(join(project, ".gemini/settings.json"))).toBe(false);
  });

  it("removes only files that it created", async () => {
    await cairn(["init", "--hooks"]);
    const { stdout } = await cairn(["init", "--remove"]);
    expect(stdout).toMatch(/removed .*\.mcp\.json\nremoved .*settings\.json/);
    expect([existsSync(mcp), existsSync(settings), existsSync(dirname(settings))]).toEqual([false, false, false]);
    expect((await cairn(["init", "--remove"])).stdout).toMatch(/unchanged .*\nunchanged/);
  });

  it.each(["{ not json", "[1]", '{"mcpServers": []}', '{"mcpServers": {"cairn": {"command": "other-program"}}}'])(
    "leaves a file alone that it does not understand: %s",
    async (text) => {
      writeFileSync(mcp, text);
      const { code, stderr } = await cairn(["init"]);
      expect(code).toBe(4);
      expect(stderr).toMatch(/was not changed|Nothing was changed/);
      expect(readFileSync(mcp, "utf8")).toBe(text);
    },
  );

  it("writes through a symbolic link inside the repository and keeps the link", async () => {
    const real = join(project, "real.json");
    writeFileSync(real, "{}\n");
    symlinkSync(real, mcp);
    expect((await cairn(["init"])).code).toBe(0);
    expect(lstatSync(mcp).isSymbolicLink()).toBe(true);
    expect(content(real).mcpServers.cairn).toBeDefined();
  });
});

import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { stage } from "../cli/stage.ts";

const { cairn, project, folder, clear } = stage();
const outside = join(folder, "outside");
const mcp = join(project, ".mcp.json");
beforeEach(() => {
  for (const path of [mcp, join(project, ".claude"), outside]) rmSync(path, { recursive: true, force: true });
  mkdirSync(outside);
});
afterAll(clear);

describe("cairn init in a repository with symbolic links", () => {
  it("does not write through a link to a file of the user", async () => {
    const victim = join(outside, "settings.json");
    writeFileSync(victim, "{}\n");
    symlinkSync(victim, mcp);
    const { code, stderr } = await cairn(["init"]);
    expect([code, stderr]).toEqual([4, expect.stringMatching(/\.mcp\.json is a symbolic link that leads out of the repository/)]);
    expect(readFileSync(victim, "utf8")).toBe("{}\n");
    expect(readdirSync(outside)).toEqual(["settings.json"]);
  });

  it("does not write into a folder elsewhere through a linked .claude", async () => {
    symlinkSync(outside, join(project, ".claude"));
    expect((await cairn(["init", "--hooks"])).code).toBe(4);
    expect(readdirSync(outside)).toEqual([]);
  });

  it("does not create a file elsewhere through a dangling link", async () => {
    symlinkSync(join(outside, "new.json"), mcp);
    expect((await cairn(["init"])).stderr).toMatch(/leads nowhere/);
    expect(existsSync(join(outside, "new.json"))).toBe(false);
    expect(lstatSync(mcp).isSymbolicLink()).toBe(true);
  });

  it("does not remove or change files elsewhere with --remove", async () => {
    const victim = join(outside, "mine.json");
    const text = JSON.stringify({ mcpServers: { cairn: { command: "npx", args: ["-y", "cairn-memory", "mcp"] } } });
    writeFileSync(victim, text);
    symlinkSync(victim, mcp);
    expect((await cairn(["init", "--remove"])).code).toBe(4);
    expect(readFileSync(victim, "utf8")).toBe(text);
  });

  it("works in a project that is itself reached through a link", async () => {
    const link = join(folder, "link");
    symlinkSync(project, link);
    expect((await cairn(["init"], { cwd: link })).code).toBe(0);
    expect(existsSync(mcp)).toBe(true);
  });
});

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { sampleSession, writeClaude } from "../../bench/adopt/sessions.ts";
import { processStage } from "../client/processes.ts";
import { adoptSuite } from "./adopt-suite.ts";
import { stage } from "./stage.ts";

adoptSuite("a server", async (folder) => {
  const server = processStage();
  const { url } = await server.serve();
  const token = server.token();
  return { flags: ["--data-dir", join(folder, "data"), "--api-url", url, "--api-key", token], close: server.clear };
});

adoptSuite("SQLite", async (folder) => ({ flags: ["--data-dir", join(folder, "data")], close: async () => {} }));

describe("cairn adopt", () => {
  const { cairn, home, project, clear } = stage();
  afterAll(clear);

  it("reports that nothing was found", async () => {
    const { stdout, code } = await cairn(["adopt"]);
    expect([stdout, code]).toEqual(["No sessions or notes of other tools were found on this machine.\n", 0]);
  });

  it.each([
    [["adopt", "--from", "cursor"], /--from: "cursor" is not one of claude-code, codex/],
    [["adopt", "--remove", "--from", "codex"], /--remove cannot be combined with --from/],
  ])("rejects %j", async (argv, message) => {
    const { stderr, code } = await cairn(argv);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });

  it("is suggested by init and at the start of a session until it was run, and never runs by itself", async () => {
    const start = async () =>
      JSON.parse((await cairn(["hook", "session-start"], { stdin: JSON.stringify({ cwd: project }) })).stdout || "{}");
    expect(await start()).toEqual({});
    expect((await cairn(["init"])).stdout).not.toContain("cairn adopt");
    const transcript = writeClaude(home, sampleSession(1, project));
    const own = JSON.stringify({ cwd: project, transcript_path: transcript });
    expect((await cairn(["hook", "session-start"], { stdin: own })).stdout).toBe("");
    expect((await cairn(["init"])).stdout).toContain("Claude Code left sessions or notes on this machine. See: cairn adopt --dry-run\n");
    const { additionalContext } = (await start()).hookSpecificOutput;
    expect(additionalContext).toMatch(/^Claude Code left sessions[^\n]+ do not run it unasked\.$/);
    await cairn(["adopt", "--dry-run"]);
    expect(JSON.parse((await cairn(["checkpoint", "list", "--json"])).stdout).total).toBe(0);
    expect((await start()).hookSpecificOutput).toBeDefined();
    await cairn(["adopt"]);
    expect((await start()).hookSpecificOutput.additionalContext).toContain("Cairn has 1 checkpoints");
    expect((await cairn(["init"])).stdout).not.toContain("cairn adopt");
  });

  it("shows a progress bar and a table that fit 80 columns", async () => {
    const folder = join(home, "x".repeat(60), "y".repeat(60));
    mkdirSync(folder, { recursive: true });
    for (let number = 10; number < 15; number++) writeClaude(home, sampleSession(number, folder, 400_000));
    const { stdout, stderr } = await cairn(["adopt"], { terminal: true, columns: 80 });
    expect(stdout).toMatch(/claude-code +6 +\d\.\d MB +6 +0\n/);
    const drawn = stderr.split("\r\u001B[2K").filter(Boolean);
    expect(drawn.some((line) => line.includes("MB  claude-code"))).toBe(true);
    expect(drawn.every((line) => line.length < 80)).toBe(true);
    expect(
      stripVTControlCharacters(stdout)
        .split("\n")
        .every((line) => line.length <= 80),
    ).toBe(true);
  });
});

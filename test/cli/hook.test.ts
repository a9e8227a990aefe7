import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testRepository } from "../freshness/repository.ts";
import { plantedSecrets } from "../redaction/planted.ts";
import { stage } from "./stage.ts";

const { cairn, project, folder, clear } = stage();
const env = { CAIRN_EMBEDDER_KIND: "none" };
afterAll(clear);
const transcript = join(folder, "session.jsonl");
const { secret } = plantedSecrets(4).find(({ kind }) => kind === "github-token")!;

const user = (content: unknown, more = {}) => ({ type: "user", gitBranch: "main", message: { role: "user", content }, ...more });
const agent = (...content: unknown[]) => ({ type: "assistant", gitBranch: "main", message: { role: "assistant", content } });
const wrote = (file_path: string) => ({ type: "tool_use", name: "Write", input: { file_path, content: "x" } });
const lines = (...entries: unknown[]) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");

const hook = (event: string, input: object | string) =>
  cairn(["hook", event], {
    env,
    cwd: folder,
    stdin:
      typeof input === "string"
        ? input
        : JSON.stringify({ session_id: "s1", transcript_path: transcript, cwd: join(project, "src", "deep"), ...input }),
  });
const checkpoints = async () => JSON.parse((await cairn(["checkpoint", "list", "--json"], { env })).stdout).checkpoints;

describe("cairn hook", () => {
  beforeAll(() =>
    writeFileSync(
      transcript,
      lines(
        { type: "summary", summary: "An older session" },
        user("Caveat: the messages below", { isMeta: true }),
        user("<command-name>/clear</command-name>"),
        user(`Write the lexer. My token is ${secret}`),
        agent({ type: "text", text: "I will." }, wrote(join(project, "src", "lexer.ts")), wrote("/etc/other.conf")),
        user([{ type: "tool_result", content: "ok" }]),
        user("Do something else", { isSidechain: true }),
        agent({ type: "text", text: "The lexer is done; the parser comes next." }),
        user([{ type: "text", text: "Now the\nparser, please" }]),
        agent({ type: "tool_use", name: "Edit", input: { file_path: join(project, "src", "parser.ts") } }),
      ).concat("half a line {"),
    ),
  );

  it("offers nothing without checkpoints", async () => {
    expect(await hook("session-start", { source: "startup" })).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  it("saves a checkpoint from the transcript before compaction, without secrets", async () => {
    expect(await hook("pre-compact", { hook_event_name: "PreCompact", trigger: "auto" })).toEqual({ code: 0, stdout: "", stderr: "" });
    const [saved] = await checkpoints();
    expect(saved).toMatchObject({
      project_path: project,
      summary: "Before compaction: Now the parser, please",
      context: { session_id: "s1", branch: "main", why: "auto", files_written: "3" },
      tags: ["auto", "pre-compact"],
    });
    expect(saved.description).toMatch(
      /Last requests:\n- Write the lexer\. My token is \[redacted:github-token\]\n- Now the parser, please/,
    );
    expect(saved.description).toMatch(/Files written:\n- src\/lexer\.ts\n- \/etc\/other\.conf\n- src\/parser\.ts/);
    expect(saved.description).toMatch(/Last answer:\nThe lexer is done; the parser comes next\./);
    expect(JSON.stringify(saved)).not.toMatch(/Caveat|command-name|something else/);
    expect(JSON.stringify(saved)).not.toContain(secret);
  });

  it("saves at the end of a session, and never the same content twice", async () => {
    appendFileSync(transcript, `\n${lines(user("And the tests"), agent({ type: "text", text: "All green." }))}`);
    await hook("session-end", { reason: "logout" });
    await hook("session-end", { reason: "logout" });
    const all = await checkpoints();
    expect(all).toHaveLength(2);
    expect(all[0]).toMatchObject({ summary: "End of session: And the tests", context: { why: "logout" } });
  });

  it("offers the newest checkpoint at the start, and its full text after a compaction", async () => {
    const start = await hook("session-start", { source: "startup" });
    const { hookSpecificOutput } = JSON.parse(start.stdout);
    expect(hookSpecificOutput.hookEventName).toBe("SessionStart");
    expect(hookSpecificOutput.additionalContext).toMatch(
      /has 2 checkpoints.*is automatic:\n\n# End of session: And the tests.*Saved automatically by hooks:\n- .*Before compaction/s,
    );
    expect(hookSpecificOutput.additionalContext).not.toMatch(/All green/);
    const compacted = JSON.parse((await hook("session-start", { source: "compact" })).stdout);
    expect(compacted.hookSpecificOutput.additionalContext).toMatch(/All green/);
  });

  it("replaces the checkpoint before a compaction by one with the client's summary of the session", async () => {
    await hook("post-compact", { trigger: "auto", compact_summary: "The lexer works; the parser lacks error recovery." });
    const all = await checkpoints();
    expect(all.map(({ tags }: { tags: string[] }) => tags[1])).toEqual(["post-compact", "session-end"]);
    expect(all[0].description).toMatch(/^Summary of the session:\nThe lexer works; the parser lacks error recovery\.\n\nLast requests:/);
  });

  it("offers what an agent saved deliberately first, and automatic checkpoints as lines", async () => {
    await cairn(["checkpoint", "save", "Parser: error recovery next", "--description", "Start in recover()."], { env });
    await hook("session-end", { session_id: "s9", reason: "logout" });
    const { additionalContext } = JSON.parse((await hook("session-start", { source: "startup" })).stdout).hookSpecificOutput;
    expect(additionalContext).toMatch(
      /that an agent saved:\n\n# Parser: error recovery next\n.*Start in recover\(\)\..*Saved automatically by hooks:\n- .*End of session/s,
    );
    expect(additionalContext).not.toMatch(/# End of session/);
  });

  it("anchors what it saves to the files and the commit, and marks at the start what has changed since", async () => {
    const repository = testRepository();
    try {
      repository.write("src/a.js", "export const a = 1;\n");
      repository.commit();
      const at = { cwd: repository.root, session_id: "anchored" };
      writeFileSync(
        transcript,
        lines(user("Fix src/a.js"), agent({ type: "text", text: "Done." }, wrote(join(repository.root, "src/a.js")))),
      );
      await hook("session-end", at);
      const args = ["checkpoint", "list", "--project", repository.root, "--json"];
      const [saved] = JSON.parse((await cairn(args, { env })).stdout).checkpoints;
      expect(saved.anchors.map(({ kind, value }: { kind: string; value: string }) => [kind, value])).toEqual([
        ["head", repository.git("rev-parse", "HEAD")],
        ["branch", "main"],
        ["file", "src/a.js"],
      ]);
      const start = async () => JSON.parse((await hook("session-start", { ...at, source: "startup" })).stdout).hookSpecificOutput;
      expect((await start()).additionalContext).not.toContain("changed:");
      repository.write("src/a.js", "export const a = 2;\n");
      await cairn(["checkpoint", "save", "Unrelated note", "--project", repository.root], { env });
      expect((await start()).additionalContext).toMatch(
        /- .* End of session: Fix src\/a\.js \([^)]*\) \(changed: src\/a\.js since [0-9a-f]{7}\)/,
      );
    } finally {
      repository.dispose();
    }
  });

  it("leaves no checkpoint of a session without a request, and keeps at most ten automatic ones", async () => {
    const before = await checkpoints();
    expect(await hook("session-end", { session_id: "empty", transcript_path: join(folder, "none.jsonl") })).toMatchObject({
      code: 0,
      stderr: "",
    });
    expect(await checkpoints()).toEqual(before);
    for (let session = 0; session < 11; session++) {
      writeFileSync(transcript, lines(user(`Request ${session}`)));
      await hook("session-end", { session_id: `many-${session}` });
    }
    const listed = JSON.parse((await cairn(["checkpoint", "list", "--limit", "100", "--json"], { env })).stdout).checkpoints;
    expect(listed.filter(({ tags }: { tags: string[] }) => tags.includes("auto"))).toHaveLength(10);
    expect(listed.some(({ summary }: { summary: string }) => summary === "Parser: error recovery next")).toBe(true);
  });

  it.each([
    [
      "Codex",
      { type: "response_item", payload: { type: "message", role: "user", content: [{ type: "input_text", text: "Fix the lexer" }] } },
    ],
    ["Gemini CLI", { type: "user", content: [{ text: "Fix the lexer" }] }],
  ])("reads a transcript of %s", async (client, entry) => {
    writeFileSync(transcript, lines(entry));
    await hook("session-end", { session_id: client });
    expect((await checkpoints())[0]).toMatchObject({ summary: "End of session: Fix the lexer", context: { session_id: client } });
  });

  it.each([
    ["session-end", "not json"],
    ["session-end", "[]"],
    ["session-end", ""],
    ["pre-compact", "x".repeat(1_100_000)],
    ["pre-compact", { transcript_path: undefined }],
    ["no-such-event", {}],
  ] as const)("never fails the agent: %s with %s", async (event, input) => {
    const { code, stdout, stderr } = await hook(event, input);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).toMatch(/^cairn hook: .+\n$/);
  });

  it("sends no part of a secret that the limit of a request would cut", async () => {
    writeFileSync(transcript, lines(user(`${"x ".repeat(390)}${secret}`)));
    await hook("session-end", { session_id: "cut" });
    const { description } = (await checkpoints())[0];
    expect(description).toContain("[redacted:");
    expect(description).not.toContain(secret.slice(0, 12));
  });

  it("does not save a session twice that contains a value of redaction.allow", async () => {
    const config = join(folder, "home", ".cairn", "config.json");
    mkdirSync(join(folder, "home", ".cairn"), { recursive: true });
    writeFileSync(config, JSON.stringify({ redaction: { allow: [secret] } }));
    writeFileSync(transcript, lines(user(`Use ${secret}`)));
    await hook("pre-compact", { session_id: "allowed" });
    await hook("session-end", { session_id: "allowed" });
    writeFileSync(config, "{}");
    const own = (await checkpoints()).filter(({ context }: { context: Record<string, string> }) => context.session_id === "allowed");
    expect(own).toMatchObject([{ tags: ["auto", "pre-compact"], summary: `Before compaction: Use ${secret}` }]);
  });

  it("exits with 0 also for an invalid configuration", async () => {
    mkdirSync(join(folder, "home", ".cairn"), { recursive: true });
    writeFileSync(join(folder, "home", ".cairn", "config.json"), "{ broken");
    const { code, stderr } = await hook("session-start", {});
    writeFileSync(join(folder, "home", ".cairn", "config.json"), "{}");
    expect([code, stderr]).toEqual([0, expect.stringMatching(/not valid JSON/)]);
  });

  it("reads the end of a transcript of any size", async () => {
    const filler = lines(agent({ type: "text", text: "y".repeat(100_000) })).repeat(120);
    writeFileSync(transcript, filler + lines(user("The very last thing")));
    await hook("session-end", { session_id: "s2", reason: "other" });
    expect((await checkpoints())[0]).toMatchObject({ summary: "End of session: The very last thing" });
  });
});

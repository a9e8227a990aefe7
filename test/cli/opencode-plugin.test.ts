import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { opencodePlugin } from "../../src/cli/init/opencode-plugin.ts";
import { stage } from "./stage.ts";

const { cairn, project, folder, clear } = stage();
const env = { CAIRN_EMBEDDER_KIND: "none" };
const file = join(project, ".opencode/plugin/cairn.js");
afterAll(clear);

/** Answers as the client of opencode does: the messages of a session with their parts. */
const client = {
  session: {
    messages: async ({ path: { id } }: { path: { id: string } }) => ({
      data: [
        { info: { role: "user" }, parts: [{ type: "text", text: `Write the lexer of ${id}` }] },
        {
          info: { role: "assistant" },
          parts: [
            { type: "tool", tool: "write", state: { input: { filePath: join(project, "src/lexer.ts") } } },
            { type: "text", text: "The lexer is written." },
          ],
        },
        { info: { role: "assistant", summary: true }, parts: [{ type: "text", text: "We wrote a lexer." }] },
      ],
    }),
  },
};

/** A program that records its event and its input, and answers `session-start` as `cairn hook` does. */
const RECORDER = `
import { appendFileSync } from "node:fs";
let input = "";
for await (const chunk of process.stdin) input += chunk;
const [record, , event] = process.argv.slice(2);
appendFileSync(record, JSON.stringify({ event, input: JSON.parse(input) }) + "\\n");
if (event === "session-start") console.log(JSON.stringify({ hookSpecificOutput: { additionalContext: "Last time: the parser." } }));
`;

interface Hooks {
  event(input: { event: { type: string; properties: object } }): Promise<void>;
  "experimental.session.compacting"(input: { sessionID: string }, output: object): Promise<void>;
  "experimental.chat.system.transform"(input: { sessionID?: string }, output: { system: string[] }): Promise<void>;
}

/** Loads a plugin file as opencode does: as a module whose export is called with the client and the folder. */
async function load(source: string): Promise<Hooks> {
  const copy = join(folder, `plugin-${Math.random()}.mjs`); // Node reads .js as CommonJS here; opencode's runtime does not
  copyFileSync(source, copy);
  const exported = Object.values(await import(pathToFileURL(copy).href));
  expect(exported).toHaveLength(1); // opencode calls every export
  return (exported[0] as (input: object) => Promise<Hooks>)({ client, directory: project });
}

describe("the plugin for opencode", () => {
  const record = join(folder, "record.jsonl");
  const recorded = () =>
    readFileSync(record, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { event: string; input: Record<string, unknown> });
  let hooks: Hooks;

  beforeAll(async () => {
    const recorder = join(folder, "recorder.mjs");
    const source = join(folder, "source.js");
    writeFileSync(recorder, RECORDER);
    writeFileSync(source, opencodePlugin({ command: process.execPath, args: [recorder, record] }));
    hooks = await load(source);
  });

  it("is written where the project has a folder for opencode, loads, and is removed", async () => {
    await cairn(["init", "--hooks", "--launch", "npx"]);
    expect(existsSync(file)).toBe(false);
    mkdirSync(join(project, ".opencode"));
    expect((await cairn(["init", "--hooks", "--launch", "npx"])).stdout).toMatch(/created +.*cairn\.js/);
    expect(readFileSync(file, "utf8")).toContain('["npx","-y","cairn-memory","hook"]');
    expect(await load(file)).toHaveProperty("event");
    expect((await cairn(["init", "--hooks", "--launch", "npx"])).stdout).toMatch(/unchanged +.*cairn\.js/);
    expect((await cairn(["init", "--remove"])).stdout).toMatch(/removed +.*cairn\.js/);
    expect([existsSync(join(project, ".opencode/plugin")), existsSync(join(project, ".opencode"))]).toEqual([false, true]);
  });

  it("leaves a file alone that somebody else wrote", async () => {
    mkdirSync(join(project, ".opencode/plugin"), { recursive: true });
    writeFileSync(file, "export const Other = 1;\n");
    expect((await cairn(["init", "--hooks"])).code).toBe(4);
    expect((await cairn(["init", "--remove"])).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe("export const Other = 1;\n");
  });

  it("adds the offer to the system prompt of every request of a session, and asks for it once", async () => {
    await hooks.event({ event: { type: "session.created", properties: { info: { id: "s1" } } } });
    for (const _ of [1, 2]) {
      const system = ["You are helpful."];
      await hooks["experimental.chat.system.transform"]({ sessionID: "s1" }, { system });
      expect(system).toEqual(["You are helpful.", "Last time: the parser."]);
    }
    expect(recorded()).toEqual([{ event: "session-start", input: { session_id: "s1", cwd: project, source: "startup" } }]);
  });

  it("saves when a session is idle, before and after a compaction, and never for a subagent", async () => {
    await hooks.event({ event: { type: "session.created", properties: { info: { id: "sub", parentID: "s1" } } } });
    await hooks.event({ event: { type: "session.idle", properties: { sessionID: "sub" } } });
    await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } });
    await hooks["experimental.session.compacting"]({ sessionID: "s1" }, { context: [] });
    await hooks.event({ event: { type: "session.compacted", properties: { sessionID: "s1" } } });
    const system: string[] = [];
    await hooks["experimental.chat.system.transform"]({ sessionID: "s1" }, { system });
    const calls = recorded().slice(1);
    expect(calls.map(({ event }) => event)).toEqual(["session-end", "pre-compact", "post-compact", "session-start"]);
    expect(calls.map(({ input }) => input.session_id)).toEqual(["s1", "s1", "s1", "s1"]);
    expect(calls[2]!.input.compact_summary).toBe("We wrote a lexer.");
    expect(calls[3]!.input.source).toBe("compact");
  });

  it("sends input from which cairn hook makes a checkpoint", async () => {
    const { input } = recorded().find(({ event }) => event === "session-end")!;
    expect(await cairn(["hook", "session-end"], { env, stdin: JSON.stringify(input) })).toMatchObject({ code: 0, stderr: "" });
    const { checkpoints } = JSON.parse((await cairn(["checkpoint", "list", "--json"], { env })).stdout);
    expect(checkpoints).toMatchObject([{ summary: "End of session: Write the lexer of s1", tags: ["auto", "session-end"] }]);
    const { stdout } = await cairn(["checkpoint", "get", "latest", "--json"], { env });
    expect(JSON.parse(stdout).description).toMatch(/Files written:\n- src\/lexer\.ts\n\nLast answer:\nThe lexer is written\./);
  });
});

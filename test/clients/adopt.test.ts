import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { processStage } from "../client/processes.ts";
import { CLIENT_VERSIONS, runClaude, runCodex, runGemini } from "./client-programs.ts";
import { mockModel } from "./mock-model.ts";

const PROMPT = "Write a greeting into hello.txt";
const FIRST = "We decided to use a text file instead of a database.";
const LAST = "Done: hello.txt has the greeting.";
const fixtures = resolve(import.meta.dirname, "../fixtures/adopt");

/**
 * With CAIRN_TEST_CLIENTS=1 (`npm run test:clients`) the real programs write the transcripts; CAIRN_TEST_CLIENTS_RECORD=1 stores them as
 * fixtures. Otherwise the test adopts the stored ones.
 */
const real = process.env.CAIRN_TEST_CLIENTS === "1";

const CLIENTS = [
  { tool: "claude-code", run: runClaude, version: CLIENT_VERSIONS["@anthropic-ai/claude-code"], root: ".claude/projects" },
  { tool: "codex", run: runCodex, version: CLIENT_VERSIONS["@openai/codex"], root: ".codex/sessions" },
  { tool: "gemini", run: runGemini, version: CLIENT_VERSIONS["@google/gemini-cli"], root: ".gemini/tmp" },
] as const;

describe.each(CLIENTS)(
  `a transcript that $tool $version wrote${real ? "" : " earlier"}`,
  { timeout: 900_000 },
  ({ tool, run, version, root }) => {
    const s = processStage();
    afterAll(() => s.clear());
    const fixture = join(fixtures, `${tool}-${version}`);

    it("is adopted as a checkpoint of its project, once", async () => {
      const git = (...args: string[]) => expect(spawnSync("git", args, { cwd: s.project }).status).toBe(0);
      git("init", "-q", "-b", "topic");
      git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "first");
      if (real) {
        const model = await mockModel({ first: FIRST, last: LAST, file: { path: join(s.project, "hello.txt"), content: "hello\n" } });
        await run({ home: s.home, cwd: s.project, url: model.url, prompt: PROMPT });
        await model.close();
        expect(readFileSync(join(s.project, "hello.txt"), "utf8")).toBe("hello\n");
        if (process.env.CAIRN_TEST_CLIENTS_RECORD === "1") record(join(s.home, root), fixture);
      } else replay(fixture, join(s.home, root));

      const report = JSON.parse((await s.run("adopt", "--from", tool, "--json")).stdout);
      expect(report).toMatchObject({ sessions: 1, imported: 1, problems: [], projects: [s.project] });
      const { checkpoints } = JSON.parse((await s.run("checkpoint", "list", "--json")).stdout);
      // Gemini CLI records neither its version nor the branch.
      const facts = tool === "gemini" ? {} : { tool_version: version, branch: "topic" };
      expect(checkpoints).toMatchObject([{ summary: PROMPT, tags: ["adopted", tool], context: facts }]);
      expect(checkpoints[0].description).toBe(
        `Goal:\n${PROMPT}\n\nDecisions:\n- ${FIRST}\n\nFiles written:\n- hello.txt\n\nLast state:\n${LAST}`,
      );
      expect(JSON.parse((await s.run("adopt", "--from", tool, "--json")).stdout)).toMatchObject({ imported: 0, unchanged: 1 });
    });

    /** Stores a transcript without the texts of its program, which are long and not needed. */
    function record(from: string, to: string): void {
      for (const [name, text] of transcripts(from)) {
        const lines = name.endsWith(".project_root")
          ? ["@folder@/project"]
          : text
              .trimEnd()
              .split("\n")
              .map((line) => JSON.stringify(shorten(JSON.parse(line.replaceAll(s.folder, "@folder@")))));
        mkdirSync(join(to, name, ".."), { recursive: true });
        writeFileSync(join(to, name), `${lines.join("\n")}\n`);
      }
    }

    function replay(from: string, to: string): void {
      expect(existsSync(from)).toBe(true);
      cpSync(from, to, { recursive: true });
      for (const [name, text] of transcripts(to)) writeFileSync(join(to, name), text.replaceAll("@folder@", s.folder));
    }
  },
);

function transcripts(folder: string): [string, string][] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.jsonl$|\.project_root$/.test(name));
  return names.map((name) => [name, readFileSync(join(folder, name), "utf8")]);
}

/** Shortens long texts and lists, whatever the shape is. */
function shorten(value: unknown): unknown {
  if (typeof value === "string") return value.length > 400 ? `${value.slice(0, 40)}…` : value;
  if (Array.isArray(value)) return value.slice(0, 8).map(shorten);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shorten(one)]));
}

import { mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sampleSource, testRepository } from "../freshness/repository.ts";
import { stage } from "./stage.ts";

const { cairn, folder, clear } = stage();
const env = { CAIRN_EMBEDDER_KIND: "none", CAIRN_FRESHNESS_LIMIT_MS: "60000" };
const repository = testRepository();
const linked = join(realpathSync(folder), "linked");
const edited = sampleSource("A").replaceAll("trim()", "trimEnd()");

interface Listed {
  readonly summary: string;
  readonly anchors: readonly { readonly kind: string; readonly value: string }[];
  readonly freshness: { readonly state: string };
}

describe("commands in a linked working tree", () => {
  const run = async (cwd: string, ...args: readonly string[]) => JSON.parse((await cairn([...args, "--json"], { env, cwd })).stdout);
  const listed = async (cwd: string): Promise<readonly Listed[]> => (await run(cwd, "checkpoint", "list")).checkpoints;

  beforeAll(async () => {
    repository.write("src/a.js", sampleSource("A"));
    repository.commit();
    repository.git("worktree", "add", "-q", "-b", "feature", linked);
    writeFileSync(join(linked, "src/a.js"), edited);
    mkdirSync(join(linked, "deep"));
    for (const tree of [repository.root, linked]) await cairn(["code", "index", "--wait"], { env, cwd: tree });
  });
  afterAll(() => {
    repository.dispose();
    rmSync(linked, { recursive: true, force: true });
    clear();
  });

  it("search the code of that tree", async () => {
    for (const [cwd, text] of [
      [repository.root, "trim()"],
      [join(linked, "deep"), "trimEnd()"],
    ] as const) {
      expect((await run(cwd, "code", "search", "secondA")).results[0].text).toContain(text);
      expect((await run(cwd, "code", "context", "--symbol", "secondA")).contexts[0].text).toContain(text);
      expect((await run(cwd, "code", "usages", "secondA")).definitions).toHaveLength(1);
    }
  });

  it("save records of the repository, and mark them by the code of each tree", async () => {
    await cairn(["save", "secondA() trims the end"], { env, cwd: linked });
    const [there] = await listed(linked);
    expect(there!.anchors.map(({ kind, value }) => `${kind} ${value}`).slice(1)).toEqual(["symbol secondA"]);
    expect(there!.freshness.state).toBe("fresh");
    const [here] = await listed(repository.root);
    expect([here!.summary, here!.freshness.state]).toEqual(["secondA() trims the end", "changed"]);
  });

  it("anchor what a hook saves to that tree", async () => {
    const transcript = join(folder, "session.jsonl");
    const request = { type: "user", gitBranch: "feature", message: { role: "user", content: "Shorten secondA() please" } };
    writeFileSync(transcript, `${JSON.stringify(request)}\n`);
    const stdin = JSON.stringify({ session_id: "s", transcript_path: transcript, cwd: linked });
    expect(await cairn(["hook", "session-end"], { env, cwd: folder, stdin })).toMatchObject({ code: 0, stderr: "" });
    const saved = (await listed(linked)).find(({ summary }) => summary.includes("Shorten"));
    expect(saved?.anchors.map(({ kind, value }) => `${kind} ${value}`)).toContain("symbol secondA");
    expect(saved?.freshness.state).toBe("fresh");
  });
});

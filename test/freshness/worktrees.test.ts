import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { decorateOperations } from "../../src/client/decorate-operations.ts";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { type Caller, invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations as served } from "../../src/operations/list.ts";
import { testEmbedder } from "../support/embedders.ts";
import { sampleSource, type TestRepository, testRepository } from "./repository.ts";

const operations = decorateOperations(served, { freshness: { limitMs: 60_000 } });

describe("records in a linked working tree", () => {
  let repository: TestRepository;
  let linked: string;
  let cairn: Cairn;
  const call = async (name: string, input: Record<string, unknown>, caller: Caller = LOCAL_CALLER) =>
    invoke(cairn, operations.find((one) => one.name === name)!, input, { caller });
  const index = async (tree: string) =>
    cairn.code.indexBatch({ projectPath: tree, files: [{ path: "src/a.js", content: readFileSync(join(tree, "src/a.js"), "utf8") }] });
  const stateOf = async (tree: string, id: string) => {
    const { freshness } = await call("checkpoint_get", { project_path: tree, id });
    return (freshness as { state: string }).state;
  };

  beforeEach(async () => {
    repository = testRepository();
    repository.write("src/a.js", sampleSource("A"));
    repository.commit();
    linked = join(realpathSync(mkdtempSync(join(tmpdir(), "cairn-linked-"))), "tree");
    repository.git("worktree", "add", "-q", "-b", "feature", linked);
    writeFileSync(join(linked, "src/a.js"), sampleSource("A").replaceAll("trim()", "trimEnd()"));
    cairn = await open({ storage: "memory", embedder: [testEmbedder()], freshness: { limitMs: 60_000 } });
    await index(repository.root);
    await index(linked);
  });
  afterEach(async () => {
    await cairn.close();
    repository.dispose();
    rmSync(join(linked, ".."), { recursive: true, force: true });
  });

  it("belong to the repository, and their symbols to the code of the working tree", async () => {
    const id = (await call("checkpoint_save", { project_path: linked, summary: "secondA() trims the end" })).id as string;
    const { anchors, project_path } = await call("checkpoint_get", { project_path: linked, id });
    expect(project_path).toBe(repository.root);
    const symbol = (anchors as { kind: string; content?: string }[]).find(({ kind }) => kind === "symbol");
    const [{ content_hash } = {}] = (await call("code_context", { project_path: linked, path: "src/a.js" })).contexts as {
      content_hash?: string;
    }[];
    expect(symbol?.content).toBe(content_hash);
    expect(await stateOf(linked, id)).toBe("fresh");
    expect(await stateOf(repository.root, id)).toBe("changed");
    writeFileSync(join(linked, "src/a.js"), sampleSource("A"));
    expect(await stateOf(linked, id)).toBe("changed");
  });

  it("are compared with the index of the working tree by the service", async () => {
    const { id } = await call("checkpoint_save", { project_path: linked, summary: "secondA() trims the end" });
    const byService = async (codePath?: string) =>
      (await cairn.checkpoints.get({ projectPath: repository.root, id: id as string, ...(codePath && { codePath }) })).freshness;
    expect(await byService(linked)).toMatchObject({ state: "fresh", checked: "index" });
    expect((await byService())?.state).not.toBe("fresh");
    const marks = async (codePath?: string) => {
      const input = { projectPath: repository.root, ...(codePath && { codePath }) };
      const [listed] = (await cairn.checkpoints.list(input)).checkpoints;
      const [hit] = (await cairn.checkpoints.search({ ...input, query: "secondA" })).hits;
      const resumed = await cairn.checkpoints.resume(input);
      return [listed?.freshness?.state, hit?.record.freshness?.state, resumed.checkpoint.freshness?.state];
    };
    expect(await marks(linked)).toEqual(["fresh", "fresh", "fresh"]);
  });

  it("are anchored and reviewed there as knowledge too", async () => {
    await call("knowledge_save", { project_path: linked, id: "k", question: "What does secondA() do?", answer: "It trims the end." });
    const state = async () => {
      const { freshness } = await call("knowledge_get", { project_path: linked, id: "k" });
      return (freshness as { state: string }).state;
    };
    expect(await state()).toBe("fresh");
    writeFileSync(join(linked, "src/a.js"), sampleSource("A"));
    expect(await state()).toBe("changed");
    expect((await call("review_list", { project_path: linked })).total).toBe(1);
    expect((await call("review_list", { project_path: repository.root })).total).toBe(1);
    await index(linked);
    await call("review_resolve", { project_path: linked, collection: "knowledge", id: "k", action: "keep" });
    expect(await state()).toBe("fresh");
  });

  it("use no index that an API key may not read, and are saved all the same", async () => {
    const caller: Caller = { access: "write", projects: [repository.root] };
    const save = served.find(({ name }) => name === "checkpoint_save")!;
    const input = { project_path: repository.root, code_path: linked, summary: "secondA() trims the end" };
    expect((await invoke(cairn, save, input, { caller: LOCAL_CALLER })).anchors).toMatchObject([{ kind: "symbol", path: "src/a.js" }]);
    expect((await invoke(cairn, save, input, { caller })).anchors).toEqual([]);
    const anchors = served.find(({ name }) => name === "code_anchors")!;
    const asked = { project_path: linked, records: [["secondA"]] };
    await expect(invoke(cairn, anchors, asked, { caller })).rejects.toMatchObject({ code: "forbidden" });
  });
});

describe("a record that is saved while the index is older than the working tree", () => {
  let repository: TestRepository;
  let cairn: Cairn;
  const call = async (name: string, input: Record<string, unknown>) =>
    invoke(cairn, operations.find((one) => one.name === name)!, { project_path: repository.root, ...input }, { caller: LOCAL_CALLER });
  const saved = async (summary: string, more: Record<string, unknown> = {}) => {
    const { id } = await call("checkpoint_save", { summary, ...more });
    const { anchors, freshness } = await call("checkpoint_get", { id });
    const values = (anchors as { kind: string; value: string }[]).map(({ kind, value }) => `${kind} ${value}`).slice(1);
    return { id, values, state: (freshness as { state: string }).state };
  };

  beforeEach(async () => {
    repository = testRepository();
    repository.write("src/a.js", sampleSource("A"));
    repository.commit();
    cairn = await open({ storage: "memory", embedder: [testEmbedder()], freshness: { limitMs: 60_000 } });
    await cairn.code.indexBatch({ projectPath: repository.root, files: [{ path: "src/a.js", content: sampleSource("A") }] });
  });
  afterEach(async () => {
    await cairn.close();
    repository.dispose();
  });

  it("is anchored to the file if the definition was edited, and is fresh", async () => {
    repository.write("src/a.js", sampleSource("A").replaceAll("trim()", "trimEnd()"));
    const { id, values, state } = await saved("secondA() trims the end now");
    expect({ values, state }).toEqual({ values: ["file src/a.js"], state: "fresh" });
    repository.write("src/a.js", sampleSource("A"));
    const { freshness } = await call("checkpoint_get", { id });
    expect(freshness).toMatchObject({ state: "changed" });
  });

  it("is anchored to the symbol if another part of its file was edited", async () => {
    repository.write("src/a.js", `// a comment\n${sampleSource("A").replace("firstA", "zerothA")}`);
    expect(await saved("secondA() trims")).toMatchObject({ values: ["symbol secondA"], state: "fresh" });
  });

  it("has no anchor of a symbol whose file is deleted, unless it was given", async () => {
    repository.remove("src/a.js");
    expect(await saved("secondA() was removed")).toMatchObject({ values: [], state: "unknown" });
    expect((await saved("It was removed", { anchors: ["secondA"] })).values).toEqual(["symbol secondA"]);
  });

  it("keeps the anchors that exist after many names that do not", async () => {
    const words = Array.from({ length: 60 }, (_, index) => `missingName${index}()`).join(" ");
    expect((await saved("Names", { description: `${words} secondA()` })).values).toEqual(["symbol secondA"]);
  });

  it("is saved although a path in its text is too long for an anchor", async () => {
    const folder = Array.from({ length: 5 }, (_, index) => String(index).repeat(118)).join("/");
    repository.write(`${folder}/a.js`, "1");
    expect(await saved(`See src/a.js`, { description: `and ${folder}/a.js` })).toMatchObject({ values: ["file src/a.js"], state: "fresh" });
  });
});

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { decorateOperations } from "../../src/client/decorate-operations.ts";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations as served } from "../../src/operations/list.ts";
import { testEmbedder } from "../support/embedders.ts";
import { sampleSource, type TestRepository, testRepository } from "./repository.ts";

const operations = decorateOperations(served, { freshness: { limitMs: 30_000 } });

describe("records compared with the working tree", () => {
  let repository: TestRepository;
  let cairn: Cairn;
  const call = async (name: string, input: Record<string, unknown>) =>
    invoke(cairn, operations.find((one) => one.name === name)!, { project_path: repository.root, ...input }, { caller: LOCAL_CALLER });
  const save = async (summary: string, more: Record<string, unknown> = {}) =>
    (await call("checkpoint_save", { summary, ...more })).id as string;
  const mark = async (id: string) => {
    const { freshness } = await call("checkpoint_get", { id });
    const { state, reason } = freshness as { state: string; reason?: string };
    return reason === undefined ? state : `${state}: ${reason}`;
  };
  const index = (paths: readonly string[], contents: Record<string, string>) =>
    cairn.code.indexBatch({ projectPath: repository.root, files: paths.map((path) => ({ path, content: contents[path]! })) });

  beforeEach(async () => {
    repository = testRepository();
    repository.write("src/a.js", sampleSource("A"));
    repository.write("src/b.js", sampleSource("B"));
    repository.commit();
    cairn = await open({ storage: "memory", embedder: [testEmbedder()], freshness: { limitMs: 60_000 } });
  });
  afterEach(async () => {
    await cairn.close();
    repository.dispose();
  });

  it("anchors a checkpoint to files, the commit and the branch", async () => {
    const head = repository.git("rev-parse", "HEAD");
    const id = await save(`Rewrote src/a.js since ${head.slice(0, 8)}`, { context: { branch: "main" } });
    const { anchors } = await call("checkpoint_get", { id });
    expect(anchors).toMatchObject([
      { kind: "head", value: head, branch: "main" },
      { kind: "branch", value: "main" },
      { kind: "file", value: "src/a.js" },
      { kind: "commit", value: head },
    ]);
  });

  it("says fresh, then changed since the commit, then fresh after the file is restored", async () => {
    const commit = repository.git("rev-parse", "HEAD").slice(0, 7);
    const id = await save("Rewrote src/a.js");
    expect(await mark(id)).toBe("fresh");
    repository.write("src/a.js", "// empty\n");
    expect(await mark(id)).toBe(`changed: src/a.js since ${commit}`);
    repository.git("checkout", "-q", "src/a.js");
    expect(await mark(id)).toBe("fresh");
  });

  it("says gone for a deleted file and renamed for a renamed one, also with changes", async () => {
    const id = await save("Concerns src/a.js");
    const other = await save("Concerns src/b.js");
    repository.git("mv", "src/a.js", "src/c.js");
    repository.write("src/c.js", sampleSource("A").replace("trim()", "trimEnd()"));
    repository.remove("src/b.js");
    repository.commit();
    expect(await mark(id)).toBe("renamed: src/a.js → src/c.js");
    expect(await mark(other)).toMatch(/^gone: src\/b\.js since /);
  });

  it("compares the text of a symbol's definition, and not that of its file", async () => {
    const source = sampleSource("A");
    await index(["src/a.js"], { "src/a.js": source });
    const id = await save("The function secondA() trims", {});
    expect(await mark(id)).toBe("fresh");
    repository.write("src/a.js", source.replace("firstA", "zerothA"));
    expect(await mark(id)).toBe("fresh");
    repository.write("src/a.js", source.replaceAll("trim()", "trimStart()"));
    expect(await mark(id)).toMatch(/^changed: secondA since /);
    repository.write("src/a.js", source.replaceAll("secondA", "other"));
    expect(await mark(id)).toMatch(/^gone: secondA since /);
  });

  it("says other_branch until the branch is merged", async () => {
    repository.git("checkout", "-q", "-b", "feature");
    repository.write("src/new.js", sampleSource("N"));
    repository.commit();
    const id = await save("Added src/new.js");
    repository.git("checkout", "-q", "main");
    expect(await mark(id)).toBe("other_branch: saved on feature, not merged");
    repository.git("merge", "-q", "--no-ff", "feature", "-m", "merge");
    expect(await mark(id)).toBe("fresh");
  });

  it("says unknown for a branch that is gone, and for one that was squashed into this branch", async () => {
    const ids: Record<string, string> = {};
    for (const branch of ["gone", "squashed"]) {
      repository.git("checkout", "-q", "-b", branch, "main");
      repository.write(`src/${branch}.js`, sampleSource(branch));
      repository.commit();
      repository.write(`src/${branch}.js`, `${sampleSource(branch)}// more\n`);
      repository.commit();
      ids[branch] = await save(`Added src/${branch}.js`);
      repository.git("checkout", "-q", "main");
    }
    repository.git("branch", "-q", "-D", "gone");
    repository.git("merge", "-q", "--squash", "squashed");
    repository.commit("squash");
    expect(await mark(ids.gone!)).toBe("unknown: saved on gone, which is gone");
    expect(await mark(ids.squashed!)).toBe("unknown: saved on squashed, whose changes are merged");
  });

  it("ranks changed records below the others and can return only fresh ones", async () => {
    await save("The parser of src/a.js reads tokens", { description: "parser tokens" });
    await save("The parser of src/b.js reads tokens", { description: "parser tokens" });
    repository.write("src/b.js", "// changed\n");
    const states = async (more: Record<string, unknown>) => {
      const { results } = await call("checkpoint_search", { query: "parser of src/b.js tokens", ...more });
      return (results as { checkpoint: { freshness: { state: string } } }[]).map(({ checkpoint }) => checkpoint.freshness.state);
    };
    expect(await states({})).toEqual(["fresh", "changed"]);
    expect(await states({ fresh_only: true })).toEqual(["fresh"]);
  });

  it("anchors an updated record to the tree as it is now", async () => {
    const id = await save("Concerns src/a.js");
    repository.write("src/a.js", "// changed\n");
    expect(await mark(id)).toMatch(/^changed/);
    await call("checkpoint_update", { id, description: "Checked again." });
    expect(await mark(id)).toBe("fresh");
  });

  it("says unknown within a time limit of nothing, and never fails", async () => {
    const hurried = decorateOperations(served, { freshness: { limitMs: 0 } });
    const id = await save("Concerns src/a.js");
    repository.git("mv", "src/a.js", "src/c.js");
    repository.commit();
    const get = hurried.find(({ name }) => name === "checkpoint_get")!;
    const { freshness } = await invoke(cairn, get, { project_path: repository.root, id }, { caller: LOCAL_CALLER });
    expect(freshness).toMatchObject({ state: "unknown" });
  });
});

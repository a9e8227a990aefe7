import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { decorateOperations } from "../../src/client/decorate-operations.ts";
import { anchorImport } from "../../src/client/freshness/anchor-import.ts";
import type { Anchor } from "../../src/model/anchor.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations as served } from "../../src/operations/list.ts";
import { testEmbedder } from "../support/embedders.ts";
import { sampleSource, type TestRepository, testRepository } from "./repository.ts";

const clientSide = decorateOperations(served, { freshness: { limitMs: 60_000 } });

describe("records of an imported file", () => {
  let repository: TestRepository;
  let cairn: Cairn;
  const callWith = async (operations: typeof served, name: string, input: Record<string, unknown>) =>
    invoke(cairn, operations.find((one) => one.name === name)!, { project_path: repository.root, ...input }, { caller: LOCAL_CALLER });
  const call = (name: string, input: Record<string, unknown>) => callWith(clientSide, name, input);
  const file = (answer: string) => JSON.stringify([{ id: "trim", question: "How does it trim?", answer }]);
  const anchorsOf = async (id: string) => (await call("knowledge_get", { id })).anchors as readonly Anchor[];
  const stateOf = async (id: string) => ((await call("knowledge_get", { id })).freshness as { state: string }).state;

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

  it("are anchored to the working tree, as a save does, and marked when it changes", async () => {
    const csv = "id,question,answer\ntrim,How does it trim?,secondA() in src/a.js\nplain,Which day?,Tuesday\n";
    expect(await call("knowledge_import", { content: csv, source: "faq.csv" })).toMatchObject({ added: 2, ignored_fields: [] });
    expect((await anchorsOf("trim")).map(({ kind, value }) => `${kind} ${value}`)).toEqual([
      `head ${repository.git("rev-parse", "HEAD")}`,
      "symbol secondA",
      "file src/a.js",
    ]);
    expect((await anchorsOf("plain")).map(({ kind }) => kind)).toEqual(["head"]);
    expect(await stateOf("trim")).toBe("fresh");
    repository.write("src/a.js", sampleSource("A").replaceAll("trim()", "trimEnd()"));
    expect(await stateOf("trim")).toBe("changed");
    expect((await call("review_list", {})).total).toBe(1);
  });

  it("keep their anchors until their text changes, or the import is forced", async () => {
    await call("knowledge_import", { content: file("See src/a.js"), source: "faq" });
    repository.write("src/a.js", sampleSource("B"));
    expect(await call("knowledge_import", { content: file("See src/a.js"), source: "faq" })).toMatchObject({ unchanged: 1 });
    expect(await stateOf("trim")).toBe("changed");
    await call("knowledge_import", { content: file("See src/a.js"), source: "faq", force: true });
    expect(await stateOf("trim")).toBe("fresh");
    repository.write("src/a.js", sampleSource("C"));
    expect(await stateOf("trim")).toBe("changed");
    await call("knowledge_import", { content: file("See src/a.js again"), source: "faq" });
    expect(await stateOf("trim")).toBe("fresh");
  });

  it("are anchored to the code index by a server", async () => {
    await callWith(served, "knowledge_import", { content: file("See src/a.js and secondA()"), source: "faq" });
    expect(await anchorsOf("trim")).toMatchObject([
      { kind: "file", value: "src/a.js", generation: 1 },
      { kind: "symbol", value: "secondA", path: "src/a.js" },
    ]);
    await callWith(served, "knowledge_import", { content: file("See src/a.js and secondA()"), source: "other", scope: "shared" });
    expect((await call("knowledge_get", { id: "trim", scope: "shared" })).anchors).toEqual([]);
  });

  it("take the anchors that are given by id", async () => {
    const anchors = { trim: ["src/a.js#firstA"], unknown: ["src/a.js"] };
    for (const operations of [served, clientSide]) {
      await callWith(operations, "knowledge_import", { content: file("See src/b.js"), source: "faq", anchors, force: true });
      const found = (await anchorsOf("trim")).filter(({ kind }) => kind !== "head");
      expect(found).toMatchObject([{ kind: "symbol", value: "firstA", path: "src/a.js" }]);
    }
  });

  it("report an invalid file as before, and may have any id", async () => {
    const broken = call("knowledge_import", { content: '[{"id":"a"}]', source: "faq" });
    await expect(broken).rejects.toMatchObject({ code: "invalid_input", message: expect.stringContaining("question") });
    const odd = JSON.stringify([{ id: "constructor", question: "src/a.js?", answer: "yes" }]);
    expect(await call("knowledge_import", { content: odd, source: "odd" })).toMatchObject({ added: 1 });
    expect((await anchorsOf("constructor")).map(({ kind }) => kind)).toEqual(["head", "file"]);
  });
});

it("sends no more anchors than a request may have values", async () => {
  const records = Array.from({ length: 3_000 }, (_, index) => ({ id: `r${index}`, question: "Where?", answer: "There." }));
  const anchor = async (slice: readonly unknown[]) => slice.map(() => Array.from({ length: 30 }, (_, index) => `src/${index}.ts`));
  const anchors = (await anchorImport(anchor, { content: JSON.stringify(records), kind: "faq" }, new AbortController().signal))!;
  const values = Object.values(anchors).reduce((sum, names) => sum + names.length + 1, 0);
  expect(values).toBeGreaterThan(10_000);
  expect(values).toBeLessThan(LIMITS.jsonValues);
});

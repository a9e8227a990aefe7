import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { deepener } from "../../src/code/deepener.ts";
import { type Cairn, open } from "../../src/index.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { testEmbedder } from "../support/embedders.ts";

const project = "/home/me/app";
const files = Array.from({ length: 6 }, (_, index) => ({
  path: `src/part${index}.ts`,
  content: `/** Part ${index} waits for the network and tries again. */\nexport function part${index}() {\n  return ${index};\n}\n`,
}));

describe("a better model for code", () => {
  let dataDir: string;
  let cairn: Cairn | undefined;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-deepen-"));
  });
  afterEach(async () => {
    await cairn?.close();
    rmSync(dataDir, { recursive: true });
  });
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into by tests, which fail where a field is missing
  const call = (name: string, input: object): Promise<any> =>
    invoke(cairn!, operations.find((one) => one.name === name)!, { project_path: project, ...input }, { caller: LOCAL_CALLER });

  it("comes after the quick one: the first index takes the static model, deepening the best there is", async () => {
    cairn = await open({ dataDir });
    await cairn.code.indexBatch({ projectId: project, files });
    const { chunks, embeddings } = await call("code_stats", {});
    expect(embeddings).toMatchObject([{ model: expect.stringContaining("static"), is_current: true, vectors: chunks }]);
    const moved = await call("code_deepen", {});
    expect(moved).toMatchObject({ model: "all-MiniLM-L6-v2+cairn-static", embedded: chunks, switched: true });
    const after = await call("code_search", { query: "network retry", mode: "semantic" });
    expect(after.model).toBe(moved.model);
    expect(after.results.length).toBeGreaterThan(0);
    expect(await call("code_deepen", {})).toMatchObject({ model: moved.model, embedded: 0, switched: true }); // nothing left to do
  });

  it("shows how far it is while searches go on with the quick one, and takes what is indexed meanwhile", async () => {
    const quick = testEmbedder({ model: "quick" });
    const better = testEmbedder({ model: "better", dimension: 128 });
    cairn = await open({ dataDir, embedder: [quick, better] });
    await cairn.code.indexBatch({ projectId: project, files });
    better.mood = "hanging";
    expect(await call("code_deepen", { model: "better", wait: false })).toMatchObject({ model: "better", switched: false });
    const half = await call("code_stats", {});
    expect(half.embeddings).toMatchObject([
      { model: "quick", is_current: true, vectors: half.chunks },
      { model: "better", is_current: false, vectors: 0 },
    ]);
    expect((await call("code_search", { query: "part3" })).model).toBe("quick");
    await cairn.close(); // in the middle of it

    better.mood = "well";
    cairn = await open({ dataDir, embedder: [quick, better] });
    await cairn.code.indexBatch({ projectId: project, files: [{ path: "src/late.ts", content: "export const late = 1;\n" }] });
    expect(await call("code_deepen", { model: "better" })).toMatchObject({ switched: true });
    const { chunks, embeddings } = await call("code_stats", {});
    expect(embeddings).toContainEqual(expect.objectContaining({ model: "better", is_current: true, vectors: chunks }));
    expect((await call("code_search", { query: "late" })).model).toBe("better");
  });

  it("refuses a model that is not there, a project that has no code, and says when embedding is switched off", async () => {
    cairn = await open({ dataDir, embedder: { kind: "none" } });
    await expect(call("code_deepen", {})).rejects.toMatchObject({ code: "not_found" });
    await cairn.code.indexBatch({ projectId: project, files });
    await expect(call("code_deepen", {})).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("switched off") });
    await expect(call("code_deepen", { model: "nonsense" })).rejects.toMatchObject({ code: "invalid_input" });
  });
});

describe("deepening by itself", () => {
  it("waits until the index is quiet, comes once, and again after a failure", async () => {
    let last: string | undefined;
    let busy = true;
    const deepened: string[] = [];
    let fails = true;
    const { consider, close } = deepener({
      lastIndexedAt: async () => (busy ? new Date().toISOString() : last),
      async deepen(projectId) {
        deepened.push(projectId);
        if (fails) throw new Error("the model is away");
      },
      quietMs: 30,
    });
    consider("/a");
    await sleep(150);
    expect(deepened).toEqual([]); // it is being indexed all the time
    last = new Date().toISOString();
    busy = false;
    while (deepened.length < 1) await sleep(5);
    fails = false;
    await sleep(10);
    consider("/a");
    consider("/a");
    while (deepened.length < 2) await sleep(5);
    consider("/a");
    await sleep(80);
    expect(deepened).toEqual(["/a", "/a"]);
    last = undefined;
    consider("/never-indexed");
    await sleep(80);
    expect(deepened).toEqual(["/a", "/a"]);
    consider("/b");
    close();
  });

  it("is part of the library, for those who ask for it", async () => {
    const cairn = await open({ storage: "memory", embedder: [testEmbedder()], code: { deepen: true } });
    await cairn.code.indexBatch({ projectId: project, files });
    await cairn.code.finish({ projectId: project, manifest: files.map(({ path }) => path) });
    expect((await cairn.code.search({ projectId: project, query: "part1" })).hits.length).toBeGreaterThan(0);
    await cairn.close(); // does not wait for the minute
  });
});

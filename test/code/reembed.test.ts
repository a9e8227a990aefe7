import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { testEmbedder } from "../support/embedders.ts";

const project = "/home/me/app";
const files = Array.from({ length: 6 }, (_, index) => ({
  path: `src/part${index}.ts`,
  content: `/** Part ${index} waits for the network and tries again. */\nexport function part${index}() {\n  return ${index};\n}\n`,
}));

describe("code_reembed", () => {
  let dataDir: string;
  let cairn: Cairn | undefined;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-reembed-"));
  });
  afterEach(async () => {
    await cairn?.close();
    rmSync(dataDir, { recursive: true });
  });
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into by tests, which fail where a field is missing
  const call = (name: string, input: object): Promise<any> =>
    invoke(cairn!, operations.find((one) => one.name === name)!, { project_path: project, ...input }, { caller: LOCAL_CALLER });

  it("switches from the static model of the first index to the best available model", async () => {
    cairn = await open({ dataDir });
    await cairn.code.indexBatch({ projectPath: project, files });
    const { chunks, embeddings } = await call("code_stats", {});
    expect(embeddings).toMatchObject([{ model: expect.stringContaining("static"), is_current: true, vectors: chunks }]);
    const switched = await call("code_reembed", {});
    expect(switched).toMatchObject({ model: "all-MiniLM-L6-v2+cairn-static", embedded: chunks, switched: true });
    const after = await call("code_search", { query: "network retry", mode: "semantic" });
    expect(after.model).toBe(switched.model);
    expect(after.results.length).toBeGreaterThan(0);
    expect(await call("code_reembed", {})).toMatchObject({ model: switched.model, embedded: 0, switched: true }); // nothing left to do
  });

  it("reports progress while searches use the previous model, and embeds files that are indexed meanwhile", async () => {
    const quick = testEmbedder({ model: "quick" });
    const better = testEmbedder({ model: "better", dimension: 128 });
    cairn = await open({ dataDir, embedder: [quick, better] });
    await cairn.code.indexBatch({ projectPath: project, files });
    better.mood = "hanging";
    expect(await call("code_reembed", { model: "better", wait: false })).toMatchObject({ model: "better", switched: false });
    const half = await call("code_stats", {});
    expect(half.embeddings).toMatchObject([
      { model: "quick", is_current: true, vectors: half.chunks },
      { model: "better", is_current: false, vectors: 0 },
    ]);
    expect((await call("code_search", { query: "part3" })).model).toBe("quick");
    await cairn.close(); // in the middle of it

    better.mood = "well";
    cairn = await open({ dataDir, embedder: [quick, better] });
    await cairn.code.indexBatch({ projectPath: project, files: [{ path: "src/late.ts", content: "export const late = 1;\n" }] });
    expect(await call("code_reembed", { model: "better" })).toMatchObject({ switched: true });
    const { chunks, embeddings } = await call("code_stats", {});
    expect(embeddings).toContainEqual(expect.objectContaining({ model: "better", is_current: true, vectors: chunks }));
    expect((await call("code_search", { query: "late" })).model).toBe("better");
  });

  it("rejects an unknown model, a project without code, and a configuration without an embedder", async () => {
    cairn = await open({ dataDir, embedder: { kind: "none" } });
    await expect(call("code_reembed", {})).rejects.toMatchObject({ code: "not_found" });
    await cairn.code.indexBatch({ projectPath: project, files });
    await expect(call("code_reembed", {})).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("disabled") });
    await expect(call("code_reembed", { model: "nonsense" })).rejects.toMatchObject({ code: "invalid_input" });
  });
});

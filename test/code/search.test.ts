import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectPath = "/home/me/app";
let cairn: Cairn;

const FILES: Record<string, string> = {
  "src/retry.ts": `import { sleep } from "./sleep";\n\n/** Tries again, waiting longer each time. */\nexport async function retryWithBackoff(work: () => Promise<void>) {\n  for (let delay = 10; ; delay *= 2) {\n    try {\n      return await work();\n    } catch {\n      await sleep(delay);\n    }\n  }\n}\n`,
  "src/sleep.ts": "export function sleep(ms: number) {\n  return new Promise((resolve) => setTimeout(resolve, ms));\n}\n",
  "src/queue.ts": `import { retryWithBackoff } from "./retry";\n\nexport class JobQueue {\n  async run(job: () => Promise<void>) {\n    await retryWithBackoff(job);\n  }\n}\n`,
  "test/retry.test.ts": `import { retryWithBackoff } from "../src/retry";\n\n// retry with backoff, retry with backoff\nit("retries with backoff", async () => {\n  await retryWithBackoff(async () => {});\n});\n`,
  "lib/parse.py": "def parse_config(path):\n    with open(path) as file:\n        return file.read()\n",
};

beforeAll(async () => {
  cairn = await open({ storage: "memory", embedder: [testEmbedder()] });
  const files = Object.entries(FILES).map(([path, content]) => ({ path, content }));
  const result = await cairn.code.indexBatch({ projectPath, files });
  expect(result.files.every(({ status }) => status === "indexed")).toBe(true);
});
afterAll(() => cairn.close());

const paths = async (query: string, more = {}) => (await cairn.code.search({ projectPath, query, ...more })).hits.map(({ path }) => path);

describe("code search", () => {
  it("puts the definition of a symbol first, with file, lines and name", async () => {
    const { hits } = await cairn.code.search({ projectPath, query: "retryWithBackoff" });
    expect(hits[0]).toMatchObject({ path: "src/retry.ts", name: "retryWithBackoff", language: "typescript", score: 1 });
    expect(hits[0]!.found.definition).toBe(true);
    expect(hits[0]!.startLine).toBeLessThanOrEqual(4);
    expect(hits[0]!.endLine).toBe(12);
    expect((await paths("lib.parse_config()"))[0]).toBe("lib/parse.py");
  });

  it("takes a name with its class or file as that one, however it is written", async () => {
    const classes = ["Connection", "JobQueue", "Timer"].map(
      (name) => `export class ${name} {\n  close() {\n    this.open = false;\n  }\n}\n`,
    );
    const files = classes.map((content, index) => ({ path: `src/${["a", "b", "c"][index]}.ts`, content }));
    files.push({ path: "src/pool.ts", content: "export function close() {\n  return 1;\n}\n" });
    const other = await open({ storage: "memory", embedder: [testEmbedder()] });
    await other.code.indexBatch({ projectPath, files });
    const first = async (query: string) => (await other.code.search({ projectPath, query })).hits[0]!;
    for (const query of ["JobQueue.close", "JobQueue::close()", "jobQueue.close", "job_queue->close"]) {
      const hit = await first(query);
      expect([hit.path, hit.found.definition], query).toEqual(["src/b.ts", true]);
    }
    expect((await first("pool.close")).path).toBe("src/pool.ts");
    // Where there is no such owner every definition counts.
    const { hits } = await other.code.search({ projectPath, query: "socket.close" });
    expect(hits.filter(({ found }) => found.definition)).toHaveLength(4);
    await other.close();
  });

  it("answers a question, with tests below the code unless they are asked for", async () => {
    const found = await paths("where is the retry with backoff");
    expect(found[0]).toBe("src/retry.ts");
    expect(found.indexOf("test/retry.test.ts")).toBeGreaterThan(0);
    expect((await paths("test of retry with backoff"))[0]).toBe("test/retry.test.ts");
    expect(await paths("retries with backoff", { glob: "test/**" })).toEqual(["test/retry.test.ts"]);
  });

  it("filters, and searches in keyword and semantic mode", async () => {
    expect(await paths("file path", { languages: ["python"] })).toEqual(["lib/parse.py"]);
    expect(await paths("setTimeout", { mode: "keyword" })).toEqual(["src/sleep.ts"]);
    expect((await paths("setTimeout resolve", { mode: "semantic" }))[0]).toBe("src/sleep.ts");
    expect(await paths("sleep", { changedSince: "2999-01-01T00:00:00.000Z" })).toEqual([]);
    expect(await paths("JobQueue", { kinds: ["function"] })).not.toContain("src/queue.ts");
  });

  it("gives real lines around a hit, and keeps to a budget of tokens", async () => {
    const { hits } = await cairn.code.search({ projectPath, query: "retryWithBackoff", contextLines: 2, topK: 1 });
    expect(hits).toHaveLength(1);
    const lines = FILES["src/retry.ts"]!.split("\n");
    const { textStartLine, text } = hits[0]!;
    expect(text.split("\n")[0]).toBe(lines[textStartLine - 1]);
    const small = await cairn.code.search({ projectPath, query: "retry with backoff", maxTokens: 1 });
    expect(small.hits).toHaveLength(1);
    expect(small.omitted).toBeGreaterThan(0);
  });

  it("knows nothing of a project that was never indexed", async () => {
    expect(await cairn.code.search({ projectPath: "/other", query: "x" })).toEqual({ hits: [], match: "none", degraded: [], omitted: 0 });
    expect((await cairn.code.stats({ projectPath: "/other" })).files).toBe(0);
    expect(await cairn.projects()).toEqual([projectPath]);
  });
});

describe("symbols", () => {
  it("gives definitions first and every use, with its line", async () => {
    const { definitions, references, totalReferences } = await cairn.code.usages({ projectPath, symbol: "retryWithBackoff" });
    expect(definitions).toMatchObject([{ path: "src/retry.ts", line: 4, kind: "function" }]);
    expect(definitions[0]!.text).toContain("export async function retryWithBackoff");
    expect(new Set(references.map(({ path }) => path))).toEqual(new Set(["src/queue.ts", "test/retry.test.ts"]));
    expect(references.every(({ text }) => text.includes("retryWithBackoff"))).toBe(true);
    expect(totalReferences).toBe(references.length);
    expect((await cairn.code.usages({ projectPath, symbol: "retryWithBackoff", limit: 1 })).totalReferences).toBe(totalReferences);
  });

  it("gives lines of a file, or a whole definition", async () => {
    const [lines] = await cairn.code.context({ projectPath, path: "src/retry.ts", startLine: 3, endLine: 5 });
    expect(lines).toMatchObject({ startLine: 3, endLine: 5, text: FILES["src/retry.ts"]!.split("\n").slice(2, 5).join("\n") });
    const [symbol] = await cairn.code.context({ projectPath, symbol: "parse_config" });
    expect(symbol!.text).toContain("return file.read()");
    await expect(cairn.code.context({ projectPath, path: "never.ts" })).rejects.toMatchObject({ code: "not_found" });
    await expect(cairn.code.context({ projectPath, path: "src/sleep.ts", startLine: 99 })).rejects.toMatchObject({ code: "not_found" });
  });

  it("finds similar code, without the place asked about", async () => {
    const { hits } = await cairn.code.similar({ projectPath, path: "src/queue.ts", line: 5, topK: 3 });
    expect(hits.map(({ path }) => path)).not.toContain("src/queue.ts");
    expect((await cairn.code.similar({ projectPath, text: "setTimeout resolve ms Promise sleep" })).hits[0]!.path).toBe("src/sleep.ts");
    await expect(cairn.code.similar({ projectPath, path: "src/queue.ts", line: 999 })).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("the index as a whole", () => {
  it("is counted, upgraded to another model, compacted and cleaned", async () => {
    const better = testEmbedder({ model: "better", dimension: 32 });
    const other = await open({ storage: "memory", embedder: [testEmbedder(), better] });
    await other.code.indexBatch({ projectPath, files: Object.entries(FILES).map(([path, content]) => ({ path, content })) });
    await other.embeddings.upgrade({ projectPath, collection: "code", model: "better" });
    const stats = await other.code.stats({ projectPath });
    expect(stats.embeddings.map(({ model, isCurrent }) => [model, isCurrent])).toEqual([
      ["test", false],
      ["better", true],
    ]);
    expect(stats.languages[0]).toMatchObject({ language: "typescript", files: 4 });
    expect((await other.code.search({ projectPath, query: "sleep" })).model).toBe("better");
    expect(await other.code.compact({ projectPath })).toEqual({
      orphans: { rows: 0, terms: 0, vectors: 0 },
      forgottenRenames: 0,
      freedBytes: 0,
    });
    expect(await other.code.clean({ projectPath, glob: "test/**" })).toEqual({ removed: 1 });
    expect(await other.code.clean({ projectPath })).toEqual({ removed: 4 });
    expect((await other.code.stats({ projectPath })).chunks).toBe(0);
    await other.close();
  });
});

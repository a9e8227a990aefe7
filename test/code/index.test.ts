import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { sha256Hex } from "../../src/model/ids.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { type TestEmbedder, testEmbedder } from "../support/embedders.ts";

const projectPath = "/home/me/app";
let cairn: Cairn;
let embedder: TestEmbedder;

beforeEach(async () => {
  embedder = testEmbedder();
  cairn = await open({ storage: "memory", embedder: [embedder] });
});
afterEach(() => cairn.close());

const index = (files: Record<string, string>, renames: { from: string; to: string }[] = []) =>
  cairn.code.indexBatch({ projectPath, files: Object.entries(files).map(([path, content]) => ({ path, content })), renames });
const statuses = async (...given: Parameters<typeof index>) => (await index(...given)).files.map(({ status }) => status);

const RETRY = `export async function retryWithBackoff(work) {
  for (let delay = 10; ; delay *= 2) {
    try {
      return await work();
    } catch (error) {
      await sleep(delay);
    }
  }
}
`;

describe("indexing a batch", () => {
  it("takes files in, drops unchanged ones without embedding, and sees an edit", async () => {
    expect(await statuses({ "src/retry.ts": RETRY, "README.md": "# Retries\n\nThey back off.\n" })).toEqual(["indexed", "indexed"]);
    const calls = embedder.calls;
    expect(await statuses({ "src/retry.ts": RETRY, "README.md": "# Retries\n\nThey back off.\n" })).toEqual(["unchanged", "unchanged"]);
    expect(embedder.calls).toBe(calls);
    expect(await statuses({ "README.md": "# Retries\n\nThey do not.\n" })).toEqual(["indexed"]);
    expect((await cairn.code.search({ projectPath, query: "back off", mode: "keyword" })).hits.map(({ path }) => path)).not.toContain(
      "README.md",
    );
    expect(await cairn.code.hashes({ projectPath, paths: ["src/retry.ts", "never.ts"] })).toEqual({ "src/retry.ts": sha256Hex(RETRY) });
  });

  it("reports each file that cannot be indexed, keeps its older chunks, and indexes the others", async () => {
    await index({ "a.ts": RETRY });
    const { files } = await cairn.code.indexBatch({
      projectPath,
      files: [
        { path: "a.ts", content: "const other = 1;\n", hash: sha256Hex("something else") },
        { path: "../outside.ts", content: "x" },
        { path: "/etc/passwd", content: "x" },
        { path: "a\\b.ts", content: "x" },
        { path: "", content: "x" },
        { path: "nul.ts", content: "a\u0000b" },
        { path: "half.ts", content: "\ud800" },
        { path: "big.txt", content: "x".repeat(LIMITS.codeFileBytes + 1) },
        { path: "good.ts", content: RETRY, hash: sha256Hex(RETRY).toUpperCase() },
      ],
    });
    expect(files.map(({ status }) => status)).toEqual([...Array.from({ length: 8 }, () => "failed"), "indexed"]);
    expect(files.every(({ status, reason }) => status === "indexed" || reason !== undefined)).toBe(true);
    expect((await cairn.code.context({ projectPath, path: "a.ts" }))[0]!.text).toBe(RETRY.trimEnd());
    expect((await cairn.code.stats({ projectPath })).files).toBe(2);
  });

  it("refuses a batch that cannot be meant so", async () => {
    const file = { path: "a.ts", content: "" };
    const wrong = [
      { files: [file, file] },
      { files: [file], renames: [{ from: "b.ts", to: "c.ts" }] },
      { files: [file, { ...file, path: "b.ts" }], renames: [{ from: "b.ts", to: "a.ts" }] },
      { files: Array.from({ length: LIMITS.codeBatchFiles + 1 }, (_, number) => ({ path: `${number}.ts`, content: "" })) },
      { files: ["a.txt", "b.txt", "c.txt"].map((path) => ({ path, content: "x".repeat(900_000) })) },
    ];
    for (const batch of wrong)
      await expect(cairn.code.indexBatch({ projectPath, ...batch })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(cairn.code.finish({ projectPath, manifest: [] })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(cairn.code.indexBatch({ projectPath: "shared", files: [file] })).rejects.toMatchObject({ code: "invalid_input" });
  });

  it("renames a folder of 500 files without one embedding call, named by the client or found by the manifest", async () => {
    const tree = (folder: string) =>
      Object.fromEntries(Array.from({ length: 500 }, (_, number) => [`${folder}/part${number}.txt`, `The text of part ${number}.\n`]));
    await index(tree("old"));
    const calls = embedder.calls;
    const renames = Object.keys(tree("old")).map((from) => ({ from, to: from.replace("old/", "new/") }));
    expect(new Set(await statuses(tree("new"), renames))).toEqual(new Set(["renamed"]));
    expect((await cairn.code.stats({ projectPath })).renames).toBe(500);

    await index(tree("newest"));
    const { removed, renamed } = await cairn.code.finish({ projectPath, manifest: Object.keys(tree("newest")) });
    expect(removed).toEqual([]);
    expect(renamed).toHaveLength(500);
    expect(renamed[0]).toMatchObject({ oldPath: "new/part0.txt", newPath: "newest/part0.txt" });
    expect(embedder.calls).toBe(calls);

    const stats = await cairn.code.stats({ projectPath });
    expect(stats).toMatchObject({ files: 500, chunks: 500, renames: 1_000 });
    expect(stats.embeddings[0]!.vectors).toBe(500);
    const { hits } = await cairn.code.search({ projectPath, query: "The text of part 77" });
    expect(hits[0]!.path).toBe("newest/part77.txt");
  });

  it("embeds only what an edit changed, also in a file that was renamed at once", async () => {
    const part = (name: string) => `${name} ${"and so on and on ".repeat(100)}\n\n`;
    await index({ "a.txt": part("one") + part("two") + part("three") });
    const before = embedder.calls;
    expect(before).toBeGreaterThan(2);
    const { embeddedTexts } = await index({ "a.txt": part("one") + part("two") + part("THREE") });
    expect(embeddedTexts).toBe(1);
    const renamed = await index({ "b.txt": part("one") + part("2") + part("THREE") }, [{ from: "a.txt", to: "b.txt" }]);
    expect(renamed).toMatchObject({ embeddedTexts: 1, files: [{ path: "b.txt", status: "indexed" }] });
    expect(embedder.calls).toBe(before + 2);
    expect(await cairn.code.hashes({ projectPath, paths: ["a.txt"] })).toEqual({});
    expect((await cairn.code.stats({ projectPath })).renames).toBe(1);
  });

  it("takes files in while the embedding model is down, and finds them by keyword search", async () => {
    embedder.mood = "down";
    const result = await index({ "src/retry.ts": RETRY });
    expect(result.files[0]!.status).toBe("indexed");
    expect(result.notEmbedded).toContain("down");
    const { hits, degraded } = await cairn.code.search({ projectPath, query: "retry backoff" });
    expect(hits[0]!.path).toBe("src/retry.ts");
    expect(degraded).toHaveLength(1);
    await expect(cairn.code.search({ projectPath, query: "retry", mode: "semantic" })).rejects.toMatchObject({ code: "unavailable" });
    embedder.mood = "well";
    expect(await cairn.embeddings.verify({ projectPath, collection: "code" })).toMatchObject({ missing: 0 });
    expect((await cairn.code.search({ projectPath, query: "retry", mode: "semantic" })).hits).toHaveLength(1);
  });

  it("takes secrets out and keeps the numbers of the lines", async () => {
    const key = `-----BEGIN RSA PRIVATE KEY-----\n${"MIIEpAIBAAKCAQEA7bq\n".repeat(5)}-----END RSA PRIVATE KEY-----`;
    const content = `first\n${key}\nlast line here\n`;
    const { files } = await index({ "notes.txt": content });
    expect(files[0]!.redacted?.[0]?.count).toBe(1);
    const [whole] = await cairn.code.context({ projectPath, path: "notes.txt" });
    expect(whole!.text).not.toContain("MIIEpA");
    expect(whole!.text.split("\n").indexOf("last line here")).toBe(content.split("\n").indexOf("last line here"));
    expect(await statuses({ "notes.txt": content })).toEqual(["unchanged"]);
  });

  it("stops when the caller gives up, and stores nothing", async () => {
    const files = [{ path: "a.txt", content: "text" }];
    await expect(cairn.code.indexBatch({ projectPath, files }, { signal: AbortSignal.abort() })).rejects.toThrow();
    expect((await cairn.code.stats({ projectPath })).files).toBe(0);
  });

  it("never counts a file as unchanged that its parser could not read", async () => {
    const storage = (await import("../../src/stores/memory/storage.ts")).memoryStorage();
    const { code } = await import("../../src/code/service.ts");
    const { chunkFile } = await import("../../src/code/chunking/chunk-file.ts");
    const { deriveFile } = await import("../../src/code/derive-file.ts");
    let healthy = false;
    const parsers = {
      derive: async (input: Parameters<typeof chunkFile>[0]) => ({
        ...deriveFile(input.path, chunkFile(input)),
        ...(!healthy && { notice: "Cut by lines, because the parser hung." }),
      }),
      embed: async () => undefined,
      close: async () => {},
    };
    const none = {
      preferred: async () => undefined,
      best: async () => undefined,
      serving: async () => undefined,
      named: async () => undefined,
      names: [],
      close: async () => {},
    };
    const backfiller = { schedule() {}, scheduleOnce() {}, close: async () => {} };
    const redact = (text: string) => ({ text, found: [] });
    const service = code({ storage, parsers, embedders: none, backfiller, redact, now: () => new Date().toISOString() });
    const send = async () => (await service.indexBatch({ projectPath, files: [{ path: "a.py", content: "x = 1\n" }] })).files[0]!;
    expect(await send()).toMatchObject({ status: "partial", reason: expect.stringContaining("hung") });
    expect(await service.hashes({ projectPath, paths: ["a.py"] })).toEqual({});
    healthy = true;
    expect(await send()).toMatchObject({ status: "indexed" });
    expect(await send()).toMatchObject({ status: "unchanged" });
  });
});

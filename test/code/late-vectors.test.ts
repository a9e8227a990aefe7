import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import type { IndexReport } from "../../src/model/index-report.ts";

const projectPath = "/home/me/app";
let dataDir: string;
let cairn: Cairn;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-late-vectors-"));
  cairn = await open({ dataDir, embedder: { kind: "static" } });
});
afterEach(async () => {
  await cairn.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const source = (name: string) =>
  `/** Waits longer after each failure of ${name}. */\nexport async function retry${name}(work) {\n${"  await work(); // again\n".repeat(20)}}\n`;
const files = (count: number) => Array.from({ length: count }, (_, n) => ({ path: `src/file${n}.ts`, content: source(`Job${n}`) }));
const indexLater = (batch: ReturnType<typeof files>) => cairn.code.indexBatch({ projectPath, files: batch }, { vectors: "later" });
async function counts() {
  const { chunks, embeddings } = await cairn.code.stats({ projectPath });
  return { chunks, vectors: embeddings[0]?.vectors ?? 0 };
}
const found = async (query: string, mode: "keyword" | "semantic" | "hybrid") =>
  (await cairn.code.search({ projectPath, query, mode })).hits.map(({ path }) => path);

/** Reports an index job, which embeds the chunks that searches must leave to it. */
const reportJob = (status: IndexReport["status"]) =>
  cairn.code.report({
    projectPath,
    report: {
      ...{ jobId: "3f0a1c52-0b51-4c7b-8a69-0d6b1a0b7c11", status, phase: "sending" },
      ...{ startedAt: new Date().toISOString(), updatedAt: new Date().toISOString() },
      ...{ filesProcessed: 1, filesTotal: 3, counts: {}, skipped: {}, skippedFiles: [], failedFiles: [] },
    },
  });

describe("vectors that follow their chunks", () => {
  it("finds files by keyword and symbol at once, and semantically after embedPending", async () => {
    await reportJob("running");
    const result = await indexLater(files(3));
    expect(result).toMatchObject({ embeddedTexts: 0, notEmbedded: undefined });
    expect(await counts()).toMatchObject({ vectors: 0 });
    expect(await found("retryJob1", "keyword")).toContain("src/file1.ts");
    expect(await found("retryJob1", "hybrid")).toContain("src/file1.ts");
    expect((await cairn.code.usages({ projectPath, symbol: "retryJob2" })).definitions).toHaveLength(1);
    expect(await found("wait longer after a failure", "semantic")).toEqual([]);
    const progress: (readonly [number, number])[] = [];
    const { embedded } = await cairn.code.embedPending({ projectPath }, { progress: (done, total) => progress.push([done, total]) });
    const { chunks, vectors } = await counts();
    expect([embedded, vectors]).toEqual([chunks, chunks]);
    expect(progress).toEqual([
      [0, chunks],
      [chunks, chunks],
    ]);
    expect(await found("wait longer after a failure", "semantic")).toHaveLength(3);
    expect(await cairn.code.embedPending({ projectPath })).toEqual({ embedded: 0 });
  });

  it("ranks as an index whose vectors were committed with their chunks", async () => {
    await indexLater(files(12));
    await cairn.code.embedPending({ projectPath });
    const other = "/home/me/other";
    await cairn.code.indexBatch({ projectPath: other, files: files(12) });
    const ask = async (project: string) =>
      (await cairn.code.search({ projectPath: project, query: "repeat the job with a delay", mode: "semantic" })).hits.map(
        ({ path, score }) => [path, score.toFixed(4)],
      );
    expect(await ask(projectPath)).toEqual(await ask(other));
  });

  it("embeds the rest when it is repeated after an interruption", async () => {
    await indexLater(files(700));
    const abort = new AbortController();
    const interrupted = cairn.code.embedPending(
      { projectPath },
      { signal: abort.signal, progress: (done) => done > 0 && abort.abort(new Error("enough")) },
    );
    await expect(interrupted).rejects.toThrow();
    const { chunks, vectors } = await counts();
    expect(vectors).toBeGreaterThan(0);
    expect((await cairn.code.embedPending({ projectPath })).embedded).toBe(chunks - vectors);
    expect(await counts()).toEqual({ chunks, vectors: chunks });
  });

  it("leaves no vector of a file that is replaced or removed while it is embedded", async () => {
    await indexLater(files(40));
    const embedding = cairn.code.embedPending({ projectPath });
    await indexLater(files(20).map(({ path, content }) => ({ path, content: `${content}\nexport const more = 1;\n` })));
    await cairn.code.clean({ projectPath, glob: "src/file3*.ts" });
    await embedding;
    await cairn.code.embedPending({ projectPath });
    const { chunks, vectors } = await counts();
    expect(vectors).toBe(chunks);
    expect((await cairn.code.compact({ projectPath })).orphans).toEqual({ rows: 0, terms: 0, vectors: 0 });
  });

  it("leaves chunks without a vector to the job that runs, and embeds them after a job that ended without doing so", async () => {
    await indexLater(files(3));
    await reportJob("running");
    await found("retryJob1", "hybrid");
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // longer than the delay of a backfill
    expect(await counts()).toMatchObject({ vectors: 0 });
    await reportJob("cancelled");
    await found("retryJob1", "hybrid");
    const { chunks } = await counts();
    await expect.poll(counts, { timeout: 20_000 }).toEqual({ chunks, vectors: chunks });
  });

  it("commits vectors with the chunks where the store cannot add them later", async () => {
    const memory = await open({ storage: "memory", embedder: { kind: "static" } });
    await memory.code.indexBatch({ projectPath, files: files(2) }, { vectors: "later" });
    const { chunks, embeddings } = await memory.code.stats({ projectPath });
    expect(embeddings[0]?.vectors).toBe(chunks);
    expect(await memory.code.embedPending({ projectPath })).toEqual({ embedded: 0 });
    await memory.close();
  });
});

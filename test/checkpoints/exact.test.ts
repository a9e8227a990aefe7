import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { open } from "../../src/open.ts";
import { systemClock } from "../../src/ports/clock.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { testEmbedder } from "../support/embedders.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-exact-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("a filter that leaves 3 of 100,000 records finds those 3, by meaning and by words", { timeout: 600_000 }, async () => {
  const dataDir = join(folder, "large");
  const projectPath = "/large";
  const embedder = testEmbedder({ dimension: 8 });
  const storage = sqliteStorage({ dataDir, now: systemClock });
  const { checkpoints } = await storage.create(projectPath);
  const { versionId } = await checkpoints.embeddings.addVersion(embedder);
  const [vector] = await embedder.embed(["step"]);
  const rare = new Set([17, 50_000, 99_999]);
  const BATCH = 2_000;
  for (let start = 0; start < 100_000; start += BATCH)
    await Promise.all(
      Array.from({ length: BATCH }, (_, offset) => {
        const number = start + offset;
        const at = new Date(Date.UTC(2026, 0, 1) + number * 1_000).toISOString();
        const tags = rare.has(number) ? ["common", "rare"] : ["common"];
        const record = { id: `id-${number}`, projectPath, summary: `step ${number}`, description: "", context: {}, tags, tokenCount: 1 };
        return checkpoints.put({ ...record, createdAt: at, updatedAt: at, revision: 1 }, [{ versionId, vector: vector! }]);
      }),
    );
  await storage.close();

  const cairn = await open({ dataDir, embedder: [embedder] });
  const found = async (mode: "semantic" | "keyword" | "hybrid", filter: object) => {
    const { hits } = await cairn.checkpoints.search({ projectPath, query: "step", topK: 10, mode, ...filter });
    return hits.map(({ record }) => record.id).sort();
  };
  const expected = [...rare].map((number) => `id-${number}`).sort();
  for (const mode of ["semantic", "keyword", "hybrid"] as const) {
    expect(await found(mode, { tags: ["rare"] }), mode).toEqual(expected);
    expect(await found(mode, { tags: ["RAR", "comm"], tagMatch: "substring" }), mode).toEqual(expected);
  }
  const from = new Date(Date.UTC(2026, 0, 1) + 99_998 * 1_000).toISOString();
  expect(await found("semantic", { createdFrom: from })).toEqual(["id-99998", "id-99999"]);
  expect((await cairn.checkpoints.list({ projectPath, tags: ["rare"] })).total).toBe(3);
  expect((await cairn.checkpoints.list({ projectPath })).total).toBe(100_000);
  await cairn.close();
});

it("total is exact and of the same moment as the page while others write", async () => {
  const dataDir = join(folder, "busy");
  const projectPath = "/busy";
  const writers = await Promise.all([1, 2].map(() => open({ dataDir, embedder: { kind: "none" } })));
  const reader = await open({ dataDir, embedder: { kind: "none" } });
  let writing = true;
  const write = async (cairn: (typeof writers)[number]) => {
    for (let round = 0; round < 40; round++) {
      const { id } = await cairn.checkpoints.save({ projectPath, summary: `round ${round}`, tags: ["t"] });
      if (round % 3 === 0) await cairn.checkpoints.delete({ projectPath, id });
    }
  };
  const done = Promise.all(writers.map(write)).finally(() => {
    writing = false;
  });
  let looks = 0;
  while (writing) {
    const { checkpoints, total } = await reader.checkpoints.list({ projectPath, limit: 100, tags: ["t"] });
    expect(checkpoints.length).toBe(total);
    looks++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await done;
  expect(looks).toBeGreaterThan(5);
  expect((await reader.checkpoints.list({ projectPath })).total).toBe(2 * (40 - 14));
  for (const cairn of [...writers, reader]) await cairn.close();
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { checkpointText } from "../../src/model/stored-record.ts";
import { splitPieces } from "../../src/text/pieces.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { type TestEmbedder, testEmbedder } from "../support/embedders.ts";
import { longDescription, TOPICS } from "./long-records.ts";

const projectPath = "/srv/pieces";
const ref = { projectPath, collection: "checkpoints" as const };

describe.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])("long records on %s", (kind) => {
  let dataDir: string;
  let database: TestDatabase | undefined;
  let embedder: TestEmbedder;
  let cairn: Cairn;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-pieces-"));
    database = kind === "postgres" ? await testDatabase() : undefined;
    cairn = await start();
  });
  afterEach(async () => {
    await cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function start(): Promise<Cairn> {
    embedder = testEmbedder();
    return open({ storage: database?.url ?? kind, dataDir, embedder: [embedder, testEmbedder({ model: "other", dimension: 32 })] });
  }
  const save = (topics?: readonly string[]) =>
    cairn.checkpoints.save({ projectPath, summary: "one of many sessions", description: longDescription(topics) });
  const current = async (collection: "checkpoints" | "knowledge" = "checkpoints") =>
    (await cairn.embeddings.list({ projectPath, collection })).find(({ isCurrent }) => isCurrent)!;
  const backfilled = () =>
    vi.waitFor(
      async () => {
        const { records, vectors, parts, partVectors } = await current();
        expect([vectors, partVectors]).toEqual([records, parts]);
      },
      { timeout: 120_000, interval: 50 },
    );
  const scoreOf = async (query: string, id: string) =>
    (await cairn.checkpoints.search({ projectPath, query, mode: "semantic" })).hits.find(({ record }) => record.id === id)!.score;

  it("embeds the whole text on save and the parts in the background, and scores the record by its best part", async () => {
    const saved = await save();
    embedder.mood = "down"; // the background pass waits
    const parts = splitPieces(checkpointText(saved)).length - 1;
    expect([saved.embedded, embedder.calls, parts]).toEqual([true, 1, TOPICS.length]);
    expect(await current()).toMatchObject({ records: 1, vectors: 1, parts, partVectors: 0 });
    embedder.mood = "well";
    await backfilled();
    for (const topic of TOPICS.slice(1)) expect(await scoreOf(topic, saved.id)).toBeGreaterThan(0.95);
    const { hits } = await cairn.checkpoints.search({ projectPath, query: "saffron compass" });
    expect(hits).toHaveLength(1);
  });

  it("finds no part of an earlier text after an update, and nothing after a deletion", async () => {
    const { id } = await save();
    await backfilled();
    await cairn.checkpoints.update({ projectPath, id, description: longDescription(["anchor", "bridge", "candle", "desert"]) });
    expect(await scoreOf("saffron", id)).toBeLessThan(0.2);
    await backfilled();
    expect(await scoreOf("saffron", id)).toBeLessThan(0.2);
    expect(await scoreOf("candle", id)).toBeGreaterThan(0.95);
    await cairn.checkpoints.update({ projectPath, id, description: "short" });
    expect(await current()).toMatchObject({ records: 1, vectors: 1, parts: 0, partVectors: 0 });
    await cairn.checkpoints.delete({ projectPath, id });
    expect((await cairn.checkpoints.search({ projectPath, query: "candle", mode: "semantic" })).hits).toEqual([]);
  });

  it("switches to another model only with all parts, and back", async () => {
    const { id } = await save();
    await backfilled();
    const pieces = TOPICS.length + 1;
    expect(await cairn.embeddings.upgrade({ ...ref, model: "other" })).toMatchObject({ switched: true, embedded: pieces });
    expect(await current()).toMatchObject({ model: "other", parts: TOPICS.length, partVectors: TOPICS.length });
    expect(await scoreOf("violin", id)).toBeGreaterThan(0.9);
    expect(await cairn.embeddings.rollback(ref)).toMatchObject({ model: "test", embedded: 0 });
    expect(await cairn.embeddings.prune(ref)).toEqual({ versions: 1, vectors: pieces });
  });

  it("continues after a restart, and verify counts and repairs missing parts", async () => {
    const { id } = await save();
    embedder.mood = "down";
    await cairn.close();
    cairn = await start();
    expect(await current()).toMatchObject({ vectors: 1, parts: TOPICS.length, partVectors: 0 });
    expect(await cairn.embeddings.verify(ref)).toMatchObject({ checked: 1, damaged: [], recomputed: TOPICS.length, missing: 0 });
    expect(await scoreOf("glacier", id)).toBeGreaterThan(0.95);
    expect(await cairn.embeddings.verify(ref)).toMatchObject({ checked: TOPICS.length + 1, recomputed: 0, missing: 0 });
  });

  it("embeds the parts before a short process ends", async () => {
    const { id } = await save();
    await cairn.close();
    cairn = await start();
    expect(await current()).toMatchObject({ vectors: 1, parts: TOPICS.length, partVectors: TOPICS.length });
    expect(await scoreOf("lantern", id)).toBeGreaterThan(0.95);
  });

  it("embeds the parts of imported checkpoints", async () => {
    const { id, createdAt } = await save();
    await cairn.checkpoints.delete({ projectPath, id });
    const record = { id, summary: "imported", description: longDescription(), tags: [], context: {}, created_at: createdAt };
    await cairn.checkpoints.import({ projectPath, records: [record] });
    await backfilled();
    expect(await scoreOf("harbour", id)).toBeGreaterThan(0.95);
  });

  it("embeds a long question of knowledge in parts", async () => {
    const question = longDescription(TOPICS.slice(0, 5));
    const { id } = await cairn.knowledge.save({ projectPath, kind: "faq", category: "c", question, answer: "a" });
    await vi.waitFor(async () => expect((await current("knowledge")).partVectors).toBe(5), { timeout: 120_000, interval: 50 });
    const { hits } = await cairn.knowledge.search({ projectPath, query: "glacier" });
    expect(hits[0]).toMatchObject({ record: { id } });
    expect(hits[0]!.score).toBeGreaterThan(0.95);
  });
});

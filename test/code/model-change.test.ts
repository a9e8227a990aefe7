import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parserPool } from "../../src/code/parser-pool.ts";
import { type Code, code } from "../../src/code/service.ts";
import { type Cairn, open } from "../../src/index.ts";
import { systemClock } from "../../src/model/ids.ts";
import type { Embedders } from "../../src/ports/embedders.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { type Backfiller, backfiller } from "../../src/recall/backfiller.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectPath = "/srv/models";
const ref = { projectPath, collection: "code" as const };
const line = (word: string) => `${word} ${"and so on ".repeat(250)}\n`;

describe.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])("a model that changes while code is indexed, on %s", (kind) => {
  const models = [testEmbedder({ model: "first" }), testEmbedder({ model: "second", dimension: 32 })];
  const embedders: Embedders = {
    preferred: async () => models[0],
    best: async () => models[0],
    serving: async ({ model }) => models.find((one) => one.model === model),
    named: async (name) => models.find((one) => one.model === name),
    names: models.map(({ model }) => model),
    close: async () => {},
  };
  const parsers = parserPool();
  let dataDir: string;
  let database: TestDatabase | undefined;
  let storage: Storage;
  let backfill: Backfiller;
  /** The other process, which changes the model. */
  let other: Cairn;
  let service: Code;
  let beforeCommit: () => Promise<unknown>;

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-models-"));
    if (kind === "postgres") database = await testDatabase();
    storage = database ? postgresStorage({ url: database.url, now: systemClock }) : sqliteStorage({ dataDir, now: systemClock });
    beforeCommit = async () => {};
    const held: Storage = {
      ...storage,
      async create(id) {
        const project = await storage.create(id);
        return { ...project, code: { ...project.code, commit: async (batch) => beforeCommit().then(() => project.code.commit(batch)) } };
      },
    };
    backfill = backfiller({ embedders, firstDelayMs: 20 });
    const redact = (text: string) => ({ text, found: [] });
    service = code({ storage: held, embedders, parsers, backfiller: backfill, redact, now: systemClock });
    other = await open({ storage: database?.url ?? "sqlite", dataDir, embedder: models });
  });
  afterEach(async () => {
    await backfill.close();
    await parsers.close();
    await other.close();
    await storage.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const index = (content: string) => service.indexBatch({ projectPath, files: [{ path: "a.txt", content }] });
  const change = (model: string) => () => {
    beforeCommit = async () => {}; // once
    return other.embeddings.upgrade({ ...ref, model });
  };
  const expectFilled = (model: string) =>
    vi.waitFor(
      async () => {
        const { embeddings } = (await storage.find(projectPath))!.code;
        const current = (await embeddings.versions()).find(({ isCurrent }) => isCurrent)!;
        expect(current.model).toBe(model);
        const { records, vectors } = await embeddings.counts(current.versionId);
        expect(records).toBeGreaterThan(0);
        expect(vectors).toBe(records);
      },
      { timeout: 120_000, interval: 50 },
    );

  it("fills what was embedded for the version before", async () => {
    expect((await index(line("one"))).notEmbedded).toBeUndefined();
    beforeCommit = change("second");
    expect((await index(line("one") + line("two"))).notEmbedded).toContain("another embedding model");
    await expectFilled("second");
    expect((await other.code.search({ projectPath, query: "two", mode: "semantic" })).model).toBe("second");
  });

  it("fills what kept the vectors of the version before, also when that is dropped at once", async () => {
    await index(line("one") + line("two") + line("three"));
    beforeCommit = async () => {
      await change("second")();
      await other.embeddings.prune(ref);
    };
    const { embeddedTexts, notEmbedded } = await index(line("one") + line("three"));
    expect({ embeddedTexts, noticed: notEmbedded !== undefined }).toEqual({ embeddedTexts: 0, noticed: true });
    await expectFilled("second");
  });

  it("is put right by the next process when the one that indexed was killed before it could", async () => {
    await index(line("one"));
    beforeCommit = change("second");
    const { code: store } = await storage.create(projectPath);
    const [version] = await store.embeddings.versions();
    const [chunk] = await store.chunksOf("a.txt");
    await change("second")();
    // What the killed process wrote: a chunk with a vector of the old version only.
    const vectors = [{ versionId: version!.versionId, vector: (await models[0]!.embed(["one"]))[0]! }];
    const file = { path: "b.txt", contentHash: "1".repeat(64), language: "text", bytes: 3, lines: 1, symbols: [] };
    const { id: _id, path: _path, generation: _generation, language: _language, contentHash: _hash, indexedAt: _at, ...plain } = chunk!;
    await store.commit({ at: systemClock(), files: [{ ...file, chunks: [{ chunk: plain, vectors }] }] });
    beforeCommit = async () => {};
    const next = await open({ storage: database?.url ?? "sqlite", dataDir, embedder: models });
    await next.code.indexBatch({ projectPath, files: [{ path: "c.txt", content: line("three") }] });
    await expectFilled("second");
    await next.close();
  });

  it("leaves no chunk behind while one process indexes and the other changes the model back and forth", async () => {
    await index(line("start"));
    let changing = true;
    const changes = (async () => {
      for (const model of ["second", "first", "second"]) await other.embeddings.upgrade({ ...ref, model });
      changing = false;
    })();
    for (let round = 0; changing || round < 10; round++)
      await service.indexBatch({
        projectPath,
        files: [0, 1, 2].map((n) => ({ path: `f${n}.txt`, content: line(`round ${round} of ${n}`) + line("same") })),
      });
    await changes;
    await expectFilled("second");
  });
});

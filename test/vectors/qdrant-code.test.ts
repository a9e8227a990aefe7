import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { storageContract } from "../../src/testing/index.ts";
import { qdrantStorage } from "../../src/vectors/qdrant/storage.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";
import { type QdrantStandIn, qdrantStandIn } from "../support/qdrant-server.ts";

const projectPath = "/srv/mirrored";
const TOPICS = ["parser", "socket", "cache", "retry", "schema", "render", "cursor"];
const source = (number: number, edit = "") => ({
  path: `${number % 2 === 0 ? "src" : "lib"}/part${number}.${number % 3 === 0 ? "py" : "txt"}`,
  content: `def ${TOPICS[number % 7]}_${number}(${TOPICS[(number * 3) % 7]}):\n    return "${TOPICS[(number * 5) % 7]} ${number}${edit}"\n`,
});
const tree = (count: number) => Array.from({ length: count }, (_, number) => source(number));

describe.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])("the code index in Qdrant (the stand-in) beside %s", (kind) => {
  const embedder = testEmbedder();
  let standIn: QdrantStandIn;
  let database: TestDatabase | undefined;
  let dataDir: string;
  let storage: Storage;
  let cairn: Cairn;
  let alone: Cairn;

  beforeAll(async () => {
    standIn = await qdrantStandIn();
    dataDir = mkdtempSync(join(tmpdir(), "cairn-qdrant-code-"));
    if (kind === "postgres") database = await testDatabase();
    const where = { storage: database?.url ?? "sqlite", dataDir, embedder: [embedder, testEmbedder({ model: "other", dimension: 32 })] };
    cairn = await open({ ...where, qdrant: { url: standIn.url } });
    alone = await open(where);
    const plain = database ? postgresStorage({ url: database.url, now: systemClock }) : sqliteStorage({ dataDir, now: systemClock });
    storage = qdrantStorage(plain, { url: standIn.url });
  });
  afterAll(async () => {
    await cairn.close();
    await alone.close();
    await storage.close();
    expect(standIn.violations).toEqual([]);
    await standIn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const ofProject = new RegExp(`^${projectDatabaseName(projectPath)}_.*_code_v`);
  const points = () => {
    const ofCode = [...standIn.collections.values()]
      .flatMap((collection) => [...collection.points])
      .filter(
        ([
          ,
          {
            payload: { tenant },
          },
        ]) => ofProject.test(String(tenant)),
      );
    expect(new Set(ofCode.map(([, { payload }]) => payload.tenant)).size).toBeLessThanOrEqual(1);
    return new Map(ofCode);
  };
  /** Until Qdrant's points are the chunks of the index and no others. */
  const inStep = () =>
    vi.waitFor(
      async () => {
        const { code } = (await storage.find(projectPath))!;
        const ids = (await Promise.all((await code.files()).map(({ path }) => code.chunksOf(path)))).flat().map(({ id }) => id);
        expect([...points().values()].map(({ payload }) => payload.id).sort()).toEqual(ids.sort());
      },
      { timeout: 120_000, interval: 50 },
    );
  const answer = async (one: Cairn, query: string, more: object) => {
    const { hits, degraded } = await one.code.search({ projectPath, query, topK: 10, ...more });
    return { degraded, hits: hits.map(({ path, startLine, score }) => ({ path, startLine, score: score.toFixed(5) })) };
  };

  for (const { name, run } of storageContract({ storage: () => storage, openAgain: () => storage }))
    if (name.startsWith("code:")) it(name, run);

  it("answers as the database does, whatever the filter", async () => {
    const before = new Date().toISOString();
    await cairn.code.indexBatch({ projectPath, files: tree(40) });
    await inStep();
    const since = new Date().toISOString();
    await cairn.code.indexBatch({ projectPath, files: [source(3, " edited"), source(4, " edited")] });
    await inStep();
    const asked = standIn.calls.filter((call) => call.endsWith("/points/query")).length;
    for (const query of ["where is the parser", "retry_10", "cache and cursor"])
      for (const filter of [
        {},
        { languages: ["python"] },
        { glob: "lib/**" },
        { kinds: ["function"] },
        { changedSince: since },
        { changedSince: before, glob: "src/**", languages: ["text"] },
        { glob: "nowhere/**" },
        { mode: "semantic" },
      ]) {
        const mine = await answer(cairn, query, filter);
        expect(mine.degraded).toEqual([]);
        expect(mine, `${query} ${JSON.stringify(filter)}`).toEqual(await answer(alone, query, filter));
      }
    expect(standIn.calls.filter((call) => call.endsWith("/points/query")).length).toBeGreaterThanOrEqual(asked + 20);
  });

  it("follows a renamed folder without one embedding, under the same points", async () => {
    const files = tree(40).map(({ path, content }) => ({ path: `moved/${path}`, content }));
    files[3]!.content = source(3, " edited").content;
    files[4]!.content = source(4, " edited").content;
    const keys = [...points().keys()].sort();
    const calls = embedder.calls;
    const renames = files.map(({ path }) => ({ from: path.slice("moved/".length), to: path }));
    await cairn.code.indexBatch({ projectPath, files, renames });
    expect(embedder.calls).toBe(calls);
    // At once, while the points still have the old ids.
    const { hits } = await cairn.code.search({ projectPath, query: "retry_10", mode: "semantic" });
    expect(hits[0]!.path).toBe("moved/src/part10.txt");
    await inStep();
    expect([...points().keys()].sort()).toEqual(keys);
    expect(await answer(cairn, "retry_10", { mode: "semantic" })).toEqual(await answer(alone, "retry_10", { mode: "semantic" }));
  });

  it("never returns a removed chunk, although Qdrant still has more of them than the search asks for", async () => {
    const many = Array.from({ length: 450 }, (_, number) => ({
      path: `old/twin${number}.txt`,
      content: `twin of the parser socket ${number}\n`,
    }));
    await cairn.code.indexBatch({ projectPath, files: many });
    await inStep();
    standIn.trouble = "error 500"; // the deletions cannot get there
    const { removed } = await alone.code.finish({ projectPath, manifest: tree(40).map(({ path }) => `moved/${path}`) });
    expect(removed).toHaveLength(450);
    standIn.trouble = undefined;
    const query = "twin of the parser socket";
    const { hits } = await cairn.code.search({ projectPath, query, mode: "semantic", topK: 30 });
    expect(hits.length).toBe(30);
    expect(hits.every(({ path }) => path.startsWith("moved/"))).toBe(true);
    await cairn.code.compact({ projectPath });
    await inStep();
  });

  it("follows a change of the model and an index that is cleaned", async () => {
    const ref = { projectPath, collection: "code" as const };
    await cairn.embeddings.upgrade({ ...ref, model: "other" });
    await cairn.embeddings.prune(ref);
    await inStep();
    expect((await cairn.code.search({ projectPath, query: "retry_10" })).model).toBe("other");
    await cairn.code.clean({ projectPath });
    await inStep();
    expect(points().size).toBe(0);
  });
});

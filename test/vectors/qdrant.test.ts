import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { type QdrantClient, qdrantClient } from "../../src/vectors/qdrant/client.ts";
import { longDescription, TOPICS } from "../recall/long-records.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";
import { type QdrantStandIn, qdrantStandIn } from "../support/qdrant-server.ts";

/** A real server too, whenever there is one. */
const realUrl = process.env.QDRANT_TEST_URL;
const places = ["sqlite", ...(postgresWanted ? ["postgres"] : [])].flatMap((storage) =>
  ["the stand-in", ...(realUrl ? ["a real server"] : [])].map((server) => ({ storage, server })),
);
const project = `/srv/qdrant-${process.pid}`;
const ref = { projectPath: project, collection: "checkpoints" as const };

describe.each(places)("Qdrant ($server) beside $storage", ({ storage: kind, server }) => {
  let standIn: QdrantStandIn | undefined;
  let url: string;
  let client: QdrantClient;
  let storage: string;
  let database: TestDatabase | undefined;
  let dataDir: string;
  const opened: Cairn[] = [];
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-qdrant-"));
    if (server === "the stand-in") standIn = await qdrantStandIn("secret");
    url = standIn?.url ?? realUrl!;
    client = qdrantClient({ url, apiKey: "secret" });
    if (kind === "postgres") database = await testDatabase();
    storage = database?.url ?? kind;
  });
  afterEach(async () => {
    for (const cairn of opened.splice(0)) await cairn.close();
    if (standIn) standIn.trouble = undefined;
    for (const name of await ours()) await client.deleteCollection(name);
    expect(standIn?.violations ?? []).toEqual([]);
    await standIn?.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function start(qdrant: { url?: string | undefined } = { url }): Promise<Cairn> {
    const embedder = [testEmbedder(), testEmbedder({ model: "other", dimension: 32 })];
    const cairn = await open({ storage, dataDir, embedder, qdrant: { apiKey: "secret", ...qdrant } });
    opened.push(cairn);
    return cairn;
  }
  const ours = async (projectPath = project, collection = "checkpoints") =>
    (await client.collections()).filter(
      (name) => name.startsWith(`cairn_${projectDatabaseName(projectPath)}_`) && name.includes(collection),
    );
  const save = (cairn: Cairn, summary: string, tags: string[] = []) => cairn.checkpoints.save({ projectPath: project, summary, tags });
  const search = (cairn: Cairn, query: string, more = {}) => cairn.checkpoints.search({ projectPath: project, query, topK: 10, ...more });
  const summarise = ({ hits }: Awaited<ReturnType<typeof search>>) => hits.map(({ record, score }) => [record.id, score.toFixed(5)]);
  /** Until Qdrant has exactly N points in its one collection. */
  const copied = (count: number) =>
    vi.waitFor(
      async () => {
        const names = await ours();
        expect(names).toHaveLength(1);
        expect(await client.count(names[0]!)).toBe(count);
      },
      { timeout: 120_000, interval: 50 },
    );

  it("answers as the database does, filters and edits included", async () => {
    const cairn = await start();
    const saved = [];
    for (let i = 0; i < 40; i++)
      saved.push(await save(cairn, `note ${i} about topic ${i % 7} and part ${i % 3}`, [i % 20 === 0 ? "rare" : "common"]));
    await copied(40);
    await cairn.checkpoints.delete({ projectPath: project, id: saved[3]!.id });
    await cairn.checkpoints.update({ projectPath: project, id: saved[4]!.id, summary: "topic 5, rewritten" });
    await copied(39);
    const alone = await start({ url: undefined });
    for (const query of ["topic 5", "part 2 of topic 1", "note 33"])
      for (const more of [{}, { tags: ["rare"] }, { tags: ["none"] }, { mode: "semantic" }]) {
        const answer = await search(cairn, query, more);
        expect(answer.degraded).toEqual([]);
        expect(summarise(answer)).toEqual(summarise(await search(alone, query, more)));
      }
    if (standIn) expect(standIn.calls.filter((call) => call.endsWith("/points/query")).length).toBeGreaterThan(5);
  });

  it("has a point per piece of a long record, and finds each record once", async () => {
    const cairn = await start();
    const saved = [];
    for (let i = 0; i < 12; i++) {
      const description = longDescription(TOPICS.map((topic) => `${topic} shared`));
      saved.push(await cairn.checkpoints.save({ projectPath: project, summary: `long ${i}`, description }));
    }
    const { parts } = (await cairn.embeddings.list(ref))[0]!;
    expect(parts).toBeGreaterThan(12 * 5);
    await copied(12 + parts);
    const alone = await start({ url: undefined });
    for (const query of ["violin shared", "long 7", "compass"])
      for (const topK of [3, 100]) {
        const answer = await search(cairn, query, { mode: "semantic", topK });
        expect(answer.degraded).toEqual([]);
        expect(answer.hits).toHaveLength(Math.min(topK, 12));
        expect(summarise(answer).map(([, score]) => score)).toEqual(
          summarise(await search(alone, query, { mode: "semantic", topK })).map(([, score]) => score),
        );
      }
    await cairn.checkpoints.update({ projectPath: project, id: saved[0]!.id, description: "short" });
    await cairn.checkpoints.delete({ projectPath: project, id: saved[1]!.id });
    await copied(11 + (parts * 10) / 12);
    await cairn.embeddings.upgrade({ ...ref, model: "other" });
    await cairn.embeddings.prune(ref);
    await copied(11 + (parts * 10) / 12);
  });

  it("finds what was saved a moment ago, before Qdrant has it", async () => {
    const cairn = await start();
    await save(cairn, "first");
    await copied(1);
    for (let i = 0; i < 5; i++) {
      const { id } = await save(cairn, `brand new number ${i}`);
      const { hits, degraded } = await search(cairn, `brand new number ${i}`, { mode: "semantic" });
      expect(hits[0]!.record.id).toBe(id);
      expect(degraded).toEqual([]);
    }
  });

  it("moves the points of a merged project to the project that receives it", async () => {
    const cairn = await start();
    const from = `${project}/packages/api`;
    for (let i = 0; i < 10; i++) await cairn.checkpoints.save({ projectPath: from, summary: `old note ${i} about topic ${i % 3}` });
    const { id } = await save(cairn, "saved in the right project");
    await copied(1);
    expect(await cairn.transfer.merge({ from, into: project })).toMatchObject({ checkpoints: 10, kept: 0, removed: true });
    await copied(11);
    const answer = await search(cairn, "old note 7 about topic 1", { mode: "semantic" });
    expect(answer.degraded).toEqual([]);
    expect(answer.hits[0]!.record.summary).toBe("old note 7 about topic 1");
    expect((await search(cairn, "saved in the right project", { mode: "semantic" })).hits[0]!.record.id).toBe(id);
    await vi.waitFor(
      async () => {
        expect(await ours(from)).toEqual([]);
      },
      { timeout: 120_000, interval: 50 },
    );
  });

  it("deletes the points of a merged project although Qdrant fails during the merge", async () => {
    const cairn = await start();
    const from = `${project}/packages/api`;
    await cairn.checkpoints.save({ projectPath: from, summary: "leaves this project" });
    await vi.waitFor(async () => expect(await ours(from)).toHaveLength(1), { timeout: 120_000, interval: 50 });
    if (standIn) standIn.trouble = "error 500";
    await cairn.transfer.merge({ from, into: project });
    if (standIn) standIn.trouble = undefined;
    await copied(1);
    await vi.waitFor(async () => expect(await ours(from)).toEqual([]), { timeout: 120_000, interval: 50 });
  });

  it("loses nothing while Qdrant is away: the database answers, reports it, and the outbox waits", async () => {
    let cairn = await start({ url: "http://127.0.0.1:1" });
    const { id } = await save(cairn, "saved without Qdrant");
    const { hits, degraded } = await search(cairn, "saved without Qdrant");
    expect(hits[0]).toMatchObject({ record: { id }, found: { semantic: { rank: 1 } } });
    expect(degraded).toHaveLength(1);
    expect(degraded[0]).toContain("the database searched its own vectors");
    await cairn.close();
    opened.splice(0);
    // A process without Qdrant writes changes down as well.
    const plain = await start({ url: undefined });
    await save(plain, "saved by a process that knows no Qdrant");
    await plain.close();
    opened.splice(0);
    cairn = await start();
    await search(cairn, "anything");
    await copied(2);
  });

  it("keeps every project in collections of its own and asks no other", async () => {
    const cairn = await start();
    await save(cairn, "ours");
    await copied(1);
    const other = `${project}-other`;
    await cairn.checkpoints.save({ projectPath: other, summary: "theirs" });
    await vi.waitFor(async () => expect(await ours(other)).toHaveLength(1), { timeout: 120_000 });
    const [name] = await ours();
    standIn?.calls.splice(0);
    const { hits } = await search(cairn, "theirs", { mode: "semantic" });
    expect(hits.map(({ record }) => record.summary)).toEqual(["ours"]);
    if (standIn) expect(standIn.calls.filter((call) => call.includes("/points/query"))).toEqual([`POST /collections/${name}/points/query`]);
    for (const theirs of await ours(other)) await client.deleteCollection(theirs);
  });

  it("puts right what differs: points that are missing, orphans, a collection that is gone", async () => {
    let cairn = await start();
    for (let i = 0; i < 20; i++) await save(cairn, `record ${i}`);
    await copied(20);
    const [name] = await ours();
    const { ids } = await client.scroll(name!, undefined, 100);
    // The same count, yet not the same points: only a thorough look finds it.
    await client.remove(name!, ids.slice(0, 2));
    await client.upsert(
      name!,
      [77_777, 88_888].map((id) => ({ id, vector: new Float32Array(64).fill(1), payload: { id: "orphan" } })),
    );
    await cairn.embeddings.verify(ref);
    await vi.waitFor(async () => expect((await client.scroll(name!, undefined, 100)).ids).toEqual(ids), { timeout: 120_000 });
    await cairn.close();
    opened.splice(0);
    await client.deleteCollection(name!);
    cairn = await start();
    await search(cairn, "record 3");
    await copied(20);
  });

  it("serves knowledge too, beside the checkpoints", async () => {
    const cairn = await start();
    await save(cairn, "how to reset a password");
    const { id } = await cairn.knowledge.save({
      projectPath: project,
      kind: "faq",
      question: "how to reset a password",
      answer: "by mail",
    });
    await copied(1);
    await vi.waitFor(async () => expect(await client.count((await ours(project, "knowledge"))[0]!)).toBe(1), { timeout: 120_000 });
    const alone = await start({ url: undefined });
    const [answer, right] = await Promise.all(
      [cairn, alone].map((one) => one.knowledge.search({ projectPath: project, query: "password reset" })),
    );
    expect(answer).toEqual(right);
    expect(JSON.stringify(answer)).toContain(id);
    await cairn.knowledge.delete({ projectPath: project, id });
    await vi.waitFor(async () => expect(await client.count((await ours(project, "knowledge"))[0]!)).toBe(0), { timeout: 120_000 });
    for (const name of await ours(project, "knowledge")) await client.deleteCollection(name);
  });

  it("follows an upgrade, and deletes what was pruned", async () => {
    const cairn = await start();
    for (let i = 0; i < 10; i++) await save(cairn, `record ${i}`);
    await copied(10);
    const [first] = await ours();
    await cairn.embeddings.upgrade({ ...ref, model: "other" });
    await vi.waitFor(async () => expect(await ours()).toHaveLength(2), { timeout: 120_000 });
    await vi.waitFor(async () => expect((await search(cairn, "record 3")).degraded).toEqual([]), { timeout: 120_000 });
    expect((await search(cairn, "record 3")).model).toBe("other");
    await cairn.embeddings.prune(ref);
    await copied(10);
    expect(await ours()).not.toContain(first);
  });

  it.runIf(server === "the stand-in").each(["hang up", "error 500", "garbage"] as const)(
    "continues without Qdrant on: %s",
    async (trouble) => {
      const cairn = await start();
      const { id } = await save(cairn, "a record");
      await copied(1);
      standIn!.trouble = trouble;
      const { hits, degraded } = await search(cairn, "a record");
      expect(hits[0]!.record.id).toBe(id);
      expect(degraded).toHaveLength(1);
    },
  );
});

it("the stand-in sees calls that Qdrant's schema does not know", async () => {
  const standIn = await qdrantStandIn();
  const call = (method: string, path: string, body: unknown) =>
    fetch(standIn.url + path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  await call("PUT", "/collections/a", { vectors: { size: 2, distance: "Cosine" } });
  expect(standIn.violations).toEqual([]);
  await call("PUT", "/collections/b", { vectors: { size: "two", distance: "Cosine" } });
  await call("POST", "/collections/a/points/search", { vector: [1, 0], limit: 1 });
  await call("POST", "/collections/a/points/count", { exact: "yes" });
  expect(standIn.violations).toHaveLength(3);
  await standIn.close();
});

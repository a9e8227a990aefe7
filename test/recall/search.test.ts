import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { type TestEmbedder, testEmbedder } from "../support/embedders.ts";

const project = "/srv/app";

describe.each(["memory", "sqlite", ...(postgresWanted ? ["postgres"] : [])])("recall on %s", (kind) => {
  let cairn: Cairn;
  let storage = kind;
  let database: TestDatabase | undefined;
  let embedder: TestEmbedder;
  let dataDir: string;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-recall-"));
    embedder = testEmbedder();
    if (kind === "postgres") {
      database = await testDatabase();
      storage = database.url;
    }
    cairn = await open({ storage, dataDir, embedder: [embedder, testEmbedder({ model: "other", dimension: 32 })] });
  });
  afterEach(async () => {
    await cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true });
  });
  const save = (summary: string, tags: string[] = []) => cairn.checkpoints.save({ projectPath: project, summary, tags });
  const search = (query: string, more = {}) => cairn.checkpoints.search({ projectPath: project, query, ...more });

  it("fuses the semantic and the keyword ranking, best first, and reports the rank in each", async () => {
    const wanted = await save("the parser handles nested quotes");
    await save("database pool exhausted under load");
    const { hits, degraded, model } = await search("nested quotes in the parser");
    expect(hits[0]).toMatchObject({ record: { id: wanted.id }, found: { semantic: { rank: 1 }, keyword: { rank: 1 } } });
    expect(hits[0]!.score).toBeGreaterThan(0.5);
    expect(hits).toHaveLength(2);
    expect({ degraded, model }).toEqual({ degraded: [], model: "test" });
  });

  it("finds a record in the language of the query", async () => {
    await save("The connections to the database are closed after each request");
    const german = await save("Die Verbindungen zur Datenbank werden nach jeder Anfrage geschlossen");
    const chinese = await save("每次请求后关闭数据库连接");
    expect((await search("Verbindung der Datenbank")).hits[0]!.record.id).toBe(german.id);
    expect((await search("Verbindung", { mode: "keyword" })).hits[0]!.record.id).toBe(german.id);
    expect((await search("关闭连接", { mode: "keyword" })).hits[0]!.record.id).toBe(chinese.id);
  });

  it("reports how well the hits answer, and returns them whatever it is", async () => {
    await save("the parser handles nested quotes");
    expect(await search("nested quotes in the parser")).toMatchObject({ match: "high", hits: [{}] });
    expect(await search("zzkq wvvx")).toMatchObject({ match: "none", hits: [{}] });
    expect(await search("parser", { mode: "keyword" })).toMatchObject({ match: "high" });
    expect(await cairn.checkpoints.search({ projectPath: "/srv/none", query: "parser" })).toMatchObject({ match: "none", hits: [] });
  });

  it("explains the weights of a hybrid search, and none of a single ranking", async () => {
    await save("the parser handles nested quotes, and the tests of the lexer are green again since noon");
    const { weights } = await search("nested quotes in the parser");
    expect(weights).toMatchObject({ coverage: 1, recent: false, neighbours: 0 });
    expect(weights!.semantic).toBeGreaterThan(0.4);
    expect((await search("parser", { mode: "keyword" })).weights).toBeUndefined();
  });

  it("ranks the newest checkpoint first for a question about the state of the work", async () => {
    for (let n = 0; n < 12; n++) await save(`step ${n} of the import is done, and so is its report`);
    await sleep(5); // a later millisecond: records of one millisecond have no order
    const newest = await save("rate limiter done; retries come next");
    const { hits, weights } = await search("where was I, what is unfinished?");
    expect(hits[0]!.record.id).toBe(newest.id);
    expect(weights).toMatchObject({ recent: true });
  });

  it("raises a record whose neighbour in the same session matches too", async () => {
    const filler = (n: number) => `the build number ${n} of this long week was green again, and nobody had to look at anything`;
    const say = (summary: string, session: string) =>
      cairn.checkpoints.save({ projectPath: project, summary, context: { session_id: session } });
    for (let n = 0; n < 45; n++) await say(filler(n), `s${n}`);
    await say("how was the camping trip to the lake in the north with the children last week", "trip");
    const answer = await say("it rained the entire first night and so the tent of the children leaked", "trip");
    for (let n = 45; n < 90; n++) await say(filler(n), `s${n}`);
    const other = await say("the children of the neighbours found a trip hazard in the garden and the fence", "other");
    const ids = (await search("what happened on the camping trip with the children", { topK: 10 })).hits.map(({ record }) => record.id);
    expect(ids.indexOf(answer.id)).toBeGreaterThanOrEqual(0);
    expect(ids.slice(0, 3)).toContain(answer.id);
    expect(ids).toContain(other.id);
  });

  it.each(["down", "wrong dimension", "not finite", "too few"] as const)(
    "keeps the checkpoint when the embedder is %s, and finds it by keyword search",
    async (mood) => {
      await save("made while all was well");
      embedder.mood = mood;
      const saved = await save("the exporter writes twice");
      expect(saved.embedded).toBe(false);
      const { hits, degraded } = await search("exporter");
      expect(hits[0]!.record.id).toBe(saved.id);
      expect(degraded).toHaveLength(1);
      embedder.mood = "well";
      await cairn.embeddings.verify({ projectPath: project, collection: "checkpoints" });
      const after = await search("exporter");
      expect(after.hits[0]).toMatchObject({ record: { id: saved.id }, found: { semantic: { rank: 1 } } });
      expect(after.degraded).toEqual([]);
    },
  );

  it("filters first: a filter never makes a matching record unreachable", async () => {
    for (let i = 0; i < 150; i++) await save(`deploy the service ${i}`, ["common"]);
    const rare = await save("lunch", ["Rare %_'\","]);
    const { hits } = await search("deploy the service", { tags: ["rare %_'\","], topK: 1 });
    expect(hits.map(({ record }) => record.id)).toEqual([rare.id]);
    expect((await search("deploy", { tags: ["are %"], tagMatch: "substring" })).hits).toHaveLength(1);
    expect((await search("deploy", { tags: ["are %"] })).hits).toHaveLength(0);
    expect((await search("deploy", { tags: ["common", "rare %_'\","] })).hits).toHaveLength(0);
  });

  it.each(['"', "'", "NEAR(", "a AND", "*", "(", "-", "col:x", "^", "\\", "🦊", "a OR OR b"])(
    "takes %j as words, never as syntax",
    async (query) => {
      await save("some text");
      await expect(search(query)).resolves.toMatchObject({ degraded: [] });
      await expect(search(query, { mode: "keyword" })).resolves.toBeDefined();
    },
  );

  it("searches the edited text, not the earlier one", async () => {
    const saved = await save("alpha beta");
    await cairn.checkpoints.update({ projectPath: project, id: saved.id, summary: "gamma delta" });
    expect((await search("alpha", { mode: "keyword" })).hits).toEqual([]);
    const [hit] = (await search("gamma delta")).hits;
    expect(hit!.score).toBeGreaterThan(0.9);
    expect(hit!.record).toMatchObject({ summary: "gamma delta", revision: 2 });
  });

  it("forgets deleted records in every ranking", async () => {
    const saved = await save("to be forgotten");
    await cairn.checkpoints.delete({ projectPath: project, id: saved.id });
    expect((await search("forgotten")).hits).toEqual([]);
  });

  it("upgrades to another model, never mixing, and goes back", async () => {
    const texts = Array.from({ length: 70 }, (_, i) => `record number ${i} about topic ${i % 7}`);
    for (const text of texts) await save(text);
    const ref = { projectPath: project, collection: "checkpoints" as const };
    expect(await cairn.embeddings.upgrade({ ...ref, model: "other" })).toMatchObject({ embedded: 70, switched: true });
    expect((await search("topic 3")).model).toBe("other");
    const versions = await cairn.embeddings.list(ref);
    expect(versions.map(({ model, isCurrent, vectors }) => [model, isCurrent, vectors])).toEqual([
      ["test", false, 70],
      ["other", true, 70],
    ]);
    await save("saved after the switch");
    expect(await cairn.embeddings.rollback(ref)).toMatchObject({ model: "test", embedded: 1, switched: true });
    expect((await search("saved after the switch")).hits[0]!.record.summary).toBe("saved after the switch");
    expect(await cairn.embeddings.prune(ref)).toEqual({ versions: 1, vectors: 71 });
    expect(await cairn.embeddings.list(ref)).toHaveLength(1);
  });

  it("resumes an upgrade after the provider failed in the middle", async () => {
    for (let i = 0; i < 40; i++) await save(`note ${i}`);
    const ref = { projectPath: project, collection: "checkpoints" as const };
    await expect(cairn.embeddings.upgrade({ ...ref, model: "nonsense" })).rejects.toMatchObject({ code: "invalid_input" });
    const flaky = testEmbedder({ model: "flaky", dimension: 16 });
    await cairn.close();
    if (storage === "memory") return; // gone with its process
    cairn = await open({ storage, dataDir, embedder: [embedder, flaky] });
    const embed = flaky.embed;
    let batches = 0;
    flaky.embed = (texts, options) => (++batches > 1 && flaky.mood === "well" ? Promise.reject(new Error("gone")) : embed(texts, options));
    await expect(cairn.embeddings.upgrade({ ...ref, model: "flaky" })).rejects.toMatchObject({ code: "unavailable" });
    expect((await search("note 3")).model).toBe("test");
    flaky.embed = embed;
    expect(await cairn.embeddings.upgrade({ ...ref, model: "flaky" })).toMatchObject({ switched: true, embedded: 8 });
  });

  it("marks a record that was being embedded while another version became current, and fills it in", async () => {
    await save("first");
    const ref = { projectPath: project, collection: "checkpoints" as const };
    const { embed } = embedder;
    embedder.embed = async (texts, options) => {
      const vectors = await embed(texts, options);
      embedder.embed = embed;
      await cairn.embeddings.upgrade({ ...ref, model: "other" });
      return vectors;
    };
    expect(await save("second")).toMatchObject({ embedded: false });
    await vi.waitFor(async () => expect((await cairn.embeddings.list(ref))[1]).toMatchObject({ isCurrent: true, vectors: 2 }), 120_000);
  });
});

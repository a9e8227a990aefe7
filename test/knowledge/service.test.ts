import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { type TestEmbedder, testEmbedder } from "../support/embedders.ts";

const projectPath = "/srv/app";
const shared = { scope: "shared" } as const;

describe.each(["memory", "sqlite", ...(postgresWanted ? ["postgres"] : [])])("knowledge on %s", (kind) => {
  let cairn: Cairn;
  let storage = kind;
  let database: TestDatabase | undefined;
  let embedder: TestEmbedder;
  let other: TestEmbedder;
  let dataDir: string;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-knowledge-"));
    embedder = testEmbedder();
    other = testEmbedder({ model: "other", dimension: 32 });
    if (kind === "postgres") {
      database = await testDatabase();
      storage = database.url;
    }
    cairn = await open({ storage, dataDir, embedder: [embedder, other] });
  });
  afterEach(async () => {
    await cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true });
  });
  const save = (question: string, more = {}) =>
    cairn.knowledge.save({ projectPath, kind: "faq", question, answer: "It depends.", ...more });
  const search = (query: string, more = {}) => cairn.knowledge.search({ projectPath, query, ...more });
  const idsOf = async (query: string, more = {}) => (await search(query, more)).hits.map(({ record }) => record.id);

  it("saves, reads, lists by cursor, edits and deletes", async () => {
    const saved = await save("How do we release?", { id: "release", category: "ops" });
    expect(saved).toMatchObject({ id: "release", uses: 0, successes: 0, revision: 1, embedded: true, redacted: [] });
    await expect(save("Again?", { id: "release" })).rejects.toMatchObject({ code: "conflict" });
    for (let index = 0; index < 4; index++) await save(`Question ${index}`);
    const first = await cairn.knowledge.list({ projectPath, limit: 3 });
    const second = await cairn.knowledge.list({ projectPath, limit: 3, cursor: first.nextCursor });
    expect([first.records.length, second.records.length, second.nextCursor, first.total]).toEqual([3, 2, undefined, 5]);
    expect(new Set([...first.records, ...second.records].map(({ id }) => id)).size).toBe(5);
    await expect(cairn.knowledge.list({ projectPath, cursor: "made up" })).rejects.toMatchObject({ code: "invalid_input" });
    await cairn.knowledge.feedback({ projectPath, id: "release", success: true });
    const edited = await cairn.knowledge.update({ projectPath, id: "release", answer: "Push a tag." });
    expect(edited).toMatchObject({ question: "How do we release?", answer: "Push a tag.", uses: 1, successes: 1, revision: 2 });
    expect(edited.contentHash).not.toBe(saved.contentHash);
    expect(await cairn.knowledge.delete({ projectPath, id: "release" })).toMatchObject({ deleted: true });
    await expect(cairn.knowledge.get({ projectPath, id: "release" })).rejects.toMatchObject({ code: "not_found" });
    await expect(cairn.knowledge.feedback({ projectPath, id: "release", success: true })).rejects.toMatchObject({ code: "not_found" });
  });

  it("embeds again only a changed question: a new answer costs no call", async () => {
    const { id } = await save("How do we release?");
    expect(embedder.calls).toBe(1);
    await cairn.knowledge.update({ projectPath, id, answer: "Push a tag.", category: "ops" });
    expect(embedder.calls).toBe(1);
    await cairn.knowledge.update({ projectPath, id, question: "How do we deploy?" });
    expect(embedder.calls).toBe(2);
    expect((await search("How do we deploy?")).hits[0]!.score).toBeGreaterThan(0.99);
  });

  it("ranks by similarity, or with what helped before, and reports how sure it is", async () => {
    await save("restart the cache server now please", { id: "near" });
    await save("restart the cache server", { id: "helpful" });
    await save("weather report", { id: "far" });
    for (let use = 0; use < 20; use++) await cairn.knowledge.feedback({ projectPath, id: "helpful", success: true });
    for (let use = 0; use < 20; use++) await cairn.knowledge.feedback({ projectPath, id: "near", success: false });
    const query = "restart the cache server now please";
    expect(await idsOf(query)).toEqual(["near", "helpful", "far"]);
    const { hits } = await search(query, { ranking: "success" });
    expect(hits.map(({ record }) => record.id)).toEqual(["helpful", "near", "far"]);
    expect(hits[0]!.rankScore).toBeCloseTo(0.7 * hits[0]!.score + 0.3 * (21 / 22), 5);
    expect((await search(query)).hits.map(({ confidence }) => confidence)).toEqual(["high", "high", "low"]);
    expect((await search(query)).hits[2]!.warning).toMatch(/Very low/);
  });

  it("filters by kind, category and subcategory", async () => {
    await save("release", { id: "a", kind: "skill", category: "ops", subcategory: "npm" });
    await save("release", { id: "b", kind: "faq", category: "ops", subcategory: "docker" });
    expect(await idsOf("release", { kind: "skill" })).toEqual(["a"]);
    expect(await idsOf("release", { category: "ops", subcategory: "docker" })).toEqual(["b"]);
    expect(await idsOf("release", { category: "op" })).toEqual([]);
  });

  it("works in Russian", async () => {
    await save("Как открыть вклад Мои условия?", { id: "deposit", category: "Продукты - Вклады", subcategory: "Рублевые - Мои условия" });
    await save("Как заблокировать карту?", { id: "card", category: "Карты" });
    expect((await idsOf("открыть вклад"))[0]).toBe("deposit");
    expect((await idsOf("заблокировать КАРТУ", { mode: "keyword" }))[0]).toBe("card");
    expect(await idsOf("вклад", { category: "Карты" })).toEqual(["card"]);
  });

  it("puts the remedy for the same error first, whatever its numbers, paths and values", async () => {
    const remediation = { kind: "remediation", answer: "Start PostgreSQL." };
    await save("Error: connect ECONNREFUSED 127.0.0.1:5432\n    at TCPConnect (/srv/app/net.js:10:2)", { id: "refused", ...remediation });
    for (let index = 0; index < 8; index++)
      await save(`Error: connect ETIMEDOUT at TCPConnect net.js in pool ${index}`, { id: `timeout-${index}`, ...remediation });
    const asked = "Error: connect ECONNREFUSED 10.1.2.3:6543\n    at Socket.open (/home/me/other.js:99:1)";
    const { hits } = await search(asked);
    expect(hits[0]).toMatchObject({ record: { id: "refused" }, sameError: true, confidence: "high" });
    expect(hits.filter(({ sameError }) => sameError)).toHaveLength(1);
    expect((await search(asked, { kind: "faq" })).hits).toEqual([]);
  });

  it("searches project and shared together, or one of them, and merges by score under one model", async () => {
    await save("deploy the web shop", { id: "mine" });
    await save("deploy the web shop today", { id: "ours", projectPath: undefined, ...shared });
    await save("deploy", { id: "theirs", projectPath: "/srv/else" });
    const both = await search("deploy the web shop today");
    expect(both.hits.map(({ record, scope }) => [record.id, scope])).toEqual([
      ["ours", "shared"],
      ["mine", "project"],
    ]);
    expect(both.scopes).toEqual(["project", "shared"]);
    expect(await idsOf("deploy", { scope: "project" })).toEqual(["mine"]);
    expect(await idsOf("deploy", { ...shared, projectPath: undefined })).toEqual(["ours"]);
    expect(await cairn.projects()).not.toContain("shared");
  });

  it("never compares scores of two models: the lists take turns", async () => {
    for (let index = 0; index < 3; index++) await save(`alpha beta gamma ${index}`, { id: `mine-${index}` });
    for (let index = 0; index < 3; index++) await save(`alpha ${index} other words here`, { id: `ours-${index}`, ...shared });
    await cairn.embeddings.upgrade({ projectPath: "shared", collection: "knowledge", model: "other" });
    const { hits, model } = await search("alpha beta gamma");
    expect(hits.map(({ scope }) => scope)).toEqual(["project", "shared", "project", "shared", "project"]);
    expect(model).toBe("test, other");
  });

  it("stores a record while the embedder is down, finds it by keyword, and embeds it later", async () => {
    await save("made while all was well");
    embedder.mood = "down";
    const saved = await save("the exporter writes twice");
    expect(saved.embedded).toBe(false);
    const { hits, degraded } = await search("exporter");
    expect(hits[0]).toMatchObject({ record: { id: saved.id }, confidence: "low", warning: expect.stringMatching(/words alone/) });
    expect(degraded).toHaveLength(1);
    embedder.mood = "well";
    const ref = { projectPath, collection: "knowledge" as const };
    expect(await cairn.embeddings.verify(ref)).toMatchObject({ missing: 0 });
    expect((await search("the exporter writes twice")).hits[0]!.score).toBeGreaterThan(0.99);
  });

  it("reports how ready the shared knowledge is", async () => {
    expect(await cairn.knowledge.readiness()).toEqual({ records: 0, vectors: 0, ready: true });
    await save("one", shared);
    embedder.mood = "down";
    await save("two", shared);
    expect(await cairn.knowledge.readiness()).toEqual({ records: 2, vectors: 1, ready: false });
  });

  it("refuses an edit with the text of a shortened answer", async () => {
    const { id } = await save("How do we release?");
    const answer = "Run the first steps … [cut; use knowledge_get]";
    await expect(cairn.knowledge.update({ projectPath, id, answer })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("Read the whole text with knowledge_get"),
    });
  });

  it("takes secrets out before it stores or embeds", async () => {
    const token = `ghp_${"a1B2c3D4e5F6g7H8i9J0".repeat(2).slice(0, 36)}`;
    const saved = await save(`Why does ${token} fail?`, { answer: `Replace ${token}.` });
    expect(JSON.stringify(await cairn.knowledge.get({ projectPath, id: saved.id }))).not.toContain(token);
    expect(saved.redacted.map(({ field }) => field)).toEqual(["question", "answer"]);
  });

  it("lets no checkpoint into what is shared, and no project be called so", async () => {
    await expect(cairn.checkpoints.save({ projectPath: "shared", summary: "x" })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(cairn.checkpoints.list({ projectPath: "shared" })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(save("x", { projectPath: "shared" })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(save("x", { projectPath: undefined })).rejects.toMatchObject({ code: "invalid_input" });
  });
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { longDescription, TOPICS } from "../recall/long-records.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";
import { API_KEY, openQdrantPlace, type QdrantPlace, qdrantPlaces } from "../support/qdrant-place.ts";
import { qdrantStandIn } from "../support/qdrant-server.ts";

const places = ["sqlite", ...(postgresWanted ? ["postgres"] : [])].flatMap((storage) =>
  qdrantPlaces.map((server) => ({ storage, server })),
);
const project = `/srv/qdrant-${process.pid}`;
const ref = { projectPath: project, collection: "checkpoints" as const };
const WAIT = { timeout: 120_000, interval: 50 };

describe.each(places)("Qdrant ($server) beside $storage", ({ storage: kind, server }) => {
  let place: QdrantPlace;
  let storage: string;
  let database: TestDatabase | undefined;
  let dataDir: string;
  const opened: Cairn[] = [];
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-qdrant-"));
    place = await openQdrantPlace(server);
    if (kind === "postgres") database = await testDatabase();
    storage = database?.url ?? kind;
  });
  afterEach(async () => {
    for (const cairn of opened.splice(0)) await cairn.close();
    await place.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const MODELS = [testEmbedder({ model: "test-first" }), testEmbedder({ model: "test-other", dimension: 32 })];
  async function start(qdrant: { url?: string | undefined } = { url: place.url }): Promise<Cairn> {
    const cairn = await open({ storage, dataDir, embedder: MODELS, qdrant: { apiKey: API_KEY, ...qdrant } });
    opened.push(cairn);
    return cairn;
  }
  async function close(cairn: Cairn): Promise<void> {
    opened.splice(opened.indexOf(cairn), 1);
    await cairn.close();
  }
  const save = (cairn: Cairn, summary: string, tags: string[] = [], projectPath = project) =>
    cairn.checkpoints.save({ projectPath, summary, tags });
  const search = (cairn: Cairn, query: string, more = {}) => cairn.checkpoints.search({ projectPath: project, query, topK: 10, ...more });
  const summarise = ({ hits }: Awaited<ReturnType<typeof search>>) => hits.map(({ record, score }) => [record.id, score.toFixed(5)]);
  /** Waits until Qdrant has exactly N points of the project, in one tenant, and returns the tenant. */
  const copied = (count: number, projectPath = project, collection = "checkpoints") =>
    vi.waitFor(async () => {
      const [[tenant, ids] = ["", []], ...others] = [...(await place.tenants(projectPath, collection))];
      expect(others).toEqual([]);
      expect(ids).toHaveLength(count);
      return tenant;
    }, WAIT);
  const modelCollections = async () => (await place.client.collections()).filter((name) => name.startsWith("cairn_test-"));
  /** Where the points of the project are. */
  const pointsOf = async (tenant: string) => ({ tenant, collection: (await modelCollections())[0]! });

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
    if (place.standIn) expect(place.standIn.calls.filter((call) => call.endsWith("/points/query")).length).toBeGreaterThan(5);
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
    await cairn.embeddings.upgrade({ ...ref, model: "test-other" });
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
    await copied(0, from);
  });

  it("deletes the points of a merged project although Qdrant fails during the merge", async () => {
    const cairn = await start();
    const from = `${project}/packages/api`;
    await save(cairn, "leaves this project", [], from);
    await copied(1, from);
    if (place.standIn) place.standIn.trouble = "error 500";
    await cairn.transfer.merge({ from, into: project });
    if (place.standIn) place.standIn.trouble = undefined;
    await copied(1);
    await copied(0, from);
  });

  it("loses nothing while Qdrant is away: the database answers, reports it, and the outbox waits", async () => {
    const away = await start({ url: "http://127.0.0.1:1" });
    const { id } = await save(away, "saved without Qdrant");
    const { hits, degraded } = await search(away, "saved without Qdrant");
    expect(hits[0]).toMatchObject({ record: { id }, found: { semantic: { rank: 1 } } });
    expect(degraded).toHaveLength(1);
    expect(degraded[0]).toContain("the database searched its own vectors");
    await close(away);
    // A process without Qdrant writes changes down as well.
    const plain = await start({ url: undefined });
    await save(plain, "saved by a process that knows no Qdrant");
    await close(plain);
    const cairn = await start();
    await search(cairn, "anything");
    await copied(2);
  });

  it("copies every acknowledged record, although Qdrant is killed in between", async () => {
    const cairn = await start();
    const saved = [await save(cairn, "before the kill")];
    await copied(1);
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 5; i++) saved.push(await save(cairn, `round ${round}, record ${i}`));
      await place.restart(async () => {
        saved.push(await save(cairn, `round ${round}, while it is down`));
        const { hits } = await search(cairn, `round ${round}, while it is down`, { mode: "semantic" });
        expect(hits[0]!.record.id).toBe(saved.at(-1)!.id);
      });
    }
    const tenant = await copied(19);
    expect((await place.tenants(project)).get(tenant)).toEqual(saved.map(({ id }) => id).sort());
    await vi.waitFor(async () => expect((await search(cairn, "record 3")).degraded).toEqual([]), WAIT);
  });

  it("keeps the points of all projects in one collection per model, and each search reads one project", async () => {
    const cairn = await start();
    const theirs = `${project}-other`;
    for (let i = 0; i < 5; i++) {
      await save(cairn, `the same text ${i}`);
      await save(cairn, `the same text ${i}`, [], theirs);
    }
    const [mine, other] = [await copied(5), await copied(5, theirs)];
    expect(mine).not.toBe(other);
    expect(await modelCollections()).toHaveLength(1);
    const ids = new Set((await cairn.checkpoints.list({ projectPath: project })).checkpoints.map(({ id }) => id));
    const { hits, degraded } = await search(cairn, "the same text 3", { mode: "semantic" });
    expect(degraded).toEqual([]);
    expect(hits).toHaveLength(5);
    expect(hits.every(({ record }) => ids.has(record.id))).toBe(true);
    for (const id of ids) await cairn.checkpoints.purge({ projectPath: project, id });
    await copied(0);
    await copied(5, theirs);
  });

  it("names no point of another tenant, whichever key is removed", async () => {
    const cairn = await start();
    await save(cairn, "mine");
    await save(cairn, "theirs", [], `${project}-other`);
    const mine = await pointsOf(await copied(1));
    const theirs = await pointsOf(await copied(1, `${project}-other`));
    const { keys } = await place.client.scroll(theirs, undefined, 10);
    expect(keys).toHaveLength(1);
    await place.client.remove(mine, [...keys, 77_777]);
    expect(await place.client.count(theirs)).toBe(1);
    await place.client.removeTenant(mine);
    expect([await place.client.count(mine), await place.client.count(theirs)]).toEqual([0, 1]);
    expect([await place.client.isMarked(mine), await place.client.isMarked(theirs)]).toEqual([false, true]);
  });

  it("completes a collection that a killed process left without indexes", async () => {
    const probe = await start();
    await save(probe, "to learn the name of the collection");
    await copied(1);
    const [name] = await modelCollections();
    await close(probe);
    await place.client.deleteCollection(name!);
    await place.client.createCollection(name!, 64);
    expect([...(await place.client.describe(name!))!.indexes]).toEqual([]);
    const cairn = await start();
    await save(cairn, "second");
    await copied(2);
    const { indexes, dimension } = (await place.client.describe(name!))!;
    expect(dimension).toBe(64);
    expect([...indexes].sort()).toEqual([
      ["id", { tenant: false }],
      ["tenant", { tenant: true }],
    ]);
  });

  it("creates one collection when several processes start at the same time", async () => {
    const nodes = await Promise.all(Array.from({ length: 4 }, () => start()));
    await Promise.all(nodes.map((cairn, node) => save(cairn, `from node ${node}`, [], `${project}-${node}`)));
    for (const node of nodes.keys()) await copied(1, `${project}-${node}`);
    const [name, ...others] = await modelCollections();
    expect(others).toEqual([]);
    expect((await place.client.describe(name!))!.indexes.size).toBe(2);
  });

  it("copies everything again after another process created the collection again", async () => {
    const cairn = await start();
    for (let i = 0; i < 10; i++) await save(cairn, `record ${i}`);
    await copied(10);
    const [name] = await modelCollections();
    await place.client.deleteCollection(name!);
    const other = await start();
    await save(other, "first in the new collection", [], `${project}-other`);
    await copied(1, `${project}-other`);
    await save(cairn, "record 10");
    await copied(11);
    await vi.waitFor(async () => expect((await search(cairn, "record 3")).degraded).toEqual([]), WAIT);
  });

  it("finds all records after the points of a project disappeared", async () => {
    const cairn = await start();
    for (let i = 0; i < 10; i++) await save(cairn, `record ${i}`);
    await place.client.removeTenant(await pointsOf(await copied(10)));
    const { hits } = await search(cairn, "record 3", { mode: "semantic" });
    expect(hits).toHaveLength(10);
    const { hits: tagged } = await search(cairn, "record 3", { mode: "semantic", tags: ["none"] });
    expect(tagged).toEqual([]);
  });

  it("reports a refused vector as a mistake of the request", async () => {
    const cairn = await start();
    await save(cairn, "a record");
    const at = await pointsOf(await copied(1));
    await expect(place.client.upsert(at, [{ key: 5, vector: new Float32Array(3).fill(1), id: "bad" }])).rejects.toMatchObject({
      code: "unavailable",
      details: { scope: "tenant", status: 400 },
    });
    expect(await place.client.count(at)).toBe(1);
  });

  it("puts right what differs: points that are missing, orphans, a collection that is gone", async () => {
    const cairn = await start();
    for (let i = 0; i < 20; i++) await save(cairn, `record ${i}`);
    const at = await pointsOf(await copied(20));
    const { keys } = await place.client.scroll(at, undefined, 100);
    // The same count, yet not the same points: only a thorough look finds it.
    await place.client.remove(at, keys.slice(0, 2));
    await place.client.upsert(
      at,
      [77_777, 88_888].map((key) => ({ key, vector: new Float32Array(64).fill(1), id: "orphan" })),
    );
    await cairn.embeddings.verify(ref);
    await vi.waitFor(async () => expect((await place.client.scroll(at, undefined, 100)).keys).toEqual(keys), WAIT);
    // The right key with a wrong vector and a wrong record.
    await place.client.upsert(at, [{ key: keys[0]!, vector: new Float32Array(64).fill(1), id: "another" }]);
    await cairn.embeddings.verify(ref);
    await vi.waitFor(async () => expect((await place.tenants(project)).get(at.tenant)).not.toContain("another"), WAIT);
    // Pages are in the order of the keys.
    const first = await place.client.scroll(at, undefined, 7);
    expect(await place.client.scroll(at, first.next, 100)).toEqual({ keys: keys.slice(7), next: undefined });
    await close(cairn);
    await place.client.deleteCollection(at.collection);
    await search(await start(), "record 3");
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
    await copied(1, project, "knowledge");
    const alone = await start({ url: undefined });
    const [answer, right] = await Promise.all(
      [cairn, alone].map((one) => one.knowledge.search({ projectPath: project, query: "password reset" })),
    );
    expect(answer).toEqual(right);
    expect(JSON.stringify(answer)).toContain(id);
    await cairn.knowledge.delete({ projectPath: project, id });
    await copied(0, project, "knowledge");
    await copied(1);
  });

  it("follows an upgrade of the model, and deletes the points of pruned versions", async () => {
    const cairn = await start();
    for (let i = 0; i < 10; i++) await save(cairn, `record ${i}`);
    await save(cairn, "of another project", [], `${project}-other`);
    const before = await copied(10);
    await cairn.embeddings.upgrade({ ...ref, model: "test-other" });
    await vi.waitFor(async () => expect([...(await place.tenants(project)).values()].map((ids) => ids.length)).toEqual([10, 10]), WAIT);
    expect(await modelCollections()).toHaveLength(2);
    await vi.waitFor(async () => expect((await search(cairn, "record 3")).degraded).toEqual([]), WAIT);
    expect((await search(cairn, "record 3")).model).toBe("test-other");
    await cairn.embeddings.prune(ref);
    expect(await copied(10)).not.toBe(before);
    await copied(1, `${project}-other`);
  });

  describe.runIf(server === "the stand-in")("on failures", () => {
    it.each(["hang up", "error 500", "garbage"] as const)("continues without Qdrant on: %s", async (trouble) => {
      const cairn = await start();
      const { id } = await save(cairn, "a record");
      await copied(1);
      place.standIn!.trouble = trouble;
      const { hits, degraded } = await search(cairn, "a record");
      expect(hits[0]!.record.id).toBe(id);
      expect(degraded).toHaveLength(1);
      place.standIn!.trouble = undefined;
    });

    it.each(["acknowledged", "wait_timeout"] as const)("keeps a change in the outbox while Qdrant answers %s", async (status) => {
      const standIn = place.standIn!;
      const cairn = await start();
      await save(cairn, "a record");
      await copied(1);
      standIn.updateStatus = status;
      await save(cairn, "another record");
      const upserts = () => standIn.calls.filter((call) => /^PUT .*points$/.test(call)).length;
      const before = upserts();
      await vi.waitFor(() => expect(upserts()).toBeGreaterThan(before + 1), WAIT); // it is repeated
      standIn.updateStatus = undefined;
      await vi.waitFor(async () => expect((await search(cairn, "another record")).degraded).toEqual([]), WAIT);
      await copied(2);
    });

    it("pauses only the project that failed, and never names another", async () => {
      const standIn = place.standIn!;
      const cairn = await start();
      const theirs = `${project}-other`;
      await save(cairn, "mine");
      await save(cairn, "theirs", [], theirs);
      const [mine, other] = [await copied(1), await copied(1, theirs)];
      standIn.refuse = ({ path, body }) =>
        path.endsWith("/points/query") && body.includes(mine) ? { status: 500, error: `failed for ${mine} and ${other}` } : undefined;
      const { degraded } = await search(cairn, "mine");
      expect(degraded).toHaveLength(1);
      expect(degraded[0]).not.toContain("project_");
      const answer = await cairn.checkpoints.search({ projectPath: theirs, query: "theirs" });
      expect(answer.degraded).toEqual([]);
      standIn.refuse = undefined;
    });

    it("copies the other points when Qdrant refuses one, and still finds its record", async () => {
      const standIn = place.standIn!;
      const cairn = await start();
      await save(cairn, "first");
      await copied(1);
      const saved = [];
      standIn.trouble = "error 500";
      for (let i = 0; i < 20; i++) saved.push(await save(cairn, `record ${i}`));
      const bad = saved[7]!;
      standIn.refuse = ({ method, body }) =>
        method === "PUT" && body.includes(bad.id) ? { status: 400, error: "Wrong input: a strange vector" } : undefined;
      standIn.trouble = undefined;
      const tenant = await copied(20);
      expect((await place.tenants(project)).get(tenant)).not.toContain(bad.id);
      await vi.waitFor(async () => expect((await search(cairn, "record 7")).degraded).toEqual([]), WAIT);
      const { hits } = await search(cairn, "record 7", { mode: "semantic" });
      expect(hits[0]!.record.id).toBe(bad.id);
      await save(cairn, "another record");
      await copied(21);
      standIn.refuse = undefined;
      await cairn.embeddings.verify(ref);
      await copied(22);
    });

    it("neither lists nor counts points when a record is saved", async () => {
      const standIn = place.standIn!;
      const cairn = await start();
      await save(cairn, "the first pass compares");
      const at = await pointsOf(await copied(1));
      await vi.waitFor(async () => expect(await place.client.isMarked(at)).toBe(true), WAIT); // the end of the pass
      standIn.calls.splice(0);
      for (let i = 0; i < 5; i++) {
        await save(cairn, `record ${i}`);
        await copied(i + 2);
      }
      expect(standIn.calls.length).toBeGreaterThanOrEqual(5);
      expect(standIn.calls.filter((call) => call.endsWith("/points/count") || call.startsWith("GET"))).toEqual([]);
      // One upsert and one look at the mark of the tenant.
      expect(standIn.calls.length).toBeLessThanOrEqual(10);
    });
  });
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
  expect(standIn.violations.filter((violation) => violation.includes("names no tenant"))).toHaveLength(2);
  expect(standIn.violations).toHaveLength(5);
  await standIn.close();
});

import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { vectorSearcher } from "../../../src/stores/sqlite/vectors/searcher.ts";
import { vectorWriter } from "../../../src/stores/sqlite/vectors/writer.ts";
import { vectorReader } from "./read-vectors.ts";
import { bruteForce, openVectors, problems, temporaryFile, vectorOf, vectorsOf } from "./support.ts";

type Step =
  | { kind: "put"; from: number; count: number; seed: number }
  | { kind: "remove"; from: number; count: number; every: number }
  | { kind: "search"; seed: number; limit: number; filter: number }
  | { kind: "reopen" };

const KEYS = 1_500;
const from = fc.integer({ min: 0, max: KEYS });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("put"), from, count: fc.constantFrom(1, 7, 300, 700), seed: fc.nat(50) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("remove"), from, count: fc.constantFrom(1, 40, 600), every: fc.constantFrom(1, 2, 5) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("search"),
      seed: fc.nat(500),
      limit: fc.constantFrom(1, 10, 100),
      filter: fc.constantFrom(0, 0, 1, 3, 50),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reopen") }) },
) as fc.Arbitrary<Step>;

describe("vectors in SQLite", () => {
  it("answers like a search through everything, whatever was put, replaced, removed and reopened before", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(3, 40, 1536), fc.array(step, { minLength: 3, maxLength: 16 }), async (dimension, steps) => {
        const path = temporaryFile();
        let database = await openVectors(path);
        const searcher = vectorSearcher({ path, onRepair: (report) => expect.fail(report.reason) });
        const model = new Map<number, Float32Array>();
        for (const action of steps) {
          if (action.kind === "put") {
            const entries = Array.from({ length: action.count }, (_, i) => ({
              key: action.from + i,
              vector: vectorOf(action.from + i + action.seed * 10_000, dimension),
            }));
            await database.write((tx) => vectorWriter(tx).put("c", 1, entries));
            for (const { key, vector } of entries) model.set(key, vector);
          } else if (action.kind === "remove") {
            const keys = Array.from({ length: action.count }, (_, i) => action.from + i * action.every);
            await database.write((tx) => vectorWriter(tx).remove("c", 1, keys));
            for (const key of keys) model.delete(key);
          } else if (action.kind === "search") {
            const query = vectorOf(action.seed, dimension);
            const allow = action.filter > 0 ? [...model.keys(), 5_000_000].filter((key) => key % action.filter === 0) : undefined;
            const found = await searcher.search({
              collection: "c",
              versionId: 1,
              query,
              limit: action.limit,
              allow: allow && Int32Array.from(allow),
            });
            const expected = bruteForce(model, query, action.limit, allow && new Set(allow));
            expect(found.map(({ score }) => score.toFixed(6))).toEqual(expected.map(({ score }) => score.toFixed(6)));
            for (const { key, score } of found) expect(score).toBeCloseTo(bruteForce(model, query, 1, new Set([key]))[0]!.score, 6);
          } else {
            searcher.close();
            database.close();
            database = await openVectors(path);
          }
        }
        expect(problems(database)).toEqual([]);
        searcher.close();
      }),
      { numRuns: 20 },
    );
  });

  it("keeps collections and versions of different dimension apart", async () => {
    const { path, database, searcher } = await store();
    await database.write((tx) => {
      const writer = vectorWriter(tx);
      writer.put("checkpoints", 1, vectorsOf(1, 50, 256));
      writer.put("checkpoints", 2, vectorsOf(1, 40, 384));
      writer.put("knowledge", 1, vectorsOf(500, 520, 256));
    });
    const search = (collection: string, versionId: number, dimension: number) =>
      searcher.search({ collection, versionId, query: vectorOf(3, dimension), limit: 100 });
    expect(await search("checkpoints", 1, 256)).toHaveLength(49);
    expect(await search("checkpoints", 2, 384)).toHaveLength(39);
    expect((await search("knowledge", 1, 256)).every(({ key }) => key >= 500)).toBe(true);

    await database.write((tx) => vectorWriter(tx).dropVersion("checkpoints", 1));
    expect(await search("checkpoints", 1, 256)).toEqual([]);
    expect(await search("checkpoints", 2, 384)).toHaveLength(39);
    expect(database.read((tx) => tx.all("SELECT DISTINCT dimension, collection FROM vector_collections ORDER BY id"))).toHaveLength(2);
    expect(database.read((tx) => vectorReader(tx).count("checkpoints", 1))).toBe(0);
    // The name may be used again, with another dimension.
    await database.write((tx) => vectorWriter(tx).put("checkpoints", 1, vectorsOf(1, 3, 64)));
    expect(await search("checkpoints", 1, 64)).toHaveLength(2);
    expect(path).toBeTruthy();
  });

  it("gives the exact cosine, also for vectors that were not of length one", async () => {
    const { database, searcher } = await store();
    const long = Float32Array.from([3, 4, 0]);
    await database.write((tx) => vectorWriter(tx).put("c", 1, [{ key: 1, vector: long }]));
    const [hit] = await searcher.search({ collection: "c", versionId: 1, query: Float32Array.from([0, 10, 0]), limit: 5 });
    expect(hit!.key).toBe(1);
    expect(hit!.score).toBeCloseTo(0.8, 6);
    expect(database.read((tx) => [...vectorReader(tx).get("c", 1, 1)!])).toEqual([Math.fround(0.6), Math.fround(0.8), 0]);
  });

  it("puts equal vectors in the order of their keys", async () => {
    const { database, searcher } = await store();
    const vector = vectorOf(1, 32);
    const keys = Array.from({ length: 400 }, (_, i) => ((i * 7919) % 400) + 1);
    await database.write((tx) =>
      vectorWriter(tx).put(
        "c",
        1,
        keys.map((key) => ({ key, vector })),
      ),
    );
    const hits = await searcher.search({ collection: "c", versionId: 1, query: vector, limit: 10 });
    expect(hits.map(({ key }) => key)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it("finds nothing in an empty collection, an unknown one, or with an empty filter", async () => {
    const { database, searcher } = await store();
    const query = vectorOf(1, 16);
    expect(await searcher.search({ collection: "c", versionId: 1, query, limit: 10 })).toEqual([]);
    await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(1, 10, 16)));
    expect(await searcher.search({ collection: "c", versionId: 1, query, limit: 10, allow: new Int32Array() })).toEqual([]);
    await database.write((tx) => vectorWriter(tx).remove("c", 1, [1, 2, 3, 4, 5, 6, 7, 8, 9]));
    expect(await searcher.search({ collection: "c", versionId: 1, query, limit: 10 })).toEqual([]);
  });

  it("takes filters of a million keys, in any order and with repetitions", async () => {
    const { database, searcher } = await store();
    await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(0, 2_000, 24)));
    const model = new Map(vectorsOf(0, 2_000, 24).map(({ key, vector }) => [key, vector]));
    const allow = Int32Array.from({ length: 1_000_000 }, (_, i) => 2_000_000 - (i % 999_000) * 2);
    allow[5] = 7;
    allow[6] = 7;
    const query = vectorOf(77, 24);
    const found = await searcher.search({ collection: "c", versionId: 1, query, limit: 20, allow });
    expect(found.map(({ key }) => key)).toEqual(bruteForce(model, query, 20, new Set(allow)).map(({ key }) => key));
    await expect(
      searcher.search({ collection: "c", versionId: 1, query, limit: 20, allow: new Int32Array(4_000_001) }),
    ).rejects.toMatchObject({ code: "too_large" });
  });

  it("refuses what is not a vector, and stores nothing of the batch", async () => {
    const { database, searcher } = await store();
    const good = { key: 1, vector: vectorOf(1, 8) };
    await database.write((tx) => vectorWriter(tx).put("c", 1, [good]));
    const bad: [string, { key: number; vector: Float32Array }][] = [
      ["another dimension", { key: 2, vector: vectorOf(1, 9) }],
      ["NaN", { key: 2, vector: Float32Array.from([1, Number.NaN, 0, 0, 0, 0, 0, 0]) }],
      ["infinity", { key: 2, vector: Float32Array.from([1, Number.POSITIVE_INFINITY, 0, 0, 0, 0, 0, 0]) }],
      ["zero", { key: 2, vector: new Float32Array(8) }],
      ["a fractional key", { key: 1.5, vector: vectorOf(1, 8) }],
      ["a negative key", { key: -1, vector: vectorOf(1, 8) }],
      ["a key beyond 32 bits", { key: 2 ** 31, vector: vectorOf(1, 8) }],
    ];
    for (const [what, entry] of bad) {
      const entries = [{ key: 50, vector: vectorOf(50, 8) }, entry];
      await expect(
        database.write((tx) => vectorWriter(tx).put("c", 1, entries)),
        what,
      ).rejects.toMatchObject({ code: "invalid_input" });
    }
    await expect(database.write((tx) => vectorWriter(tx).put("c", 1, [{ key: 2, vector: vectorOf(1, 9) }]))).rejects.toThrow(
      /has vectors of 8 components, not 9/,
    );
    await expect(
      database.write((tx) => vectorWriter(tx).put("c", 2, [{ key: 2, vector: new Float32Array(5000).fill(1) }])),
    ).rejects.toThrow(/1 to 4096/);
    expect(database.read((tx) => vectorReader(tx).count("c", 1))).toBe(1);
    const search = (query: Float32Array, limit = 5) => searcher.search({ collection: "c", versionId: 1, query, limit });
    await expect(search(vectorOf(1, 9))).rejects.toMatchObject({ code: "invalid_input" });
    await expect(search(new Float32Array(8))).rejects.toMatchObject({ code: "invalid_input" });
    await expect(search(Float32Array.from([Number.NaN]))).rejects.toMatchObject({ code: "invalid_input" });
    await expect(search(good.vector, 0)).rejects.toMatchObject({ code: "invalid_input" });
    await expect(search(good.vector, 1e9)).rejects.toMatchObject({ code: "invalid_input" });
    expect(await search(good.vector)).toHaveLength(1);
  });

  it("undoes vectors and codes together with the transaction", async () => {
    const { database, searcher } = await store();
    await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(0, 700, 64)));
    await expect(
      database.write((tx) => {
        vectorWriter(tx).remove(
          "c",
          1,
          Array.from({ length: 650 }, (_, i) => i),
        );
        vectorWriter(tx).put("c", 1, vectorsOf(1000, 1900, 64));
        throw new Error("changed my mind");
      }),
    ).rejects.toThrow("changed my mind");
    expect(problems(database)).toEqual([]);
    const hits = await searcher.search({ collection: "c", versionId: 1, query: vectorOf(1500, 64), limit: 1000 });
    expect(hits).toHaveLength(700);
  });

  it("uses no more room after many replacements and removals than the vectors need", async () => {
    const { database } = await store();
    const dimension = 384;
    for (let round = 0; round < 8; round++) {
      await database.write((tx) =>
        vectorWriter(tx).put(
          "c",
          1,
          vectorsOf(0, 1_000, dimension).map(({ key }) => ({ key, vector: vectorOf(key + round, dimension) })),
        ),
      );
      await database.write((tx) =>
        vectorWriter(tx).remove(
          "c",
          1,
          Array.from({ length: 500 }, (_, i) => 2 * i),
        ),
      );
    }
    const { codes } = database.read((tx) => tx.get<{ codes: number }>("SELECT sum(length(codes)) AS codes FROM vector_segment_bodies"))!;
    const { delta } = database.read((tx) => tx.get<{ delta: number }>("SELECT count(*) AS delta FROM vector_delta"))!;
    expect(codes).toBeLessThanOrEqual(2 * 500 * dimension + delta * dimension);
    expect(delta).toBeLessThanOrEqual(512);
    expect(problems(database)).toEqual([]);
  });

  it("can be cancelled", async () => {
    const { database, searcher } = await store();
    await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(0, 100, 64)));
    const search = (signal: AbortSignal) => searcher.search({ collection: "c", versionId: 1, query: vectorOf(1, 64), limit: 3, signal });
    await expect(search(AbortSignal.abort())).rejects.toMatchObject({ name: "AbortError" });
    const controller = new AbortController();
    const many = Array.from({ length: 8 }, () => search(controller.signal));
    controller.abort();
    for (const result of await Promise.allSettled(many)) expect(result.status).toBe("rejected");
    expect(await search(new AbortController().signal)).toHaveLength(3);
  });

  it("finds nothing in a file that does not exist", async () => {
    const searcher = vectorSearcher({ path: temporaryFile() });
    expect(await searcher.search({ collection: "c", versionId: 1, query: vectorOf(1, 4), limit: 1 })).toEqual([]);
  });
});

async function store() {
  const path = temporaryFile();
  const database = await openVectors(path);
  const searcher = vectorSearcher({ path, onRepair: (report) => expect.fail(report.reason) });
  onTestFinished(() => searcher.close());
  return { path, database, searcher };
}

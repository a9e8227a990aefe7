import { describe, expect, it, onTestFinished } from "vitest";
import type { SqliteDatabase } from "../../../src/stores/sqlite/driver/driver.ts";
import { buildLists } from "../../../src/stores/sqlite/vectors/build-lists.ts";
import { findCollection } from "../../../src/stores/sqlite/vectors/collection.ts";
import { randomNumbers } from "../../../src/stores/sqlite/vectors/kmeans.ts";
import { vectorSearcher } from "../../../src/stores/sqlite/vectors/searcher.ts";
import { vectorWriter } from "../../../src/stores/sqlite/vectors/writer.ts";
import { bruteForce, openVectors, problems, temporaryFile, vectorOf, vectorsOf } from "./support.ts";

const DIMENSION = 192;
const COUNT = 7_000;

describe("inverted lists", () => {
  it("find what a full scan finds, through inserts, replacements and removals", async () => {
    const { path, database, model } = await filled();
    const searcher = vectorSearcher({ path, listsAbove: 5_000, onRepair: (report) => expect.fail(report.reason) });
    onTestFinished(() => searcher.close());
    await searcher.buildLists("c", 1);
    expect(shape(database)).toMatchObject({ unlisted: expect.any(Number), listed: expect.any(Number) });
    expect(shape(database).listed).toBeGreaterThan(COUNT * 0.9);
    expect(problems(database)).toEqual([]);
    expect(await recall(searcher, model)).toBeGreaterThanOrEqual(0.95);

    for (let round = 0; round < 4; round++) {
      const fresh = vectorsOf(COUNT + round * 400, COUNT + round * 400 + 400, DIMENSION);
      const replaced = vectorsOf(round * 300, round * 300 + 300, DIMENSION).map(({ key }) => ({
        key,
        vector: vectorOf(key + 5, DIMENSION),
      }));
      const removed = Array.from({ length: 200 }, (_, i) => 3_000 + round * 700 + i * 3);
      await database.write((tx) => {
        vectorWriter(tx).put("c", 1, [...fresh, ...replaced]);
        vectorWriter(tx).remove("c", 1, removed);
      });
      for (const { key, vector } of [...fresh, ...replaced]) model.set(key, vector);
      for (const key of removed) model.delete(key);
      expect(await recall(searcher, model)).toBeGreaterThanOrEqual(0.95);
    }
    expect(problems(database)).toEqual([]);

    // A filter asks for everything that matches, so it goes past the lists.
    const query = vectorOf(123, DIMENSION);
    const allow = Int32Array.from([...model.keys()].filter((key) => key % 20 === 3));
    const found = await searcher.search({ collection: "c", versionId: 1, query, limit: 50, allow });
    expect(found.map(({ key }) => key)).toEqual(bruteForce(model, query, 50, new Set(allow)).map(({ key }) => key));

    await searcher.buildLists("c", 1);
    expect(problems(database)).toEqual([]);
    expect(await recall(searcher, model)).toBeGreaterThanOrEqual(0.95);
  });

  it("are looked into as far as the vectors themselves need", async () => {
    const patienceFor = async (vector: (seed: number) => Float32Array) => {
      const path = temporaryFile();
      const database = await openVectors(path);
      const entries = Array.from({ length: 5_000 }, (_, key) => ({ key, vector: vector(key) }));
      await database.write((tx) => vectorWriter(tx).put("c", 1, entries));
      const searcher = vectorSearcher({ path, listsAbove: 1_000 });
      onTestFinished(() => searcher.close());
      await searcher.buildLists("c", 1);
      const model = new Map(entries.map(({ key, vector }) => [key, vector]));
      let found = 0;
      for (let i = 0; i < 10; i++) {
        const query = vector(1_000_000 + i);
        const hits = await searcher.search({ collection: "c", versionId: 1, query, limit: 10 });
        const expected = new Set(bruteForce(model, query, 10).map(({ key }) => key));
        found += hits.filter(({ key }) => expected.has(key)).length;
      }
      expect(found).toBeGreaterThanOrEqual(98);
      return database.read((tx) => findCollection(tx, "c", 1)!.probes);
    };
    const scattered = (seed: number) => {
      const random = randomNumbers(seed + 1);
      const vector = Float32Array.from({ length: 64 }, () => random() - 0.5);
      const length = Math.hypot(...vector);
      return vector.map((value) => value / length);
    };
    const gathered = await patienceFor((seed) => vectorOf(seed, 64));
    expect(gathered).toBeLessThanOrEqual(16);
    // Vectors that gather nowhere are found by looking at everything.
    expect(await patienceFor(scattered)).toBeGreaterThan(Math.sqrt(5_000) / 3);
  });

  it("come by themselves once a collection is large enough and nothing more is added to it", async () => {
    const { path, database, model } = await filled(10_000);
    const searcher = vectorSearcher({ path, listsAbove: 8_000 });
    onTestFinished(() => searcher.close());
    for (let round = 0; round < 20; round++) {
      await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(round, round + 1, DIMENSION)));
      await recall(searcher, model, 1);
    }
    expect(shape(database).listed).toBe(0);
    await expect
      .poll(
        async () => {
          await recall(searcher, model, 1);
          return shape(database).listed;
        },
        { interval: 500 },
      )
      .toBeGreaterThan(9_000);
  });

  it("come at once when far more than that are in none", async () => {
    const { path, database, model } = await filled(10_000);
    const searcher = vectorSearcher({ path, listsAbove: 4_000 });
    onTestFinished(() => searcher.close());
    await expect
      .poll(async () => {
        await recall(searcher, model, 1);
        return shape(database).listed;
      })
      .toBeGreaterThan(9_000);
  });

  it("lose no change that is made while they are being made", async () => {
    const { database, model } = await filled();
    const collection = () => database.read((tx) => findCollection(tx, "c", 1)!);
    let turns = 0;
    const meddle = async () => {
      // Writers continue during every pause; many changes at once make them rewrite segments underneath.
      if (++turns % 9 !== 0) return;
      const from = (turns * 37) % COUNT;
      const replaced = vectorsOf(from, from + 60, DIMENSION).map(({ key }) => ({ key, vector: vectorOf(key + turns, DIMENSION) }));
      const removed = Array.from({ length: 30 }, (_, i) => (from * 3 + i * 11) % COUNT);
      await database.write((tx) => {
        vectorWriter(tx).put("c", 1, replaced);
        vectorWriter(tx).remove("c", 1, removed);
      });
      for (const { key, vector } of replaced) model.set(key, vector);
      for (const key of removed) model.delete(key);
    };
    expect(await buildLists(database, collection(), meddle)).toBe(true);
    expect(turns).toBeGreaterThan(50);
    expect(problems(database)).toEqual([]);
    expect(database.read((tx) => tx.get("SELECT count(*) AS count FROM vector_segments WHERE ready = 0"))).toEqual({ count: 0 });
    const { orphans } = database.read(
      (tx) =>
        tx.get<{ orphans: number }>(
          "SELECT count(*) AS orphans FROM vector_segment_bodies WHERE id NOT IN (SELECT id FROM vector_segments)",
        )!,
    );
    expect(orphans).toBe(0);
    // Replacing everything folds the overridden codes away again.
    await database.write((tx) =>
      vectorWriter(tx).put(
        "c",
        1,
        [...model].map(([key, vector]) => ({ key, vector })),
      ),
    );
    expect(problems(database)).toEqual([]);
  });

  it("are made by one process at a time, and taken over from one that died", async () => {
    const { database } = await filled(2_000);
    const collection = database.read((tx) => findCollection(tx, "c", 1)!);
    const idle = async () => {};
    await database.write((tx) => tx.run("UPDATE vector_collections SET building_until = ?", Date.now() + 60_000));
    expect(await buildLists(database, collection, idle)).toBe(false);
    // What the dead one left behind: a lease that has run out and segments that were never shown.
    await database.write((tx) => {
      tx.run("UPDATE vector_collections SET building_until = ?", Date.now() - 1);
      tx.run("INSERT INTO vector_segments (collection_id, list, count, checksum, ready) VALUES (?, 3, 10, 0, 0)", collection.id);
    });
    expect(problems(database)).toEqual([]);
    expect(await buildLists(database, collection, idle)).toBe(true);
    expect(problems(database)).toEqual([]);
    expect(database.read((tx) => tx.get("SELECT count(*) AS count FROM vector_segments WHERE ready = 0"))).toEqual({ count: 0 });
  });

  it("are abandoned when the collection is dropped or made again underneath", async () => {
    const { database } = await filled(2_000);
    const collection = database.read((tx) => findCollection(tx, "c", 1)!);
    let turns = 0;
    const drop = async () => {
      if (++turns === 20) await database.write((tx) => vectorWriter(tx).dropVersion("c", 1));
    };
    expect(await buildLists(database, collection, drop)).toBe(false);
    expect(database.read((tx) => tx.get("SELECT count(*) AS count FROM vector_segment_bodies"))).toEqual({ count: 0 });
    expect(database.read((tx) => tx.get("SELECT count(*) AS count FROM vector_segments"))).toEqual({ count: 0 });
  });
});

async function filled(count = COUNT): Promise<{ path: string; database: SqliteDatabase; model: Map<number, Float32Array> }> {
  const path = temporaryFile();
  const database = await openVectors(path);
  const entries = vectorsOf(0, count, DIMENSION);
  await database.write((tx) => vectorWriter(tx).put("c", 1, entries));
  return { path, database, model: new Map(entries.map(({ key, vector }) => [key, vector])) };
}

/** The share of the true ten nearest that a search finds; every answer must be a live vector with its exact score. */
async function recall(searcher: ReturnType<typeof vectorSearcher>, model: ReadonlyMap<number, Float32Array>, queries = 8): Promise<number> {
  let found = 0;
  for (let i = 0; i < queries; i++) {
    const query = vectorOf(i * 1_234 + 7, DIMENSION);
    const hits = await searcher.search({ collection: "c", versionId: 1, query, limit: 10 });
    const expected = new Set(bruteForce(model, query, 10).map(({ key }) => key));
    for (const { key, score } of hits) {
      expect(score).toBeCloseTo(bruteForce(model, query, 1, new Set([key]))[0]!.score, 6);
      if (expected.has(key)) found++;
    }
  }
  return found / (10 * queries);
}

function shape(database: SqliteDatabase): { listed: number; unlisted: number } {
  return database.read(
    (tx) =>
      tx.get<{ listed: number; unlisted: number }>(
        `SELECT coalesce(sum(count) FILTER (WHERE list >= 0), 0) AS listed,
                coalesce(sum(count) FILTER (WHERE list IS NULL), 0) AS unlisted FROM vector_segments WHERE ready = 1`,
      )!,
  );
}

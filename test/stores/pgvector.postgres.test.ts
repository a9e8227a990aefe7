import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CheckpointStore } from "../../src/ports/checkpoint-store.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { openPostgres } from "../../src/stores/postgres/driver/driver.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";

const now = () => "2026-01-02T03:04:05.678Z";
const RECORDS = 300;

/** Rising dimensions: an index over `vector`, over `halfvec`, and none. */
describe.each([
  { dimension: 64, index: "vector" },
  { dimension: 2_500, index: "halfvec" },
  { dimension: 4_500, index: undefined },
])("pgvector with $dimension dimensions", ({ dimension, index }) => {
  let database: TestDatabase;
  let approximate: Storage;
  let store: CheckpointStore;
  let exact: CheckpointStore;
  let versionId: number;
  const project = `/pgvector/${dimension}`;
  beforeAll(async () => {
    database = await testDatabase();
    // Two views of one database: one that takes the index for more than two records, and one that always compares all.
    approximate = postgresStorage({ url: database.url, now, exactMax: 2 });
    store = (await approximate.create(project)).checkpoints;
    versionId = (await store.embeddings.addVersion({ model: "m", version: "1", dimension })).versionId;
    for (let i = 0; i < RECORDS; i++)
      await store.put(
        {
          id: `r${String(i).padStart(3, "0")}`,
          projectPath: project,
          summary: `record ${i}`,
          description: "",
          context: {},
          tags: i % 60 === 0 ? ["rare"] : ["common"],
          tokenCount: 1,
          createdAt: now(),
          updatedAt: now(),
          createdOrder: now(),
          updatedOrder: now(),
          anchors: [],
          supersededBy: "",
          revision: 1,
        },
        [{ versionId, vector: vectorOf(i, dimension) }],
      );
    const other = postgresStorage({ url: database.url, now });
    exact = (await other.create(project)).checkpoints;
    cleanUp.push(() => other.close());
  });
  const cleanUp: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const undo of cleanUp) await undo();
    await approximate.close();
    await database.drop();
  });

  it(index ? `is indexed as ${index}` : "has no index, and compares all", async () => {
    const direct = openPostgres({ url: database.url });
    const [{ schema } = { schema: "" }] = await direct.read("pg_catalog", (tx) =>
      tx.all<{ schema: string }>("SELECT nspname AS schema FROM pg_namespace WHERE nspname LIKE 'project\\_%'"),
    );
    const rows = await direct.read("pg_catalog", (tx) =>
      tx.all<{ definition: string }>(
        "SELECT indexdef AS definition FROM pg_indexes WHERE schemaname = $1 AND indexdef LIKE '%hnsw%'",
        schema,
      ),
    );
    await direct.close();
    expect(rows.map(({ definition }) => /::(?:\w+\.)?(vector|halfvec)\(/.exec(definition)?.[1])).toEqual(index ? [index] : []);
  });

  it("finds the same nearest records by the index as by comparing all, with exact scores", async () => {
    let same = 0;
    for (let i = 0; i < 10; i++) {
      const semantic = { versionId, vector: vectorOf(1_000 + i, dimension) };
      const wanted = (await exact.candidates({ filter: {}, limit: 10, semantic })).semantic;
      const found = (await store.candidates({ filter: {}, limit: 10, semantic })).semantic;
      const right = new Map(wanted.map(({ id, score }) => [id, score]));
      for (const { id, score } of found) if (right.has(id)) expect(score).toBeCloseTo(right.get(id)!, 6);
      same += found.filter(({ id }) => right.has(id)).length;
    }
    expect(same).toBeGreaterThanOrEqual(97);
  });

  it("finds all that a selective filter lets through, by the index too", async () => {
    const semantic = { versionId, vector: vectorOf(7, dimension) };
    const { semantic: found } = await store.candidates({ filter: { tags: ["rare"] }, limit: 10, semantic });
    expect(found.map(({ id }) => id).sort()).toEqual(["r000", "r060", "r120", "r180", "r240"]);
  });
});

function vectorOf(seed: number, dimension: number): Float32Array {
  let state = seed * 2654435761 + 1;
  const vector = Float32Array.from({ length: dimension }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32 - 0.5;
  });
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

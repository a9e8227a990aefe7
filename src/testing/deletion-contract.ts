import assert from "node:assert/strict";
import type { VersionedVector } from "../ports/embedding-store.ts";
import type { RecordStore } from "../ports/recall-store.ts";
import type { ProjectStore } from "../ports/storage.ts";
import type { StorageCase } from "./checkpoint-contract.ts";
import { AWKWARD_TEXTS, freshProject, sampleCheckpoint } from "./checkpoint-samples.ts";
import { sampleKnowledge } from "./knowledge-contract.ts";

const MODEL = { model: "deletion", version: "1", dimension: 3 };
const NEAR = Float32Array.of(1, 0, 0);
const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1_000).toISOString();

interface Sample {
  readonly id: string;
  readonly revision: number;
}

/** One collection as the cases use it. */
interface Deletable {
  readonly store: RecordStore<Sample, object>;
  readonly sample: (id?: string) => Sample;
  readonly put: (record: Sample, vectors?: readonly VersionedVector[]) => Promise<unknown>;
  readonly get: (id: string) => Promise<Sample | undefined>;
  readonly total: () => Promise<number>;
  /** A word of every sample. */
  readonly word: string;
}

/** The contract of deletion, for the checkpoints and the knowledge of a project. */
export const DELETION_CASES: readonly StorageCase[] = [
  on("hides a deleted record from reads, lists and searches", async ({ store, sample, put, get, total, word }) => {
    const { versionId } = await store.embeddings.addVersion(MODEL);
    const [kept, gone] = [sample(), sample()];
    for (const record of [kept, gone]) await put(record, [{ versionId, vector: NEAR }]);
    assert.equal(await store.delete([gone.id, "never"], at(0)), 1);
    assert.equal(await get(gone.id), undefined);
    assert.deepEqual((await store.getMany([gone.id])).records, []);
    assert.equal(await total(), 1);
    const { keyword, semantic } = await store.candidates({ filter: {}, limit: 1, text: word, semantic: { versionId, vector: NEAR } });
    assert.deepEqual([keyword.map(({ id }) => id), semantic.map(({ id }) => id)], [[kept.id], [kept.id]]);
    assert.deepEqual(await store.embeddings.counts(versionId), { records: 1, vectors: 1, parts: 0, partVectors: 0 });
    assert.deepEqual([...(await store.similarities(versionId, NEAR, [gone.id])).keys()], []);
  }),

  on("restores a deleted record exactly, with its vectors", async ({ store, sample, put, get, total, word }) => {
    const { versionId } = await store.embeddings.addVersion(MODEL);
    const record = sample();
    await put(record);
    const before = await get(record.id);
    await store.delete([record.id], at(0));
    const deleted = await store.getDeleted(record.id);
    assert.deepEqual(deleted, { record: before, deletedAt: at(0) });
    assert.equal(await store.restore(deleted!, [{ versionId, vector: NEAR }]), true);
    assert.deepEqual(await get(record.id), before);
    assert.equal(await store.getDeleted(record.id), undefined);
    assert.equal(await total(), 1);
    const { keyword, semantic } = await store.candidates({ filter: {}, limit: 5, text: word, semantic: { versionId, vector: NEAR } });
    assert.deepEqual([keyword.length, semantic.length], [1, 1]);
    assert.equal(await store.restore(deleted!), false, "it is not deleted any more");
  }),

  on("deletes once, and restores only the deletion that was read", async ({ store, sample, put }) => {
    const record = sample();
    await put(record);
    assert.equal(await store.delete([record.id], at(0)), 1);
    assert.equal(await store.delete([record.id], at(1)), 0);
    const first = (await store.getDeleted(record.id))!;
    assert.equal(first.deletedAt, at(0));
    assert.equal(await store.restore(first), true);
    await store.delete([record.id], at(2));
    assert.equal(await store.restore(first), false, "it was deleted again since");
    assert.equal(await store.restore((await store.getDeleted(record.id))!), true);
  }),

  on("purges visible and deleted records for good", async ({ store, sample, put, get }) => {
    const [visible, deleted] = [sample(), sample()];
    for (const record of [visible, deleted]) await put(record);
    await store.delete([deleted.id], at(0));
    const read = (await store.getDeleted(deleted.id))!;
    assert.equal(await store.purge([visible.id, deleted.id, "never"]), 2);
    assert.equal(await store.purge([visible.id, deleted.id]), 0);
    assert.equal(await get(visible.id), undefined);
    assert.equal(await store.getDeleted(deleted.id), undefined);
    assert.equal(await store.restore(read), false);
  }),

  on("lists deleted records page by page, the latest deletion first", async ({ store, sample, put }) => {
    const records = [...AWKWARD_TEXTS, "b", "a"].map((id) => sample(id));
    for (const [second, record] of records.entries()) {
      await put(record);
      await store.delete([record.id], at(record.id === "b" || record.id === "a" ? 100 : second));
    }
    const expected = ["a", "b", ...AWKWARD_TEXTS.toReversed()];
    const found: string[] = [];
    for (let after: { at: string; id: string } | undefined; ; ) {
      const page = await store.listDeleted({ limit: 4, after });
      assert.equal(page.total, records.length);
      assert.deepEqual(page.damaged, []);
      found.push(...page.records.map(({ record }) => record.id));
      const last = page.records.at(-1);
      if (!last) break;
      after = { at: last.deletedAt, id: last.record.id };
    }
    assert.deepEqual(found, expected);
  }),

  on("purges deleted records of before a time, oldest first, up to the limit", async ({ store, sample, put, get }) => {
    const records = [0, 1, 2, 3, 4].map(() => sample());
    for (const [second, record] of records.entries()) {
      await put(record);
      if (second < 4) await store.delete([record.id], at(second));
    }
    assert.equal(await store.purgeDeleted(at(3), 2), 2);
    assert.deepEqual(
      (await store.listDeleted({ limit: 10 })).records.map(({ record }) => record.id),
      [records[3]!.id, records[2]!.id],
    );
    assert.equal(await store.purgeDeleted(at(3), 10), 1);
    assert.equal(await store.purgeDeleted(at(3), 10), 0);
    assert.notEqual(await get(records[4]!.id), undefined);
  }),

  on("replaces a deleted record when its id is stored again", async ({ store, sample, put, get, total }) => {
    const record = sample();
    await put(record);
    await store.delete([record.id], at(0));
    await put(record);
    assert.deepEqual(await get(record.id), record);
    assert.equal(await store.getDeleted(record.id), undefined);
    assert.equal(await total(), 1);
  }),

  on("stores an imported record as deleted unless its id exists", async ({ store, sample, put, get, total }) => {
    const [visible, imported] = [sample(), sample()];
    await put(visible);
    assert.equal(await store.putDeleted(visible, at(0)), false);
    assert.equal(await store.putDeleted(imported, at(0)), true);
    assert.equal(await store.putDeleted(imported, at(1)), false);
    assert.deepEqual(await store.getDeleted(imported.id), { record: imported, deletedAt: at(0) });
    assert.equal(await get(imported.id), undefined);
    assert.equal(await total(), 1);
  }),

  on("deletes and restores in parallel without losing or doubling a record", async ({ store, sample, put, get, total }) => {
    const record = sample();
    await put(record);
    await Promise.all(
      Array.from({ length: 12 }, async (_, turn) => {
        if (turn % 2 === 0) await store.delete([record.id], at(turn));
        else {
          const deleted = await store.getDeleted(record.id);
          if (deleted) await store.restore(deleted);
        }
      }),
    );
    const [visible, deleted] = [await get(record.id), await store.getDeleted(record.id)];
    assert.equal([visible, deleted].filter(Boolean).length, 1);
    assert.equal(await total(), visible ? 1 : 0);
  }),
];

const COLLECTIONS: Readonly<Record<string, (project: ProjectStore) => Deletable>> = {
  checkpoints: ({ projectPath, checkpoints }) => ({
    store: checkpoints as never,
    sample: (id) => sampleCheckpoint(projectPath, id === undefined ? {} : { id }),
    put: (record, vectors) => checkpoints.put(record as never, vectors),
    get: (id) => checkpoints.get(id),
    total: async () => (await checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" })).total,
    word: "parser",
  }),
  knowledge: ({ knowledge }) => ({
    store: knowledge as never,
    sample: (id) => sampleKnowledge({ question: "How does the parser start?", ...(id !== undefined && { id }) }),
    put: (record, vectors) => knowledge.put(record as never, vectors),
    get: (id) => knowledge.get(id),
    total: async () => (await knowledge.list({ limit: 1 })).total,
    word: "parser",
  }),
};

function on(name: string, check: (deletable: Deletable) => Promise<void>): StorageCase {
  return {
    name: `${name} (checkpoints, knowledge)`,
    async run(storage) {
      for (const open of Object.values(COLLECTIONS)) await check(open(await storage.create(freshProject())));
    },
  };
}

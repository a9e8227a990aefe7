import assert from "node:assert/strict";
import { idempotencyKey } from "../model/idempotency.ts";
import type { StorageCase } from "./checkpoint-contract.ts";
import { freshProject, sampleCheckpoint } from "./checkpoint-samples.ts";
import { sampleKnowledge } from "./knowledge-contract.ts";

const FIRST = "2026-03-01T10:00:00.000Z";
const LATER = "2026-03-02T09:59:59.000Z";
const EXPIRED = "2026-03-02T10:00:00.001Z";
const keyAt = (at: string, key = "retry") => idempotencyKey("test", key, at);

/** The contract of saves and feedback that a caller may repeat. */
export const IDEMPOTENCY_CASES: readonly StorageCase[] = [
  {
    name: "stores one checkpoint per idempotency key within 24 hours",
    async run(storage) {
      const project = freshProject();
      const { checkpoints: store } = await storage.create(project);
      const put = (id: string, at: string, key?: string) => store.put(sampleCheckpoint(project, { id }), [], { once: keyAt(at, key) });
      assert.equal(await store.recordOfKey(keyAt(FIRST)), undefined);
      assert.equal(await put("first", FIRST), true);
      assert.equal(await put("second", LATER), false);
      assert.equal(await put("other", LATER, "other"), true);
      assert.equal(await store.recordOfKey(keyAt(LATER)), "first");
      assert.deepEqual(
        (await store.getMany(["first", "second", "other"])).records.map(({ id }) => id),
        ["first", "other"],
      );
      assert.equal(await store.recordOfKey(keyAt(EXPIRED)), undefined);
      assert.equal(await put("third", EXPIRED), true);
      assert.equal(await store.recordOfKey(keyAt(EXPIRED)), "third");
    },
  },
  {
    name: "stores one of many checkpoints that are saved concurrently with one key",
    async run(storage) {
      const project = freshProject();
      const { checkpoints: store } = await storage.create(project);
      const ids = Array.from({ length: 10 }, (_, index) => `id-${index}`);
      const stored = await Promise.all(ids.map((id) => store.put(sampleCheckpoint(project, { id }), [], { once: keyAt(FIRST) })));
      assert.equal(stored.filter(Boolean).length, 1);
      assert.deepEqual(
        (await store.getMany(ids)).records.map(({ id }) => id),
        [await store.recordOfKey(keyAt(FIRST))],
      );
    },
  },
  {
    name: "stores one knowledge record per idempotency key, and no key for a record that was refused",
    async run(storage) {
      const { knowledge: store } = await storage.create(freshProject());
      await store.put(sampleKnowledge({ id: "taken" }));
      assert.equal(await store.put(sampleKnowledge({ id: "taken" }), [], { once: keyAt(FIRST) }), false);
      assert.equal(await store.recordOfKey(keyAt(FIRST)), undefined);
      assert.equal(await store.put(sampleKnowledge({ id: "first" }), [], { once: keyAt(FIRST) }), true);
      assert.equal(await store.put(sampleKnowledge({ id: "second" }), [], { once: keyAt(LATER) }), false);
      assert.equal(await store.recordOfKey(keyAt(LATER)), "first");
      assert.equal((await store.list({ limit: 10 })).total, 2);
    },
  },
  {
    name: "counts feedback once per idempotency key",
    async run(storage) {
      const { knowledge: store } = await storage.create(freshProject());
      for (const id of ["one", "two"]) await store.put(sampleKnowledge({ id }));
      const report = { success: true, outdated: false };
      assert.equal((await store.feedback("one", report, keyAt(FIRST)))?.uses, 1);
      await Promise.all(Array.from({ length: 10 }, () => store.feedback("one", report, keyAt(LATER))));
      assert.equal((await store.feedback("two", report, keyAt(LATER)))?.id, "one");
      assert.deepEqual([(await store.get("one"))?.uses, (await store.get("two"))?.uses], [1, 0]);
      assert.equal((await store.feedback("one", report, keyAt(EXPIRED)))?.uses, 2);
      assert.equal(await store.feedback("never", report, keyAt(EXPIRED, "other")), undefined);
      assert.equal((await store.feedback("two", report, keyAt(EXPIRED, "other")))?.uses, 1);
    },
  },
];

import assert from "node:assert/strict";
import { EVENTS_KEPT, EVENTS_STAY } from "../model/event.ts";
import type { EventLog } from "../ports/event-log.ts";
import type { StorageCase } from "./checkpoint-contract.ts";
import { freshProject, sampleCheckpoint } from "./checkpoint-samples.ts";
import { sampleKnowledge } from "./knowledge-contract.ts";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1_000).toISOString();

/** Returns the events after a position as "kind action id", once their order is certain. */
async function linesAfter(log: EventLog, position: string): Promise<string[]> {
  for (let attempt = 0; ; attempt++) {
    const { events, isPending } = await log.readAfter(position, 1_000);
    if (!isPending || attempt === 2_000) return events.map(({ kind, action, id }) => `${kind} ${action} ${id}`);
    await new Promise((resolve) => setTimeout(resolve, 50)); // another transaction of the server is open
  }
}

/** The contract of the event log of a project. */
export const EVENT_CASES: readonly StorageCase[] = [
  {
    name: "logs each change of a checkpoint once, in order",
    async run(storage) {
      const project = freshProject();
      const { checkpoints, events } = await storage.create(project);
      const start = await events.head();
      const saved = sampleCheckpoint(project, { id: "a" });
      await checkpoints.put(saved);
      await checkpoints.put(saved); // repeated by a caller that lost the response
      await checkpoints.replace({ ...saved, revision: saved.revision + 1, summary: "edited" });
      await checkpoints.delete(["a", "missing"], at(1));
      await checkpoints.restore((await checkpoints.getDeleted("a"))!);
      await checkpoints.delete(["a"], at(2));
      await checkpoints.purge(["a"]);
      await checkpoints.put(sampleCheckpoint(project, { id: "b" }));
      await checkpoints.purge(["b"]);
      const expected = ["a saved", "a edited", "a deleted", "a restored", "a deleted", "a purged", "b saved", "b purged"];
      assert.deepEqual(
        await linesAfter(events, start),
        expected.map((line) => `checkpoint ${line.split(" ").reverse().join(" ")}`),
      );
    },
  },
  {
    name: "logs feedback on knowledge and the end of the retention of a deleted record",
    async run(storage) {
      const { knowledge, events } = await storage.create(freshProject());
      const start = await events.head();
      const record = sampleKnowledge({ id: "k" });
      await knowledge.put(record);
      await knowledge.feedback("k", { success: true, outdated: false });
      await knowledge.replace({ ...record, revision: record.revision + 1, answer: "another" });
      await knowledge.delete(["k"], at(1));
      assert.equal(await knowledge.purgeDeleted(at(2), 10), 1);
      assert.deepEqual(
        await linesAfter(events, start),
        ["saved", "feedback", "edited", "deleted", "purged"].map((action) => `knowledge ${action} k`),
      );
    },
  },
  {
    name: "continues after the position of any event, without loss and without repetition",
    async run(storage) {
      const project = freshProject();
      const { checkpoints, events } = await storage.create(project);
      const start = await events.head();
      await Promise.all(Array.from({ length: 20 }, (_, index) => checkpoints.put(sampleCheckpoint(project, { id: `${index}` }))));
      const all = await linesAfter(events, start);
      assert.equal(new Set(all).size, 20);
      const found: string[] = [];
      for (let position = start; ; ) {
        const page = await events.readAfter(position, 3);
        assert.equal(page.isExpired, false);
        if (page.events.length === 0) break;
        found.push(...page.events.map(({ kind, action, id }) => `${kind} ${action} ${id}`));
        position = page.events.at(-1)!.position;
      }
      assert.deepEqual(found, all);
      assert.deepEqual(await linesAfter(events, await events.head()), []);
    },
  },
  {
    name: "reports a position of another log as expired",
    async run(storage) {
      const project = freshProject();
      const { checkpoints, events } = await storage.create(project);
      await checkpoints.put(sampleCheckpoint(project));
      for (const position of ["", "x", "-1", "999999999999", "1.999999999999.3", "9999999999999999.1"]) {
        const { events: found, isExpired } = await events.readAfter(position, 10);
        assert.deepEqual({ found, isExpired }, { found: [], isExpired: true }, position);
      }
    },
  },
  {
    name: "finds the position of a time, and deletes old events but not the newest",
    async run(storage) {
      const { knowledge, events } = await storage.create(freshProject());
      const start = await events.head();
      await knowledge.put(sampleKnowledge({ id: "k" }));
      const [early, late] = ["2020-01-01T00:00:00.000Z", "9000-01-01T00:00:00.000Z"];
      assert.equal((await linesAfter(events, await events.positionAt(early))).length, 1);
      assert.equal((await linesAfter(events, await events.positionAt(late))).length, 0);
      assert.equal(await events.prune(late), 0);
      const add = Array.from({ length: EVENTS_STAY + 99 }, (_, index) => ({ record: sampleKnowledge({ id: `${index}` }), vectors: [] }));
      await knowledge.apply({ add, replace: [], remove: [] });
      assert.equal(await events.prune(early), 0);
      assert.equal(await events.prune(late), 100);
      assert.equal((await events.readAfter(start, 10)).isExpired, true);
      assert.equal((await events.readAfter(await events.head(), 10)).isExpired, false);
    },
  },
  {
    name: "keeps a bounded number of events",
    async run(storage) {
      const { knowledge, events } = await storage.create(freshProject());
      const start = await events.head();
      await knowledge.put(sampleKnowledge({ id: "k" }));
      const batch = Array.from({ length: EVENTS_KEPT / 4 + 100 }, (_, index) => ({
        record: sampleKnowledge({ id: `${index}` }),
        vectors: [],
      }));
      for (let round = 0; round < 2; round++) {
        await knowledge.apply({ add: batch, replace: [], remove: [] });
        await knowledge.purge(batch.map(({ record }) => record.id));
      }
      assert.equal((await events.readAfter(start, 10)).isExpired, true);
      const page = await events.readAfter(await events.head(), 10);
      assert.deepEqual([page.events, page.isExpired], [[], false]);
    },
  },
];

import { expect, it, vi } from "vitest";
import { feeder } from "../../src/vectors/qdrant/feeder.ts";
import { qdrantHealth } from "../../src/vectors/qdrant/health.ts";
import type { Comparison } from "../../src/vectors/qdrant/sync.ts";

const WAIT = { timeout: 60_000, interval: 5 };

/** A task whose passes wait for the test. */
function heldTask() {
  const passes: { comparison: Comparison; end: () => void; fail: (error: Error) => void }[] = [];
  const run = (comparison: Comparison) =>
    new Promise<void>((end, fail) => {
      passes.push({ comparison, end, fail });
    });
  return { passes, task: { key: "held", run } };
}

it("repeats a pass at the end if a change arrived while it ran", async () => {
  const feed = feeder(qdrantHealth(0), { firstDelayMs: 1 });
  const { passes, task } = heldTask();
  feed.schedule(task, "none");
  await vi.waitFor(() => expect(passes).toHaveLength(1), WAIT);
  feed.schedule(task, "count"); // the pass has read the outbox already
  const closed = feed.close();
  passes[0]!.end();
  await vi.waitFor(() => expect(passes).toHaveLength(2), WAIT);
  expect(passes[1]!.comparison).toBe("count");
  passes[1]!.end();
  await closed;
  expect(passes).toHaveLength(2);
});

it("leaves the rest to the next process if the last pass fails", async () => {
  const feed = feeder(qdrantHealth(0), { firstDelayMs: 1 });
  const { passes, task } = heldTask();
  feed.schedule(task, "none");
  await vi.waitFor(() => expect(passes).toHaveLength(1), WAIT);
  feed.schedule(task, "none");
  const closed = feed.close();
  passes[0]!.fail(new Error("Qdrant is down"));
  await closed;
  expect(passes).toHaveLength(1);
});

import { expect, it } from "vitest";
import { reuseThread } from "../../src/scheduling/run-in-thread.ts";

const worker = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, threadId } from "node:worker_threads";
    parentPort.on("message", (order) => {
      if (order === "end") process.exit(1);
      else if (order === "refuse") parentPort.postMessage({ failure: { cairn: { code: "conflict", message: "Refused." } } });
      else parentPort.postMessage({ result: { order, threadId } });
    });
  `)}`,
);

interface Answer {
  readonly order: string;
  readonly threadId: number;
}

it("runs orders one after the other in the same thread", async () => {
  const run = reuseThread<string, Answer>(worker, 60_000);
  const answers = await Promise.all(["one", "two", "three"].map(run));
  expect(answers.map(({ order }) => order)).toEqual(["one", "two", "three"]);
  expect(new Set(answers.map(({ threadId }) => threadId)).size).toBe(1);
});

it("raises the error of an order and continues with the next one", async () => {
  const run = reuseThread<string, Answer>(worker, 60_000);
  await expect(run("refuse")).rejects.toMatchObject({ code: "conflict", message: "Refused." });
  expect(await run("one")).toMatchObject({ order: "one" });
});

it("starts another thread after one that ended", async () => {
  const run = reuseThread<string, Answer>(worker, 60_000);
  const { threadId } = await run("one");
  await expect(run("end")).rejects.toThrow("ended without a result");
  const after = await run("two");
  expect(after.order).toBe("two");
  expect(after.threadId).not.toBe(threadId);
});

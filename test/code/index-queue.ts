import { afterEach, describe, expect, it } from "vitest";
import { retryIndexWork } from "../../src/code/retry-index-work.ts";
import { CairnError } from "../../src/model/errors.ts";
import { type IndexJob, type IndexResult, type IndexWork, isFinished } from "../../src/model/index-job.ts";
import type { IndexQueue, PerformIndexWork } from "../../src/ports/index-queue.ts";

const NOTHING_DONE: IndexResult = { files: [], embeddedTexts: 0, removed: 0, removedPaths: [], renamed: 0 };

/** A piece of work that is known again by the path in it. */
export function work(projectPath: string, path: string): IndexWork {
  return { kind: "manifest", projectPath, manifest: [path] };
}
const pathOf = (piece: IndexWork) => (piece.kind === "manifest" ? piece.manifest[0]! : "");

/** Doors that work waits at until the test opens them. */
function doors() {
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  const doorOf = (name: string) => {
    const door = waiting.get(name) ?? withResolvers();
    waiting.set(name, door);
    return door;
  };
  return { at: (name: string) => doorOf(name).promise, open: (name: string) => doorOf(name).resolve() };
}

interface PromiseWithResolvers<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}
function withResolvers(): PromiseWithResolvers<void> {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** What every queue of index work promises. */
export function indexQueueContract(
  name: string,
  openQueue: (perform: PerformIndexWork, options: { readonly capacity?: number }) => Promise<IndexQueue>,
): void {
  describe(`the queue of index work: ${name}`, () => {
    let queue: IndexQueue;
    const open = (perform: Parameters<typeof retryIndexWork>[0], options: { readonly capacity?: number }) =>
      openQueue(retryIndexWork(perform, { retryDelayMs: 1 }), options);
    afterEach(() => queue.close());

    const ended = async (id: string): Promise<IndexJob> => {
      for (;;) {
        const job = await queue.get(id);
        if (!job || isFinished(job)) return job!;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const running = async (id: string) => {
      while ((await queue.get(id))?.status === "pending") await new Promise((resolve) => setTimeout(resolve, 20));
    };

    it("does the work of a project in the order in which it was accepted, one piece at a time", async () => {
      const done: string[] = [];
      let atOnce = 0;
      let most = 0;
      queue = await open(async (piece) => {
        most = Math.max(most, ++atOnce);
        await new Promise((resolve) => setTimeout(resolve, pathOf(piece) === "0" ? 50 : 5));
        atOnce--;
        done.push(pathOf(piece));
        return NOTHING_DONE;
      }, {});
      const jobs: IndexJob[] = [];
      for (let index = 0; index < 8; index++) jobs.push(await queue.add(work("/a", String(index))));
      expect(jobs[0]).toMatchObject({ projectPath: "/a", kind: "manifest" });
      expect(await ended(jobs.at(-1)!.id)).toMatchObject({ status: "completed", result: NOTHING_DONE, projectPath: "/a" });
      expect(done).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
      expect(most).toBe(1);
      expect(await queue.depth()).toMatchObject({ pending: 0, running: 0 });
    });

    it("does not let one project's work wait for another's", async () => {
      const gates = doors();
      queue = await open(async (piece) => {
        await gates.at(pathOf(piece));
        return NOTHING_DONE;
      }, {});
      const slow = await queue.add(work("/slow", "slow"));
      const waits = await queue.add(work("/slow", "slow too"));
      gates.open("quick");
      const quick = await queue.add(work("/quick", "quick"));
      expect((await ended(quick.id)).status).toBe("completed");
      expect((await queue.get(slow.id))!.status).not.toBe("completed");
      expect(await queue.depth("/slow")).toMatchObject({ pending: 1, running: 1 });
      expect(await queue.depth("/quick")).toMatchObject({ pending: 0, running: 0 });
      gates.open("slow");
      gates.open("slow too");
      expect((await ended(waits.id)).status).toBe("completed");
    });

    it("refuses work over its limit with a retry time, and accepts more when there is space", async () => {
      const gates = doors();
      queue = await open(
        async () => {
          await gates.at("all");
          return NOTHING_DONE;
        },
        { capacity: 3 },
      );
      const jobs: IndexJob[] = [];
      for (const path of ["1", "2", "3"]) jobs.push(await queue.add(work("/a", path)));
      const refused = await queue.add(work("/b", "4")).then(
        () => undefined,
        (error: unknown) => error as CairnError,
      );
      expect(refused).toBeInstanceOf(CairnError);
      expect(refused).toMatchObject({ code: "unavailable", retryAfterMs: expect.any(Number) });
      expect((await queue.depth()).capacity).toBe(3);
      gates.open("all");
      for (const { id } of jobs) expect((await ended(id)).status).toBe("completed");
      const { id } = await queue.add(work("/b", "5"));
      expect((await ended(id)).status).toBe("completed");
    });

    it("leaves half of the queue to others when one sender fills it", async () => {
      const gates = doors();
      queue = await open(
        async () => {
          await gates.at("all");
          return NOTHING_DONE;
        },
        { capacity: 6 },
      );
      const jobs: IndexJob[] = [];
      for (const path of ["1", "2", "3"]) jobs.push(await queue.add(work(`/flood${path}`, path), "greedy"));
      await expect(queue.add(work("/flood4", "4"), "greedy")).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringContaining("3 queued batches"),
        retryAfterMs: expect.any(Number),
      });
      jobs.push(await queue.add(work("/other", "5"), "modest"));
      gates.open("all");
      for (const { id } of jobs) expect((await ended(id)).status).toBe("completed");
      const again = await queue.add(work("/flood4", "4"), "greedy");
      expect((await ended(again.id)).status).toBe("completed");
    });

    it("cancels what waits without doing it, and what is under way by its signal", async () => {
      const gates = doors();
      const begun: string[] = [];
      queue = await open(async (piece, signal) => {
        begun.push(pathOf(piece));
        await Promise.race([gates.at(pathOf(piece)), new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))]);
        signal.throwIfAborted();
        return NOTHING_DONE;
      }, {});
      const first = await queue.add(work("/a", "first"));
      const second = await queue.add(work("/a", "second"));
      const third = await queue.add(work("/a", "third"));
      await running(first.id);
      await expect.poll(() => begun).toEqual(["first"]); // a job counts as running before its work begins
      expect(await queue.cancel(second.id)).toMatchObject({ id: second.id, status: "cancelled" });
      expect(await queue.cancel(first.id)).toMatchObject({ id: first.id, status: "cancelled" });
      gates.open("third");
      expect((await ended(third.id)).status).toBe("completed");
      expect((await queue.get(first.id))!.status).toBe("cancelled");
      expect(begun).toEqual(["first", "third"]);
      expect(await queue.cancel(third.id)).toMatchObject({ status: "completed" }); // too late
      expect(await queue.cancel("11111111-2222-4333-8444-555555555555")).toBeUndefined();
      expect(await queue.cancel("nonsense")).toBeUndefined();
      expect(await queue.get("nonsense")).toBeUndefined();
    });

    it("tries again while the database is not available, and reports why work failed for good", async () => {
      let attempts = 0;
      queue = await open(async (piece) => {
        if (pathOf(piece) === "bad") throw new CairnError("invalid_input", "this cannot be indexed");
        if (++attempts < 3) throw new CairnError("unavailable", "the database is locked");
        return NOTHING_DONE;
      }, {});
      const flaky = await queue.add(work("/a", "flaky"));
      const bad = await queue.add(work("/a", "bad"));
      expect(await ended(flaky.id)).toMatchObject({ status: "completed" });
      expect(attempts).toBe(3);
      expect(await ended(bad.id)).toMatchObject({ status: "failed", reason: "this cannot be indexed" });
    });
  });
}

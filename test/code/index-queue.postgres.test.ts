import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type IndexOutcome, isFinished } from "../../src/model/index-job.ts";
import type { IndexQueue, PerformIndexWork } from "../../src/ports/index-queue.ts";
import { openPostgres } from "../../src/stores/postgres/driver/driver.ts";
import { postgresIndexQueue } from "../../src/stores/postgres/projects/index-queue.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { indexQueueContract, work } from "./index-queue.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

/** Opens a queue with connections of its own, as another process has them. */
function open(
  perform: PerformIndexWork,
  { url = database.url, ...options }: { url?: string; capacity?: number; onFailure?: (message: string) => void } = {},
) {
  const connections = { database: openPostgres({ url, poolMax: 3 }), intake: openPostgres({ url, poolMax: 2 }) };
  const queue = postgresIndexQueue({ ...connections, perform, pollEveryMs: 50, drainMs: 200, leaseMs: 300, ...options });
  const close = async () => {
    await queue.close();
    for (const one of Object.values(connections)) await one.close();
  };
  return { ...queue, close };
}

indexQueueContract("on PostgreSQL", async (perform, options) => open(perform, options));

describe("the queue on PostgreSQL, when processes end", () => {
  const DONE: IndexOutcome = { status: "completed", result: { files: [], embeddedTexts: 0, removed: 0, removedPaths: [], renamed: 0 } };
  /** Ends only on cancellation. */
  const endless: PerformIndexWork = async (_, signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    return { status: "cancelled" };
  };
  const status = async (queue: IndexQueue, id: string) => (await queue.get(id))!.status;
  const reaches = async (queue: IndexQueue, id: string, wanted: string) => {
    while ((await status(queue, id)) !== wanted) await sleep(20);
  };
  const query = async (sql: string, values: readonly string[] = []) => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(sql, [...values]);
    await client.end();
  };
  /** What other processes see of one that no longer renews its leases. */
  const endLeases = () => query("DELETE FROM cairn_queue.lane_leases");

  it("gives the work of a process that was cut off to another, before anything newer of that project", async () => {
    const first = open(endless);
    const old = await first.add(work("/a", "old"));
    await reaches(first, old.id, "running");
    const newer = await first.add(work("/a", "newer"));
    const done: string[] = [];
    const second = open(async (piece) => {
      done.push(piece.kind === "manifest" ? piece.manifest[0]! : "");
      return DONE;
    });
    await second.start();
    await sleep(200);
    expect(done).toEqual([]); // the first one lives
    const closing = first.close(); // it lets go of what it cannot end in time, and takes nothing up again
    await endLeases();
    await closing;
    await reaches(second, newer.id, "completed");
    expect(await status(second, old.id)).toBe("completed");
    expect(done).toEqual(["old", "newer"]);
    await second.close();
  });

  it("completes work that another process has queued again just before its end", async () => {
    let begun = 0;
    let finishFirst = () => {};
    const queue = open(async () => {
      if (++begun === 1)
        await new Promise<void>((resolve) => {
          finishFirst = resolve;
        });
      return DONE;
    });
    const { id } = await queue.add(work("/e", "slow"));
    await reaches(queue, id, "running");
    while (begun === 0) await sleep(10);
    // What a process does that took over the lane of a slow one.
    await query("UPDATE cairn_queue.job SET state = 'retry' WHERE id = $1", [id]);
    finishFirst();
    while (!isFinished((await queue.get(id))!)) await sleep(20);
    expect(await status(queue, id)).toBe("completed");
    expect(begun).toBe(2);
    await queue.close();
  });

  it("leaves what waits to other processes when it is closed in order", async () => {
    const first = open(endless);
    const { id } = await first.add(work("/b", "left"));
    await reaches(first, id, "running");
    await first.close();
    const second = open(async () => DONE);
    expect(isFinished((await second.get(id))!)).toBe(false);
    await second.start();
    await reaches(second, id, "completed");
    await second.close();
  });

  it("reports an unreachable database once and refuses jobs", async () => {
    const failures: string[] = [];
    const url = "postgres://nobody@127.0.0.1:1/nothing";
    const queue = open(async () => DONE, { url, onFailure: (message: string) => failures.push(message) });
    await queue.start();
    while (failures.length === 0) await sleep(20);
    await expect(queue.add(work("/d", "lost"))).rejects.toMatchObject({ code: "unavailable" });
    await expect(queue.get("11111111-2222-4333-8444-555555555555")).rejects.toMatchObject({ code: "unavailable" });
    await sleep(300);
    expect(failures).toEqual([expect.stringMatching(/Indexing of queued files failed and will be retried: .*127\.0\.0\.1/)]);
    await queue.close();
  });

  it("fails work that ended its process repeatedly, with the reason", async () => {
    let begun = 0;
    const queue = open((piece, signal) => {
      begun++;
      return endless(piece, signal);
    });
    const { id } = await queue.add(work("/c", "poison"));
    for (let death = 1; death <= 6; death++) {
      while (begun < death) await sleep(10);
      await reaches(queue, id, "running");
      await endLeases();
    }
    await reaches(queue, id, "failed");
    expect(begun).toBe(6);
    expect((await queue.get(id))!.reason).toMatch(/several times/);
    expect(await queue.depth("/c")).toMatchObject({ pending: 0, running: 0 });
    await queue.close();
  });
});

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { END, graph, openRunStore } from "../../src/runs.ts";
import { ownCluster, postgresWanted } from "../setup/postgres.ts";
import { soak } from "./processes.ts";

describe.runIf(postgresWanted)("PostgreSQL stopped and started while runs are active", () => {
  it("every run has its exact result, and every step was done once", { timeout: soak ? 1_800_000 : 900_000 }, async () => {
    const cluster = await ownCluster();
    const total = soak ? 1_000 : 50;
    const done = new Map<string, number>();
    const flow = graph<{ readonly sum: number; readonly n: number }>({ name: "sums" })
      .node("add", async ({ sum, n }, { idempotencyKey }) => {
        done.set(idempotencyKey, (done.get(idempotencyKey) ?? 0) + 1);
        await sleep(Math.random() * 100);
        return { sum: sum + n, n: n + 1 };
      })
      .branch("add", ({ n }) => (n <= 10 ? "add" : END), ["add", END])
      .entry("add")
      .compile();
    try {
      const store = await openRunStore({ storage: "postgres", url: cluster.url, poolMax: 8 });
      await store.listRuns({ limit: 1 });
      let busy = true;
      let restarts = 0;
      const restarting = (async () => {
        while (busy) {
          await sleep(soak ? 2_000 : 500);
          if (!busy) break;
          if (restarts % 2 === 0) await cluster.stop();
          else await cluster.kill();
          await sleep(300);
          await cluster.start();
          restarts++;
          if (!soak && restarts === 2) return;
        }
      })();
      const waiting = Array.from({ length: total }, (_, i) => i).values();
      const worker = async () => {
        for (const i of waiting) {
          const result = await flow.run({ sum: i, n: 1 }, { store, runId: `run-${i}`, leaseMs: 60_000 });
          expect(result).toMatchObject({ status: "completed", state: { sum: i + 55, n: 11 } });
        }
      };
      await Promise.all(Array.from({ length: 20 }, worker));
      busy = false;
      await restarting;
      expect(restarts).toBeGreaterThan(0);
      expect(done.size).toBe(total * 10);
      expect([...done.values()].every((times) => times === 1)).toBe(true);
      for (let i = 0; i < total; i++) {
        expect(await store.getRun(`run-${i}`)).toMatchObject({ status: "completed", lastSequence: 11 });
        expect((await store.history(`run-${i}`, { limit: 100 })).map(({ step }) => step)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
      }
      await store.close();
    } finally {
      await cluster.destroy();
    }
  });
});

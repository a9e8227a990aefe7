import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type Effect, system } from "../../src/systems.ts";
import { ownCluster } from "../setup/postgres.ts";
import { soak } from "./places.ts";

const count: Effect = async (state, { id }) => {
  state.set("count", ((await state.get<number>("count")) ?? 0) + 1);
  state.set(id, ((await state.get<number>(id)) ?? 0) + 1);
};

describe("PostgreSQL stopped and killed while messages come", () => {
  it("every message has its effect once, also when the answer to a commit was lost", { timeout: soak ? 1_800_000 : 900_000 }, async () => {
    const cluster = await ownCluster();
    const shop = system({ systemId: "shop", storage: { storage: "postgres", url: cluster.url, poolMax: 4 }, snapshots: { everyMs: 0 } });
    try {
      const component = shop.component("c");
      const port = component.port("p");
      let busy = true;
      let next = 0;
      let receipts = 0;
      const reached = async (wanted: number) => {
        while (receipts < wanted) await sleep(5);
      };
      const producer = async () => {
        while (busy) {
          const offset = next++;
          // What was refused is sent again, as a source would; what was stored although nobody heard of it is a duplicate then.
          for (;;)
            try {
              await port.receive({ id: `m${offset}`, offset }, count);
              receipts++;
              break;
            } catch (error) {
              expect(error).toMatchObject({ code: "unavailable" });
            }
        }
      };
      const producers = Array.from({ length: 8 }, producer);
      const rounds = soak ? 20 : 2;
      for (let restart = 0; restart < rounds; restart++) {
        await reached((restart + 1) * 60);
        await (restart % 2 === 0 ? cluster.kill() : cluster.stop());
        await sleep(200);
        await cluster.start();
      }
      await reached((rounds + 1) * 60);
      busy = false;
      await Promise.all(producers);
      expect(await component.get("count")).toBe(next);
      for (let offset = 0; offset < next; offset++) expect(await component.get(`m${offset}`)).toBe(1);
      expect(await port.position()).toMatchObject({ position: next - 1, highest: next - 1 });
    } finally {
      await shop.close();
      await cluster.destroy();
    }
  });
});

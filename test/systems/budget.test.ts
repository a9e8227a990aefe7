import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { triggersOf } from "../../src/admin/triggers.ts";
import { open } from "../../src/index.ts";
import { DOCTOR_DEFAULTS } from "../../src/model/doctor.ts";
import { SYSTEM_DEFAULTS } from "../../src/model/system-rules.ts";
import type { ComponentChange, SystemStore } from "../../src/ports/system-store.ts";
import { memorySystemStorage } from "../../src/stores/memory/systems.ts";
import { readActivity } from "../../src/stores/sqlite/driver/write-activity.ts";
import { settingsOf } from "../../src/systems/options.ts";
import { componentWriter } from "../../src/systems/writer.ts";
import { deliver } from "../../src/systems/writes.ts";

/** A writer on a clock that only waiting moves. Records when each commit began. */
async function clocked(commitsPerSecond: number) {
  let ticksMs = 0;
  const commitsAt: number[] = [];
  const storage = memorySystemStorage();
  const inner = await storage.create("shop");
  const store: SystemStore = {
    ...inner,
    commit(change: ComponentChange) {
      commitsAt.push(ticksMs);
      return inner.commit(change);
    },
  };
  const now = () => new Date(1_700_000_000_000 + ticksMs).toISOString();
  const writer = componentWriter({
    store: async () => store,
    component: "till",
    commitsPerSecond,
    now,
    ticks: () => ticksMs,
    wait: async (ms) => {
      ticksMs += ms;
    },
  });
  let sent = 0;
  const send = () => {
    const offset = sent++;
    const message = { component: "till", port: "in", firstOffset: 0, id: `m${offset}`, offset, value: null, data: null };
    return writer.submit(deliver({ ...message, effect: async () => {}, maxAttempts: 1, timeoutMs: 1_000, now }));
  };
  return { send, writer, commitsAt, pass: (ms: number) => (ticksMs += ms) };
}

describe("the write budget", () => {
  it("is 40 commits per second unless it is configured", () => {
    expect(settingsOf({})).toMatchObject({ commitsPerSecond: 40, snapshotEveryMs: 60_000, snapshotsKept: 10 });
    expect(SYSTEM_DEFAULTS.commitsPerSecond).toBe(40);
  });

  it("never commits more often than it allows, and acknowledges every message", async () => {
    const bursts = fc.array(fc.record({ messages: fc.integer({ min: 1, max: 30 }), pauseMs: fc.integer({ min: 0, max: 200 }) }), {
      minLength: 1,
      maxLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(1, 7, 40, 500), bursts, async (commitsPerSecond, arriving) => {
        const { send, writer, commitsAt, pass } = await clocked(commitsPerSecond);
        const receipts: Promise<{ outcome: string }>[] = [];
        for (const { messages, pauseMs } of arriving) {
          for (let i = 0; i < messages; i++) receipts.push(send());
          await Promise.race(receipts.slice(-1));
          pass(pauseMs);
        }
        expect((await Promise.all(receipts)).every(({ outcome }) => outcome === "done")).toBe(true);
        await writer.close();
        const gaps = commitsAt.slice(1).map((at, index) => at - commitsAt[index]!);
        for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(1_000 / commitsPerSecond - 1e-6);
      }),
      { numRuns: 60 },
    );
  });

  it("commits the first message without waiting", async () => {
    const { send, commitsAt } = await clocked(1);
    await send();
    expect(commitsAt).toEqual([0]);
  });
});

describe("write_rate", () => {
  const measured = (commitsPerSecond: number, budget: number) =>
    triggersOf(
      { processes: [], commitsPerSecond, busiestComponent: "till", windowSeconds: 60, bytes: 0 },
      { ...DOCTOR_DEFAULTS, commitsPerSecond: budget },
    ).find(({ name }) => name === "write_rate")!;

  it("fires above 90 % of the budget and not at it", () => {
    expect(measured(36, 40)).toMatchObject({ fired: false, limit: 36 });
    expect(measured(36.01, 40).fired).toBe(true);
    expect(measured(0.9, 1).fired).toBe(false);
    expect(measured(0.91, 1)).toMatchObject({ fired: true, message: expect.stringContaining("by till") });
  });

  it("fires for a component that uses its whole budget over the window, at every moment of a slice", () => {
    fc.assert(
      fc.property(fc.integer({ min: 10, max: 3_600 }), fc.double({ min: 0, max: 9.99, noNaN: true }), (windowSeconds, into) => {
        const nowSeconds = 1_000_000 + into;
        const rows: { slice: number; component: string; process: string; commits: number }[] = [];
        for (let slice = 100_000 - 360; slice <= 100_000; slice++) {
          const commits = slice === 100_000 ? Math.floor(40 * into) : 400;
          rows.push({ slice, component: "till", process: "1@a", commits }, { slice, component: "idle", process: "2@a", commits: 1 });
        }
        const all = (_: string, from: number, to: number) => {
          const sums = new Map<string, { component: string; process: string; commits: number }>();
          for (const { slice, component, process, commits } of rows)
            if (slice >= from && slice <= to)
              sums.set(component, { component, process, commits: (sums.get(component)?.commits ?? 0) + commits });
          return [...sums.values()];
        };
        const { busiest, seconds } = readActivity(all, nowSeconds, windowSeconds);
        expect(busiest!.component).toBe("till");
        expect(measured(busiest!.commits / seconds, 40).fired).toBe(true);
        expect(measured(busiest!.commits / seconds, 80).fired).toBe(false);
      }),
    );
  });
});

describe("the settings of systems", () => {
  it("reach the systems that the library opens and the doctor", async () => {
    const cairn = await open({
      storage: "memory",
      embedder: [],
      systems: { commitsPerSecond: 1, snapshots: { everyMs: 0, keep: 2 } },
    });
    const shop = cairn.systems.open("shop");
    const port = shop.component("till").port("in");
    await port.receive({ id: "a", offset: 0 }, () => {});
    for (let i = 0; i < 4; i++) await shop.snapshot();
    expect(await shop.snapshots()).toHaveLength(2);
    await shop.close();
    await cairn.close();
  });
});

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../src/model/limits.ts";
import { type Effect, openSystemStorage, type SystemOptions, type SystemStorageOptions, system } from "../../src/systems.ts";
import { wrongInput } from "../support/wrong-input.ts";
import { sqlitePlaces } from "./places.ts";

const places = sqlitePlaces();

const add: Effect<number> = async (state, { data }) => {
  state.set("sum", ((await state.get<number>("sum")) ?? 0) + data);
};

describe.each<[string, () => SystemStorageOptions]>([
  ["memory", () => ({ storage: "memory" })],
  ["SQLite", places],
])("an inbox in %s", (_, place) => {
  const open = (options: SystemOptions = {}) => {
    const opened = system({ systemId: "shop", storage: place(), snapshots: { everyMs: 0 }, ...options });
    const till = opened.component("till");
    return { opened, till, orders: till.port<number>("orders") };
  };

  it("takes a message once, with its effect", async () => {
    const { opened, till, orders } = open();
    expect(await orders.receive({ id: "a", offset: 0, data: 5 }, add)).toEqual({ outcome: "done", attempts: 0 });
    expect(await orders.receive({ id: "a", offset: 0, data: 5 }, add)).toEqual({ outcome: "duplicate", attempts: 0 });
    expect(await till.get("sum")).toBe(5);
    expect(await orders.position()).toMatchObject({ position: 0, highest: 0 });
    // The same id on another port or component is another message.
    expect(await till.port<number>("returns").receive({ id: "a", offset: 0, data: -1 }, add)).toMatchObject({ outcome: "done" });
    expect(await opened.component("stock").port<number>("orders").receive({ id: "a", offset: 0, data: 1 }, add)).toMatchObject({
      outcome: "done",
    });
    expect([await till.get("sum"), await opened.component("stock").get("sum")]).toEqual([4, 1]);
    await opened.close();
  });

  it("takes each of many at once exactly once, duplicates in the same commit included", async () => {
    const { opened, till, orders } = open();
    const receipts = await Promise.all(
      Array.from({ length: 300 }, (_, i) => orders.receive({ id: `m${i % 100}`, offset: i % 100, data: 1 }, add)),
    );
    expect(receipts.filter(({ outcome }) => outcome === "done")).toHaveLength(100);
    expect(receipts.filter(({ outcome }) => outcome === "duplicate")).toHaveLength(200);
    expect(await till.get("sum")).toBe(100);
    expect(await orders.position()).toMatchObject({ position: 99, highest: 99 });
    const [overview] = await opened.overview();
    expect(overview).toMatchObject({ component: "till", ports: [{ done: 100, pending: 0, dead: 0, ahead: 0 }] });
    expect(overview!.version).toBeLessThan(20); // they shared their commits
    await opened.close();
  });

  it("knows the highest offset up to which nothing is missing", async () => {
    const { opened, orders } = open();
    const position = async () => (await orders.position()).position;
    for (const [offset, expected] of [
      [2, -1],
      [0, 0],
      [5, 0],
      [1, 2],
      [4, 2],
      [3, 5],
    ] as const) {
      await orders.receive({ id: `m${offset}`, offset }, () => {});
      expect(await position()).toBe(expected);
    }
    expect((await orders.position()).highest).toBe(5);
    await opened.close();
  });

  it("begins where the source begins", async () => {
    const { opened, till } = open();
    const late = till.port("late", { firstOffset: 1_000 });
    expect(await late.position()).toMatchObject({ position: 999 });
    await late.receive({ id: "a", offset: 1_000 }, () => {});
    expect(await till.port("late").position()).toMatchObject({ firstOffset: 1_000, position: 1_000 });
    await expect(late.receive({ id: "b", offset: 999 }, () => {})).rejects.toMatchObject({ code: "invalid_input" });
    await opened.close();
  });

  it("recognises a message that its source sent again under another offset", async () => {
    const { opened, till, orders } = open();
    await orders.receive({ id: "a", offset: 0, data: 1 }, add);
    expect(await orders.receive({ id: "a", offset: 1, data: 1 }, add)).toMatchObject({ outcome: "duplicate" });
    expect(await till.get("sum")).toBe(1);
    expect((await orders.position()).position).toBe(1);
    await opened.close();
  });

  it("refuses a second message at an offset, which would hide one of them", async () => {
    const { opened, till, orders } = open();
    await orders.receive({ id: "a", offset: 0, data: 1 }, add);
    const [clash, next] = await Promise.allSettled([
      orders.receive({ id: "b", offset: 0, data: 10 }, add),
      orders.receive({ id: "c", offset: 1, data: 100 }, add),
    ]);
    expect(clash).toMatchObject({ status: "rejected", reason: { code: "conflict", details: { kind: "offset" } } });
    expect(next).toMatchObject({ status: "fulfilled", value: { outcome: "done" } });
    expect(await till.get("sum")).toBe(101);
    const twins = await Promise.allSettled(["d", "e"].map((id) => orders.receive({ id, offset: 2, data: 1 }, add)));
    expect(twins.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    await opened.close();
  });

  it("undoes an effect that fails, keeps the message, and tries it again", async () => {
    const { opened, till, orders } = open({ maxAttempts: 3 });
    const fail: Effect<number> = async (state, message) => {
      await add(state, message);
      throw new Error(`no, for the ${message.attempt}. time`);
    };
    expect(await orders.receive({ id: "a", offset: 0, data: 5 }, fail)).toEqual({
      outcome: "failed",
      attempts: 1,
      reason: "no, for the 1. time",
    });
    expect(await till.get("sum")).toBeUndefined();
    expect(await orders.position()).toMatchObject({ position: 0 });
    expect(await orders.pending()).toMatchObject([{ id: "a", offset: 0, data: 5, attempts: 1, reason: "no, for the 1. time" }]);
    expect(await orders.receive({ id: "a", offset: 0, data: 5 }, fail)).toMatchObject({ outcome: "failed", attempts: 2 });
    expect(await orders.work(add)).toEqual({ done: 1, failed: 0, dead: 0 });
    expect(await till.get("sum")).toBe(5);
    expect(await orders.pending()).toEqual([]);
    expect(await orders.receive({ id: "a", offset: 0, data: 5 }, add)).toMatchObject({ outcome: "duplicate" });
    await opened.close();
  });

  it("sets a message aside after too many attempts, and lets it be tried again", async () => {
    const { opened, till, orders } = open({ maxAttempts: 2 });
    await orders.receive({ id: "bad", offset: 0, data: 1 }, () => Promise.reject(new Error("first")));
    await orders.receive({ id: "good", offset: 1, data: 10 }, add);
    expect(await orders.work(() => Promise.reject("second"))).toEqual({ done: 0, failed: 0, dead: 1 });
    expect(await orders.deadLetters()).toMatchObject([{ id: "bad", data: 1, attempts: 2, reason: "second" }]);
    expect(await orders.receive({ id: "bad", offset: 0, data: 1 }, add)).toEqual({ outcome: "dead", attempts: 2, reason: "second" });
    expect(await orders.work(add)).toEqual({ done: 0, failed: 0, dead: 0 });
    expect(await till.get("sum")).toBe(10);
    expect([await orders.requeue(["absent", "good"]), await orders.requeue()]).toEqual([0, 1]);
    expect(await orders.deadLetters()).toEqual([]);
    expect(await orders.work(add)).toEqual({ done: 1, failed: 0, dead: 0 });
    expect(await till.get("sum")).toBe(11);
    await opened.close();
  });

  it("keeps messages for later when no effect is given", async () => {
    const { opened, till, orders } = open();
    for (const offset of [2, 0, 1])
      expect(await orders.receive({ id: `m${offset}`, offset, data: offset })).toMatchObject({ outcome: "stored" });
    expect(await orders.receive({ id: "m0", offset: 0, data: 0 })).toMatchObject({ outcome: "duplicate" });
    const order: number[] = [];
    const report = await orders.work(async (state, message) => {
      order.push(message.offset);
      await add(state, message);
    });
    expect([report, order, await till.get("sum")]).toEqual([{ done: 3, failed: 0, dead: 0 }, [0, 1, 2], 3]);
    await opened.close();
  });

  it("stops an effect that does not end, and takes nothing of it", async () => {
    const { opened, till, orders } = open({ effectTimeoutMs: 30 });
    let late: Promise<void> | undefined;
    const receipt = await orders.receive({ id: "a", offset: 0, data: 1 }, (state) => {
      state.set("early", 1);
      late = sleep(60).then(() => state.set("late", 1));
      return late;
    });
    expect(receipt).toMatchObject({ outcome: "failed", reason: expect.stringContaining("longer than") });
    await expect(late).rejects.toMatchObject({ code: "conflict" });
    expect([await till.get("early"), await till.get("late")]).toEqual([undefined, undefined]);
    await opened.close();
  });

  it("forgets what is finished and below the position, and still recognises it", async () => {
    const { opened, till, orders } = open({ maxAttempts: 1 });
    for (const offset of [0, 1, 2, 3, 5]) {
      const effect = offset === 1 ? () => Promise.reject(new Error("dead")) : add;
      await orders.receive({ id: `m${offset}`, offset, data: 1 }, effect);
    }
    await expect(orders.prune({})).rejects.toMatchObject({ code: "invalid_input" });
    expect(await orders.prune({ olderThanMs: 60_000 })).toBe(0);
    expect(await orders.prune({ keepLast: 1 })).toBe(2); // 0 and 2: 1 is a dead letter, 3 is kept, 5 is above the position
    expect(await opened.prune({ keepLast: 0 })).toBe(1);
    expect(await orders.position()).toMatchObject({ position: 3, prunedTo: 3 });
    for (const offset of [0, 2, 3, 5])
      expect(await orders.receive({ id: `m${offset}`, offset, data: 1 }, add)).toMatchObject({ outcome: "duplicate" });
    expect(await orders.receive({ id: "m1", offset: 1, data: 1 }, add)).toMatchObject({ outcome: "dead" });
    expect([await orders.seen({ id: "m0" }), await orders.seen({ id: "m0", offset: 0 }), await orders.seen({ id: "m5" })]).toEqual([
      false,
      true,
      true,
    ]);
    expect(await orders.seen({ id: "m4", offset: 4 })).toBe(false);
    await orders.receive({ id: "m4", offset: 4, data: 1 }, add);
    expect(await orders.position()).toMatchObject({ position: 5 });
    await sleep(5);
    expect(await orders.prune({ olderThanMs: 0 })).toBe(2);
    expect(await till.get("sum")).toBe(5);
    await opened.close();
  });

  it("refuses what it cannot store, and nothing else", async () => {
    const { opened, till, orders } = open();
    const big = "x".repeat(LIMITS.systemMessageBytes);
    const wrong: [object, string][] = [
      [{ id: "", offset: 0 }, "invalid_input"],
      [{ id: "x".repeat(301), offset: 0 }, "invalid_input"],
      [{ id: "a\0", offset: 0 }, "invalid_input"],
      [{ id: "\ud800", offset: 0 }, "invalid_input"],
      [{ id: 7, offset: 0 }, "invalid_input"],
      [{ id: "a", offset: -1 }, "invalid_input"],
      [{ id: "a", offset: 0.5 }, "invalid_input"],
      [{ id: "a", offset: 2 ** 53 }, "invalid_input"],
      [{ id: "a" }, "invalid_input"],
      [{ id: "a", offset: 0, data: () => 1 }, "invalid_input"],
      [{ id: "a", offset: 0, data: big }, "too_large"],
    ];
    for (const [message, code] of wrong) await expect(orders.receive(wrongInput(message), add)).rejects.toMatchObject({ code });
    expect(() => till.port("")).toThrow();
    expect(() => opened.component("x".repeat(101))).toThrow();
    const effects: Effect<number>[] = [
      (state) => state.set("k", big),
      (state) => state.set("", 1),
      (state) => state.set("k", () => {}),
      (state) => {
        for (let i = 0; i <= LIMITS.systemEffectWrites; i++) state.set(`k${i}`, i);
      },
      () => {
        throw new Error("a\0b\ud800");
      },
      () => Promise.reject(undefined),
    ];
    for (const [i, effect] of effects.entries())
      expect(await orders.receive({ id: `e${i}`, offset: i }, effect)).toMatchObject({
        outcome: "failed",
        attempts: 1,
        reason: expect.any(String),
      });
    expect(await till.get("k0")).toBeUndefined();
    await opened.close();
  });

  it("keeps plain data as it is", async () => {
    const { opened, till } = open();
    const data = {
      list: [1, Number.NaN, 10n],
      when: new Date(0),
      bytes: new Uint8Array([0, 255]),
      map: new Map([["ключ", "🙂"]]),
      no: null,
    };
    const port = till.port("any");
    await port.receive({ id: "a", offset: 0, data }, (state, message) => state.set("got", message.data));
    await port.receive({ id: "b", offset: 1, data });
    expect(await till.get("got")).toEqual(data);
    expect(await port.pending()).toMatchObject([{ id: "b", data }]);
    await opened.close();
  });

  it("sees what the effects before it wrote, also in the same commit", async () => {
    const { opened, till, orders } = open();
    const trail: Effect<number> = async (state, { data }) => {
      const before = (await state.get<number[]>("trail")) ?? [];
      state.set("trail", [...before, data]);
      expect(await state.get("trail")).toEqual([...before, data]);
      if (data === 3) state.delete("trail");
    };
    await Promise.all([1, 2, 3, 4, 5].map((data) => orders.receive({ id: `m${data}`, offset: data - 1, data }, trail)));
    expect(await till.get("trail")).toEqual([4, 5]);
    await opened.close();
  });

  it("keeps to its write budget by putting messages together, and drops none", async () => {
    const storage = await openSystemStorage(place());
    const opened = system({ systemId: "shop", storage, snapshots: { everyMs: 0 }, commitsPerSecond: 10 });
    const orders = opened.component("till").port<number>("orders");
    const start = performance.now();
    const receipts: Promise<unknown>[] = [];
    for (let sent = 0; performance.now() - start < 450; await sleep(10))
      for (let i = 0; i < 20; i++, sent++) receipts.push(orders.receive({ id: `m${sent}`, offset: sent, data: 1 }, add));
    await Promise.all(receipts);
    const allowed = Math.ceil((performance.now() - start) / 100) + 1;
    const [till] = await opened.overview();
    expect(await opened.component("till").get("sum")).toBe(receipts.length);
    expect(till!.version).toBeLessThanOrEqual(allowed);
    await opened.close();
    await storage.close();
  });

  it("reports when too much waits, instead of growing", async () => {
    const { opened, till, orders } = open();
    const all = await Promise.allSettled(
      Array.from({ length: LIMITS.systemQueueMessages + 5 }, (_, i) => orders.receive({ id: `m${i}`, offset: i, data: 1 }, add)),
    );
    const refused = all.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(5);
    expect(refused[0]).toMatchObject({ reason: { code: "rate_limited", details: { kind: "queue" } } });
    expect(await till.get("sum")).toBe(LIMITS.systemQueueMessages);
    await opened.close();
  });

  it("bounds what it remembers of gaps, ports and components", async () => {
    const { opened, till, orders } = open();
    const gap = Array.from({ length: LIMITS.systemPorts + 1 }, (_, i) => till.port(`p${i}`).receive({ id: "a", offset: 0 }, () => {}));
    const refused = (await Promise.allSettled(gap)).filter(({ status }) => status === "rejected");
    expect(refused).toMatchObject([{ reason: { code: "too_large" } }]);
    const [none, one] = await Promise.allSettled(
      [orders, till.port<number>("p0")].map((port) => port.receive({ id: "b", offset: 1 }, () => {})),
    );
    expect([none, one]).toMatchObject([{ reason: { code: "too_large" } }, { value: { outcome: "done" } }]);
    expect(() => {
      for (let i = 0; i <= LIMITS.systemComponents; i++) opened.component(`c${i}`).port("in");
    }).toThrow(/at most/);
    await opened.close();
  });

  it("takes back what nobody waits for any more, and refuses after its end", async () => {
    const { opened, till, orders } = open();
    const gone = orders.receive({ id: "a", offset: 0, data: 1 }, add, { signal: AbortSignal.abort() });
    await expect(gone).rejects.toMatchObject({ name: "AbortError" });
    const controller = new AbortController();
    const waiting = orders.receive({ id: "b", offset: 0, data: 1 }, add, { signal: controller.signal });
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
    expect(await till.get("sum")).toBeUndefined();
    await opened.close();
    await opened.close();
    await expect(orders.receive({ id: "c", offset: 0, data: 1 }, add)).rejects.toMatchObject({ code: "unavailable" });
  });
});

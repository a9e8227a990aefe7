import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import type { SnapshotPart } from "../../src/model/system.ts";
import { sqliteDatabases } from "../../src/stores/sqlite/driver/databases.ts";
import type { SqliteTx } from "../../src/stores/sqlite/driver/driver.ts";
import { type Effect, openSystemStorage, type SystemOptions, type SystemStorageOptions, system } from "../../src/systems.ts";
import { sqlitePlaces } from "./places.ts";

const places = sqlitePlaces();

const add: Effect<number> = async (state, { data }) => {
  state.set("sum", ((await state.get<number>("sum")) ?? 0) + data);
};

describe.each<[string, () => SystemStorageOptions]>([
  ["memory", () => ({ storage: "memory" })],
  ["SQLite", places],
])("snapshots in %s", (_, place) => {
  async function open(options: SystemOptions = {}) {
    const storage = await openSystemStorage(place());
    const shop = system({ systemId: "shop", storage, snapshots: { everyMs: 0 }, ...options });
    const port = (component: string) => shop.component(component).port<number>("in");
    const receive = (component: string, offset: number, effect = add) =>
      port(component).receive({ id: `m${offset}`, offset, data: 1 }, effect);
    return { shop, storage, port, receive, sum: (component: string) => shop.component(component).get("sum") };
  }

  it("bring everything back to one moment, and what came later is taken again", async () => {
    const { shop, port, receive, sum } = await open({ maxAttempts: 1 });
    for (const offset of [0, 1, 3]) await receive("a", offset);
    await receive("a", 4, () => Promise.reject(new Error("dead")));
    await receive("b", 0);
    const taken = await shop.snapshot();
    expect(taken).toMatchObject({ mode: "consistent", complete: true, components: 2, messages: 2, stateKeys: 2 });
    for (const offset of [2, 5]) await receive("a", offset);
    await port("a").requeue();
    await port("a").work(add);
    await port("a").prune({ keepLast: 0 });
    await receive("c", 0);
    expect([await sum("a"), await sum("b"), await sum("c")]).toEqual([6, 1, 1]);

    const report = await shop.restore();
    expect(report).toMatchObject({
      snapshotId: taken.id,
      skipped: [],
      ports: [
        { component: "a", port: "in", position: 1 },
        { component: "b", position: 0 },
      ],
    });
    expect([await sum("a"), await sum("b"), await sum("c")]).toEqual([3, 1, undefined]);
    expect(await port("a").deadLetters()).toMatchObject([{ id: "m4", data: 1, reason: "dead" }]);
    const outcomes = [];
    for (const offset of [0, 1, 2, 3, 4, 5]) outcomes.push((await receive("a", offset)).outcome);
    expect(outcomes).toEqual(["duplicate", "duplicate", "done", "duplicate", "dead", "done"]);
    expect([await sum("a"), (await port("a").position()).position]).toEqual([5, 5]);
    await shop.close();
  });

  it("hold one moment of all components while messages keep coming", async () => {
    const { shop, receive } = await open();
    let stop = false;
    // Whatever b has, a had before: no snapshot may show b ahead of a.
    const feeding = (async () => {
      for (let i = 0; !stop; i++) {
        await receive("a", i);
        await receive("b", i);
      }
    })();
    for (let i = 0; i < 5; i++) {
      await sleep(15);
      const { id } = await shop.snapshot();
      expect(await shop.verify({ snapshotId: id, level: "full" })).toMatchObject([{ good: true, problems: [] }]);
    }
    stop = true;
    await feeding;
    for (const { id } of await shop.snapshots()) {
      const { ports } = await shop.restore({ snapshotId: id });
      const position = (name: string) => ports.find(({ component }) => component === name)?.position ?? -1;
      expect(position("a") - position("b")).toBeOneOf([0, 1]);
      expect(await shop.component("a").get("sum")).toBe(position("a") + 1);
      expect((await shop.component("b").get("sum")) ?? 0).toBe(position("b") + 1);
    }
    await shop.close();
  });

  it("hold everything that was sent before them", async () => {
    const { shop, receive, sum } = await open();
    const sent = Array.from({ length: 50 }, (_, i) => receive("a", i));
    const taking = shop.snapshot();
    const after = receive("a", 50);
    await Promise.all([...sent, taking, after]);
    await shop.restore();
    expect(await sum("a")).toBeOneOf([50, 51]);
    await shop.close();
  });

  it("can be taken without holding anything up, each component at its own moment", async () => {
    const { shop, receive, sum } = await open();
    let during: Promise<unknown> | undefined;
    await receive("a", 0);
    await receive("b", 0);
    const slow = receive("a", 1, async (state, message) => {
      const taken = shop.snapshot({ mode: "per_component" }); // would never end if it waited for this effect
      during = taken;
      await taken;
      await add(state, message);
    });
    await slow;
    expect(await during).toMatchObject({ mode: "per_component", complete: true, components: 2 });
    await shop.restore();
    expect([await sum("a"), await sum("b")]).toEqual([1, 1]);
    await shop.close();
  });

  it("keep the last ten, or as many as are wanted", async () => {
    const { shop, receive } = await open();
    for (let i = 0; i < 12; i++) {
      await receive("a", i);
      await shop.snapshot();
    }
    const ids = (await shop.snapshots()).map(({ id }) => id);
    expect(ids).toHaveLength(10);
    await shop.close();
    const few = await open({ snapshots: { keep: 2, everyMs: 3_600_000 } });
    for (let i = 0; i < 4; i++) await few.shop.snapshot();
    expect(await few.shop.snapshots()).toHaveLength(2);
    await few.shop.close();
  });

  it("skip what is unfinished, and say so", async () => {
    const { shop, storage, receive, sum } = await open();
    await receive("a", 0);
    const { id } = await shop.snapshot();
    await receive("a", 1);
    const store = (await storage.find("shop"))!;
    await store.beginSnapshot({ id: "half", createdAt: new Date().toISOString(), mode: "consistent" });
    await store.addSnapshotPart("half", { component: "a", checksum: "x", data: new Uint8Array([1]) });
    expect(await shop.restore()).toMatchObject({ snapshotId: id, skipped: [{ snapshotId: "half", problems: ["it was never finished"] }] });
    expect(await sum("a")).toBe(1);
    await expect(shop.restore({ snapshotId: "half" })).rejects.toMatchObject({ code: "unavailable", details: { kind: "damaged" } });
    await expect(shop.restore({ snapshotId: "absent" })).rejects.toMatchObject({ code: "not_found" });
    await shop.close();
  });

  it("of nothing can be restored, and without any there is a clear answer", async () => {
    const { shop, receive, sum } = await open();
    await expect(shop.restore()).rejects.toMatchObject({ code: "not_found" });
    await shop.snapshot();
    await receive("a", 0);
    await shop.restore();
    expect(await sum("a")).toBeUndefined();
    expect(await receive("a", 0)).toMatchObject({ outcome: "done" });
    await shop.close();
  });

  it("are taken by themselves when something has changed, and old messages go with them", async () => {
    const { shop, receive } = await open({ snapshots: { everyMs: 30, keep: 3 }, retention: { keepLast: 1 } });
    await receive("a", 0);
    await receive("a", 1);
    await vi.waitFor(async () => expect((await shop.snapshots()).some(({ complete }) => complete)).toBe(true), 120_000);
    await vi.waitFor(async () => expect(await shop.overview()).toMatchObject([{ ports: [{ done: 1, prunedTo: 0 }] }]), 120_000);
    // The retention was a change, too; after that one there are no more.
    await vi.waitFor(async () => {
      const [newest] = await shop.snapshots();
      await sleep(150);
      expect((await shop.snapshots())[0]).toEqual(newest);
    }, 120_000);
    await shop.close();
  });
});

describe("a damaged snapshot in SQLite", () => {
  const ALL = ["count", "integrity", "checksum", "full"];
  const part = (tx: SqliteTx, id: string, component: string) =>
    tx.get<SnapshotPart>("SELECT checksum, data FROM snapshot_parts WHERE snapshot_id = ? AND component_name = ?", id, component)!;
  const setPart = (tx: SqliteTx, id: string, component: string, { checksum, data }: SnapshotPart) =>
    tx.run("UPDATE snapshot_parts SET checksum = ?, data = ? WHERE snapshot_id = ? AND component_name = ?", checksum, data, id, component);

  const damages: Record<string, { damage: (tx: SqliteTx, id: string) => void; levels: readonly string[] }> = {
    "one flipped bit": {
      damage(tx, id) {
        const flipped = part(tx, id, "a");
        flipped.data[9]! ^= 1; // in the header of the compressed data, which decompression does not look at
        setPart(tx, id, "a", flipped);
      },
      levels: ["checksum", "full"],
    },
    "bytes that were overwritten": {
      damage(tx, id) {
        const zeroed = part(tx, id, "a");
        zeroed.data.fill(0, 40, 60);
        setPart(tx, id, "a", zeroed);
      },
      levels: ["integrity", "checksum", "full"],
    },
    "a part that is missing": {
      damage: (tx, id) => tx.run("DELETE FROM snapshot_parts WHERE snapshot_id = ? AND component_name = 'b'", id),
      levels: ALL,
    },
    "a part that is cut off": {
      damage(tx, id) {
        const whole = part(tx, id, "a");
        setPart(tx, id, "a", { ...whole, data: whole.data.subarray(0, -1) });
      },
      levels: ALL,
    },
    "a checksum that was altered": {
      damage: (tx, id) => tx.run("UPDATE snapshots SET checksum = 'x' WHERE id = ?", id),
      levels: ["checksum", "full"],
    },
    "a mode that was altered": {
      damage: (tx, id) => tx.run("UPDATE snapshots SET mode = 'per_component' WHERE id = ?", id),
      levels: ["checksum", "full"],
    },
    "counts that do not fit": {
      damage: (tx, id) => tx.run("UPDATE snapshots SET state_keys = 99 WHERE id = ?", id),
      levels: ["integrity", "checksum", "full"],
    },
    "parts that changed places": {
      damage(tx, id) {
        const [a, b] = [part(tx, id, "a"), part(tx, id, "b")];
        setPart(tx, id, "a", b);
        setPart(tx, id, "b", a);
      },
      levels: ["integrity", "checksum", "full"],
    },
  };

  it.each(Object.entries(damages))("is noticed and never chosen: %s", async (_, { damage, levels }) => {
    const place = places();
    const shop = system({ systemId: "shop", storage: place, snapshots: { everyMs: 0 } });
    const receive = (offset: number) =>
      Promise.all(
        ["a", "b"].map((name) =>
          shop
            .component(name)
            .port<number>("in")
            .receive({ id: `m${offset}`, offset, data: 1 }, add),
        ),
      );
    await receive(0);
    const older = await shop.snapshot();
    await receive(1);
    const newer = await shop.snapshot();
    await receive(2);
    const databases = sqliteDatabases();
    const file = await databases.handle({ path: `${place.stateDir}/checkpoints/shop.db` })();
    await file.write((tx) => damage(tx, newer.id));
    await databases.close();
    for (const level of ["count", "integrity", "checksum", "full"] as const) {
      const [report] = await shop.verify({ snapshotId: newer.id, level });
      expect([level, report!.good]).toEqual([level, !levels.includes(level)]);
      expect(await shop.verify({ snapshotId: older.id, level })).toMatchObject([{ good: true }]);
    }
    await expect(shop.restore({ snapshotId: newer.id })).rejects.toMatchObject({ code: "unavailable" });
    expect(await shop.component("a").get("sum")).toBe(3);
    expect(await shop.restore()).toMatchObject({ snapshotId: older.id, skipped: [{ snapshotId: newer.id }] });
    expect([await shop.component("a").get("sum"), await shop.component("b").get("sum")]).toEqual([1, 1]);
    await shop.close();
  });
});

import assert from "node:assert/strict";
import { bytes, raises, same } from "./assertions.ts";
import { AT, change, head, loadedPort, message, port, position, type SystemCases } from "./system-samples.ts";

/** Committing, listing and deleting the messages, offsets and state of components. */
export const COMPONENT_CASES: SystemCases = {
  "finds created systems only": async (store, storage) => {
    assert.equal(store.systemId, "shop");
    await storage.create("Other.system-2");
    same(await storage.systems(), ["Other.system-2", "shop"]);
    assert.equal((await storage.find("shop"))?.systemId, "shop");
    assert.equal(await storage.find("absent"), undefined);
    same(await storage.systems(), ["Other.system-2", "shop"]);
  },

  "refuses ids that are not portable file names": async (_, storage) => {
    for (const id of ["", ".", "..", "a/b", "a\\b", "../x", "-x", "a b", "a\0b", "ä", "x".repeat(101)]) {
      await raises("invalid_input", () => storage.create(id));
      await raises("invalid_input", () => storage.find(id));
    }
  },

  "isolates systems": async (store, storage) => {
    const other = await storage.create("other");
    await store.commit(change({ messages: [message(0)], state: [["k", bytes("shop")]] }));
    await other.commit(change({ state: [["k", bytes("other")]] }));
    same(await store.state("c", ["k"]), [bytes("shop")]);
    same(await other.state("c", ["k"]), [bytes("other")]);
    same((await other.load("c", [{ port: "p", id: "m0" }])).messages, [undefined]);
  },

  "commits messages, offsets and state atomically": async (store) => {
    same(await store.load("c", [{ port: "p", id: "m0" }]), { version: 0, ports: [], messages: [undefined] });
    const messages = [message(0), message(2, { status: "pending", attempts: 1, reason: "no", data: null })];
    const ports = [port({ position: 0, highest: 2, aheadAdded: [2] })];
    assert.equal(await store.commit(change({ messages, ports, state: [["k", bytes("v")]] })), true);
    const loaded = await store.load("c", [
      { port: "p", id: "m2" },
      { port: "p", offset: 0 },
      { port: "q", id: "m0" },
      { port: "p", offset: 1 },
    ]);
    assert.equal(loaded.version, 1);
    same(loaded.ports, [loadedPort({ position: 0, highest: 2, ahead: [2] }, 1)]);
    same(loaded.messages, [head(messages[1]!), head(messages[0]!), undefined, undefined]);
    same(await store.state("c", ["k", "x", "k"]), [bytes("v"), undefined, bytes("v")]);
    same(await store.state("d", ["k"]), [undefined]);
    assert.equal((await store.load("c", [], 1)).ports, undefined);
    same((await store.load("c", [{ port: "p", id: "m0" }], 1)).messages, [head(messages[0]!)]);
    assert.equal((await store.load("c", [], 0)).ports?.length, 1);
  },

  "changes nothing when the version is not current": async (store) => {
    assert.equal(await store.commit(change({ version: 1 })), false);
    assert.equal((await store.load("c", [])).version, 0);
    await store.commit(change({ state: [["k", bytes("first")]] }));
    const late = change({ version: 0, messages: [message(0)], state: [["k", bytes("late")]] });
    assert.equal(await store.commit(late), false);
    assert.equal(await store.commit({ ...late, version: 2 }), false);
    same(await store.state("c", ["k"]), [bytes("first")]);
    const loaded = await store.load("c", [{ port: "p", id: "m0" }]);
    same([loaded.version, loaded.messages], [1, [undefined]]);
    assert.equal(await store.commit({ ...late, version: 1 }), true);
    assert.equal((await store.load("c", [])).version, 2);
  },

  "accepts one of several concurrent commits": async (store) => {
    for (let version = 0; version < 3; version++) {
      const won = await Promise.all(
        Array.from({ length: 8 }, (_, i) => store.commit(change({ version, state: [["winner", bytes(String(i))]] }))),
      );
      assert.equal(won.filter(Boolean).length, 1);
      same(await store.state("c", ["winner"]), [bytes(String(won.indexOf(true)))]);
    }
  },

  "updates the status of an existing message and keeps its other fields": async (store) => {
    const first = message(0, { status: "pending", data: bytes("data") });
    await store.commit(change({ messages: [first] }));
    const failed = { ...first, status: "dead", attempts: 3, reason: "why" } as const;
    await store.commit(change({ version: 1, messages: [{ ...failed, data: null, timestamp: 99 }] }));
    same(await store.messages({ status: "dead", limit: 10 }), [{ ...failed, component: "c" }]);
    same(await store.messages({ status: "pending", limit: 10 }), []);
  },

  "copies bytes in and out, also empty ones": async (store) => {
    const data = bytes("data");
    const value = bytes("value");
    const odd = message(1, { status: "pending", data: new Uint8Array() });
    await store.commit(
      change({
        messages: [message(0, { status: "pending", data }), odd],
        state: [
          ["k", value],
          ["e", new Uint8Array()],
        ],
      }),
    );
    data.fill(0);
    value.fill(0);
    const [stored, empty] = await store.messages({ status: "pending", limit: 10 });
    same(stored!.data, bytes("data"));
    same(empty!.data, new Uint8Array());
    const [got, nothing] = await store.state("c", ["k", "e"]);
    same(got!, bytes("value"));
    same(nothing!, new Uint8Array());
    got!.fill(0);
    same(await store.state("c", ["k"]), [bytes("value")]);
  },

  "removes keys, and sets them again": async (store) => {
    await store.commit(
      change({
        state: [
          ["a", bytes("1")],
          ["b", bytes("2")],
        ],
      }),
    );
    await store.commit(
      change({
        version: 1,
        state: [
          ["a", null],
          ["b", bytes("3")],
          ["never", null],
        ],
      }),
    );
    same(await store.state("c", ["a", "b", "never"]), [undefined, bytes("3"), undefined]);
    await store.commit(change({ version: 2, state: [["a", bytes("4")]] }));
    same(await store.state("c", ["a"]), [bytes("4")]);
  },

  "deletes out-of-order offsets when their gap is closed": async (store) => {
    await store.commit(change({ ports: [port({ position: -1, highest: 3, aheadAdded: [1, 3] })] }));
    await store.commit(change({ version: 1, ports: [port({ position: 1, highest: 3, closesGap: true })] }));
    same((await store.load("c", [])).ports, [loadedPort({ position: 1, highest: 3, ahead: [3] })]);
    await store.commit(change({ version: 2, ports: [port({ position: 3, highest: 3, closesGap: true })] }));
    same((await store.load("c", [])).ports, [loadedPort({ position: 3, highest: 3 })]);
  },

  "lists messages by component, port and offset, in pages": async (store) => {
    const some = (name: string, ...at: number[]) => at.map((offset) => message(offset, { port: name, status: "pending" }));
    await store.commit(change({ component: "b", ports: [port({ port: "p" })], messages: some("p", 2, 1) }));
    const ports = ["B", "a", "ä"].map((name) => port({ port: name }));
    await store.commit(change({ component: "a", ports, messages: [...some("ä", 1), ...some("a", 10, 9), ...some("B", 5)] }));
    const list = async (query: object) =>
      (await store.messages({ status: "pending", limit: 100, ...query })).map(
        ({ component, port, offset }) => `${component} ${port} ${offset}`,
      );
    same(await list({}), ["a B 5", "a a 9", "a a 10", "a ä 1", "b p 1", "b p 2"]);
    same(await list({ limit: 2, after: { component: "a", port: "a", offset: 9 } }), ["a a 10", "a ä 1"]);
    same(await list({ component: "a", port: "a" }), ["a a 9", "a a 10"]);
    same(await list({ component: "b" }), ["b p 1", "b p 2"]);
    same(await list({ status: "dead" }), []);
  },

  "deletes only finished messages below the mark": async (store) => {
    const messages = [0, 1, 2, 3, 4].map((offset) =>
      message(offset, { status: offset === 1 ? "pending" : offset === 2 ? "dead" : "done" }),
    );
    await store.commit(change({ messages, ports: [port({ position: 4, highest: 4 })] }));
    assert.equal(await store.sweep("c", "p", { upTo: 99, limit: 100 }), 0);
    await store.commit(change({ version: 1, ports: [port({ position: 4, highest: 4, prunedTo: 3 })] }));
    assert.equal(await store.sweep("c", "p", { upTo: 2, limit: 100 }), 1);
    assert.equal(await store.sweep("c", "p", { upTo: 99, limit: 1 }), 1);
    assert.equal(await store.sweep("c", "p", { upTo: 99, limit: 100 }), 0);
    assert.equal(await store.sweep("absent", "p", { upTo: 99, limit: 100 }), 0);
    const left = (
      await store.load(
        "c",
        messages.map(({ id }) => ({ port: "p", id })),
      )
    ).messages.map((found) => found?.offset);
    same(left, [undefined, 1, 2, undefined, 4]);
  },

  "returns the first offset since a time": async (store) => {
    const messages = [0, 1, 2].map((offset) => message(offset, { timestamp: 100.5 + offset }));
    await store.commit(change({ messages }));
    assert.equal(await store.firstSince("c", "p", 101.5), 1);
    assert.equal(await store.firstSince("c", "p", 0), 0);
    assert.equal(await store.firstSince("c", "p", 102.6), undefined);
    assert.equal(await store.firstSince("c", "q", 0), undefined);
  },

  "returns the counts of an overview": async (store) => {
    const messages = [message(0), message(2, { status: "dead" }), message(3, { status: "pending" })];
    const ports = [port({ position: 0, highest: 3, aheadAdded: [2, 3] })];
    await store.commit(change({ messages, ports, state: [["k", bytes("four")]] }));
    await store.commit(change({ component: "a" }));
    same(await store.overview(), [
      {
        component: "a",
        version: 1,
        updatedAt: AT,
        stateKeys: 0,
        stateBytes: 0,
        ports: [{ ...position(), ahead: 0, pending: 0, done: 0, dead: 0 }],
      },
      {
        component: "c",
        version: 1,
        updatedAt: AT,
        stateKeys: 1,
        stateBytes: 4,
        ports: [{ ...position({ position: 0, highest: 3 }), ahead: 2, pending: 1, done: 1, dead: 1 }],
      },
    ]);
  },
};

import assert from "node:assert/strict";
import type { ComponentImage } from "../model/system.ts";
import { bytes, plain, raises, same } from "./assertions.ts";
import { AT, change, head, loadedPort, MAX, message, offsets, port, type SystemCases } from "./system-samples.ts";

/** Collecting, restoring and storing snapshots. */
export const SNAPSHOT_CASES: SystemCases = {
  "collects the complete state of a component": async (store) => {
    const messages = [message(0), message(1, { status: "pending" }), message(2, { status: "dead" }), message(4)];
    const ports = [port({ position: 2, highest: 4, aheadAdded: [4] })];
    await store.commit(
      change({
        messages,
        ports,
        state: [
          ["b", bytes("2")],
          ["a", bytes("1")],
        ],
      }),
    );
    await store.commit(change({ component: "d", ports: [] }));
    const image: ComponentImage = {
      component: "c",
      version: 1,
      ports: [offsets({ position: 2, highest: 4, ahead: [4] })],
      messages: messages.slice(1),
      state: [
        ["a", bytes("1")],
        ["b", bytes("2")],
      ],
    };
    const empty = { component: "d", version: 1, ports: [], messages: [], state: [] };
    same(await store.collect({ maxBytes: MAX }), [image, empty]);
    same(await store.collect({ components: ["d", "absent"], maxBytes: MAX }), [empty]);
    await raises("too_large", () => store.collect({ maxBytes: 10 }));
  },

  "discards later messages on restore": async (store) => {
    const messages = [message(0), message(1, { status: "pending" }), message(3)];
    const ports = [port({ position: 1, highest: 3, aheadAdded: [3] })];
    await store.commit(change({ messages, ports, state: [["k", bytes("then")]] }));
    const images = await store.collect({ maxBytes: MAX });
    await store.commit(
      change({
        version: 1,
        messages: [message(2), { ...messages[1]!, status: "done" }, message(4)],
        ports: [port({ position: 4, highest: 4, prunedTo: 4, closesGap: true }), port({ port: "later" })],
        state: [
          ["k", bytes("now")],
          ["new", bytes("now")],
        ],
      }),
    );
    await store.commit(change({ component: "later", state: [["k", bytes("x")]] }));
    await store.sweep("c", "p", { upTo: 99, limit: 100 });
    await store.restore(images, AT);
    const {
      version,
      ports: back,
      messages: found,
    } = await store.load(
      "c",
      [0, 1, 2, 3, 4].map((i) => ({ port: "p", id: `m${i}` })),
    );
    assert.equal(version, 3);
    same(back, [loadedPort({ position: 1, highest: 3, prunedTo: 1, ahead: [3] }, 1)]);
    same(found, [undefined, head(messages[1]!), undefined, head(messages[2]!), undefined]);
    same(await store.state("c", ["k", "new"]), [bytes("then"), undefined]);
    const loaded = await store.load("later", [{ port: "p", id: "m0" }]);
    same([loaded.version, loaded.ports, await store.state("later", ["k"])], [2, [], [undefined]]);
    // A commit based on the previous state is refused.
    assert.equal(await store.commit(change({ version: 2 })), false);
    const again = await store.collect({ components: ["c"], maxBytes: MAX });
    same(again, [{ ...(plain(images[0]!) as object), version: 3, ports: [offsets({ position: 1, highest: 3, prunedTo: 1, ahead: [3] })] }]);
  },

  "restores into an empty system": async (store, storage) => {
    await store.commit(
      change({ messages: [message(0, { status: "pending" })], ports: [port({ position: 0, highest: 0 })], state: [["k", bytes("v")]] }),
    );
    const images = await store.collect({ maxBytes: MAX });
    const other = await storage.create("copy");
    await other.restore(images, AT);
    const [copied] = await other.collect({ maxBytes: MAX });
    same(plain(copied!) as object, { ...(plain(images[0]!) as object), ports: [offsets({ position: 0, highest: 0, prunedTo: 0 })] });
  },

  "stores snapshots with their parts and lists them newest first": async (store) => {
    same(await store.snapshots(), []);
    await store.beginSnapshot({ id: "s1", createdAt: AT, mode: "consistent" });
    await store.addSnapshotPart("s1", { component: "b", checksum: "cb", data: bytes("b") });
    await store.addSnapshotPart("s1", { component: "a", checksum: "ca", data: bytes("a") });
    await store.beginSnapshot({ id: "s2", createdAt: AT, mode: "per_component" });
    const totals = { components: 2, messages: 3, stateKeys: 4, bytes: 5 };
    await store.completeSnapshot("s1", { ...totals, checksum: "sum" });
    const none = { components: 0, messages: 0, stateKeys: 0, bytes: 0 };
    same(await store.snapshots(), [
      { id: "s2", createdAt: AT, mode: "per_component", complete: false, checksum: null, ...none },
      { id: "s1", createdAt: AT, mode: "consistent", complete: true, checksum: "sum", ...totals },
    ]);
    const parts = (await store.snapshotParts("s1")).map((part) => ({ ...part, data: plain(part.data) }));
    same(parts, [
      { component: "a", checksum: "ca", data: bytes("a") },
      { component: "b", checksum: "cb", data: bytes("b") },
    ]);
    await store.deleteSnapshot("s1");
    await store.deleteSnapshot("s1");
    same(
      (await store.snapshots()).map(({ id }) => id),
      ["s2"],
    );
    await raises("not_found", () => store.snapshotParts("s1"));
    await raises("not_found", () => store.completeSnapshot("s1", { ...totals, checksum: "x" }));
    await raises("not_found", () => store.addSnapshotPart("s1", { component: "a", checksum: "", data: bytes("") }));
  },
};

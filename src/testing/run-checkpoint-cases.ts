import assert from "node:assert/strict";
import { LIMITS } from "../model/limits.ts";
import { bytes, raises } from "./assertions.ts";
import { newRun, type RunCases } from "./run-samples.ts";

/** Saving, loading and deleting the checkpoints of a run. */
export const RUN_CHECKPOINT_CASES: RunCases = {
  "saves, loads, lists and deletes run checkpoints": async (store) => {
    await store.save({ runId: "run-1", nodeId: "node-a", state: bytes("data-a") });
    assert.deepEqual((await store.load("run-1", "node-a")).state, bytes("data-a"));
    await raises("not_found", () => store.load("run-1", "node-x"));
    await store.save({ runId: "run-1", nodeId: "node-b", state: bytes("data-b") });
    assert.equal((await store.list("run-1")).length, 2);
    await store.delete("run-1", "node-a");
    await raises("not_found", () => store.load("run-1", "node-a"));
    await store.deleteRun("run-1");
    assert.deepEqual(await store.list("run-1"), []);
  },

  "stores every field and fills in defaults": async (store) => {
    const full = {
      nextNode: "c",
      previousNode: "a",
      attempt: 3,
      branch: "fan#2/left",
      step: 7,
      kind: "pause",
      note: '{"ask":"ü"}',
    } as const;
    const saved = await store.save({ runId: "r", nodeId: "b", state: bytes("state"), ...full });
    const loaded = await store.load("r", "b");
    const { state, ...info } = loaded;
    assert.deepEqual(info, saved);
    assert.deepEqual(state, bytes("state"));
    assert.deepEqual({ ...info, ...full }, info);
    assert.equal(info.version, 1);
    assert.equal(info.size, 5);
    assert.match(info.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const bare = await store.save({ runId: "r", nodeId: "bare", state: bytes("") });
    assert.deepEqual(
      [bare.nextNode, bare.previousNode, bare.attempt, bare.branch, bare.step, bare.kind, bare.note, bare.size],
      [null, null, 1, "", 0, "node", null, 0],
    );
    assert.equal((await store.load("r", "bare")).state.length, 0);
  },

  "replaces a node's checkpoint and keeps the old one in the history": async (store) => {
    await store.save({ runId: "r", nodeId: "loop", state: bytes("1") });
    await store.save({ runId: "r", nodeId: "other", state: bytes("2") });
    await store.save({ runId: "r", nodeId: "loop", state: bytes("3") });
    assert.deepEqual((await store.load("r", "loop")).state, bytes("3"));
    assert.deepEqual(
      (await store.list("r")).map(({ nodeId, sequence }) => [nodeId, sequence]),
      [
        ["other", 2],
        ["loop", 3],
      ],
    );
    assert.deepEqual(
      (await store.history("r", { limit: 10 })).map(({ nodeId, sequence }) => [nodeId, sequence]),
      [
        ["loop", 3],
        ["other", 2],
        ["loop", 1],
      ],
    );
    assert.deepEqual((await store.loadAt("r", 1)).state, bytes("1"));
    await raises("not_found", () => store.loadAt("r", 4));
  },

  "pages through the history": async (store) => {
    for (let i = 1; i <= 7; i++) await store.save({ runId: "r", nodeId: `n${i % 2}`, state: bytes(String(i)) });
    const first = await store.history("r", { limit: 3 });
    const second = await store.history("r", { limit: 3, before: first.at(-1)!.sequence });
    assert.deepEqual(
      [...first, ...second].map(({ sequence }) => sequence),
      [7, 6, 5, 4, 3, 2],
    );
    assert.deepEqual(await store.history("none", { limit: 3 }), []);
    assert.equal((await store.history("r")).length, 7);
  },

  "never reuses a sequence, not even after a delete": async (store) => {
    for (const nodeId of ["a", "b", "c"]) await store.save({ runId: "r", nodeId, state: bytes(nodeId) });
    await store.delete("r", "c");
    assert.equal((await store.save({ runId: "r", nodeId: "d", state: bytes("d") })).sequence, 4);
    await store.deleteRun("r");
    assert.equal(await store.getRun("r"), undefined);
    assert.equal((await store.save({ runId: "r", nodeId: "a", state: bytes("again") })).sequence, 5);
    assert.deepEqual(
      (await store.history("r", { limit: 10 })).map(({ sequence }) => sequence),
      [5],
    );
    await store.deleteRun("r");
    await store.start(newRun("r"));
    assert.equal((await store.getRun("r"))?.lastSequence, 6);
  },

  "ignores the deletion of missing checkpoints": async (store) => {
    await store.delete("none", "none");
    await store.deleteRun("none");
    assert.equal(await store.getRun("none"), undefined);
    assert.equal((await store.save({ runId: "none", nodeId: "a", state: bytes("x") })).sequence, 1);
  },

  "copies bytes in and out": async (store) => {
    const state = bytes("mine");
    await store.save({ runId: "r", nodeId: "n", state });
    state.fill(0);
    const first = (await store.load("r", "n")).state as Uint8Array;
    assert.deepEqual(first, bytes("mine"));
    first.fill(0);
    assert.deepEqual((await store.load("r", "n")).state, bytes("mine"));
  },

  "isolates runs with similar ids": async (store) => {
    const ids = ["../../x", "a/b", "a%2Fb", "'; DROP TABLE runs;--", "ünïcode-☃", "con", ".", "A", "a", "x".repeat(LIMITS.runKeyChars)];
    for (const id of ids) await store.save({ runId: id, nodeId: id, state: bytes(id) });
    for (const id of ids) {
      assert.deepEqual((await store.load(id, id)).state, bytes(id));
      assert.equal((await store.list(id)).length, 1);
    }
    assert.equal((await store.listRuns({ limit: 100 })).length, ids.length);
  },

  "refuses ids that some stores cannot store": async (store) => {
    for (const id of ["", "x".repeat(LIMITS.runKeyChars + 1), "nul\u0000", "half\ud800"]) {
      await raises("invalid_input", () => store.save({ runId: id, nodeId: "n", state: bytes("") }));
      await raises("invalid_input", () => store.save({ runId: "r", nodeId: id, state: bytes("") }));
    }
  },

  "compresses a large state and returns it unchanged": async (store) => {
    const large = new Uint8Array(LIMITS.runCompressAboveBytes + 1).map((_, i) => i % 251);
    const saved = await store.save({ runId: "r", nodeId: "n", state: large });
    assert.equal(saved.size, large.byteLength);
    assert.ok(Buffer.from((await store.load("r", "n")).state as Uint8Array).equals(large));
    const { bytes: freed } = await store.prune({ olderThan: "9999-01-01T00:00:00.000Z" });
    assert.ok(freed > 0 && freed < large.byteLength / 10, `stored ${freed} bytes`);
  },

  "returns text as text, unchanged": async (store) => {
    for (const text of ["", "{}", "Ünïcode ☃ 🏔 \u0001 \n\r\t \uffff \ufeff", '"]', "x".repeat(5_000)]) {
      const saved = await store.save({ runId: "r", nodeId: "n", state: text });
      assert.equal(saved.size, Buffer.byteLength(text));
      assert.equal((await store.load("r", "n")).state, text);
      assert.equal((await store.loadAt("r", saved.sequence)).state, text);
    }
    const large = "Zähler ".repeat(LIMITS.runCompressAboveBytes / 7);
    assert.equal((await store.save({ runId: "large", nodeId: "n", state: large })).size, Buffer.byteLength(large));
    assert.ok((await store.load("large", "n")).state === large);
    const { bytes: freed } = await store.prune({ runId: "large", olderThan: "9999-01-01T00:00:00.000Z" });
    assert.ok(freed > 0 && freed < large.length / 10, `stored ${freed} bytes`);
    for (const text of ["nul\u0000", "half\ud800"])
      await raises("invalid_input", () => store.save({ runId: "r", nodeId: "n", state: text }));
  },

  "refuses a state that is too large, and reports it": async (store) => {
    const huge = { byteLength: LIMITS.runStateBytes + 1 } as Uint8Array; // refused by its length alone
    await raises("too_large", () => store.save({ runId: "r", nodeId: "n", state: huge }));
    assert.deepEqual(await store.list("r"), []);
  },

  "assigns a unique sequence to each concurrent save": async (store) => {
    const saved = await Promise.all(
      Array.from({ length: 50 }, (_, i) => store.save({ runId: "r", nodeId: `n${i % 5}`, state: bytes(String(i)) })),
    );
    assert.deepEqual(
      saved.map(({ sequence }) => sequence).sort((a, b) => a - b),
      Array.from({ length: 50 }, (_, i) => i + 1),
    );
    assert.equal((await store.getRun("r"))?.lastSequence, 50);
    for (const { nodeId, sequence } of saved) assert.equal((await store.loadAt("r", sequence)).nodeId, nodeId);
  },
};

import assert from "node:assert/strict";
import { LIMITS } from "../model/limits.ts";
import type { NewRun, RunStore } from "../ports/run-store.ts";
import { bytes, raises } from "./assertions.ts";
import type { ContractCase } from "./contract.ts";

export interface RunStoreContract {
  /** A new, empty store. Its clock must be the one given, so that leases can run out without waiting; a server's own clock is allowed, see `clock`. */
  readonly open: (now: () => string) => Promise<RunStore> | RunStore;
  /** Whether the store keeps to the clock it is given. With its own clock (a server's), cases wait for real, for a second or two. */
  readonly clock: "given" | "own";
}

/** What every run store promises, as cases for any test runner: `for (const { name, run } of runStoreContract(...)) it(name, run)`. */
export function runStoreContract(contract: RunStoreContract): readonly ContractCase[] {
  return Object.entries(CASES).map(([name, body]) => ({
    name,
    async run() {
      let time = Date.parse("2026-01-01T00:00:00.000Z");
      const given = contract.clock === "given";
      // Each reading is a millisecond later, as on a real clock that is not read twice at once.
      const tick = () => {
        time += 1;
        return time;
      };
      const store = await contract.open(() => new Date(given ? tick() : Date.now()).toISOString());
      const pass = async (ms: number) => {
        if (given) time += ms;
        else await new Promise((resolve) => setTimeout(resolve, ms + 30));
      };
      try {
        await body(store, pass);
      } finally {
        await store.close();
      }
    },
  }));
}

type Body = (store: RunStore, pass: (ms: number) => Promise<void>) => Promise<void>;

/** A store with its own clock must come to its next call before this runs out, also on a busy machine. */
const LEASE_MS = 1_500;

const CASES: Readonly<Record<string, Body>> = {
  "does what the table of the design asks: save, load, list, delete, delete the run": async (store) => {
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

  "keeps the whole envelope, and fills in what was left out": async (store) => {
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

  "never uses a sequence twice, also not after a delete": async (store) => {
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

  "deletes without complaint what is not there": async (store) => {
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

  "keeps runs apart, whatever their ids look like": async (store) => {
    const ids = ["../../x", "a/b", "a%2Fb", "'; DROP TABLE runs;--", "ünïcode-☃", "con", ".", "A", "a", "x".repeat(LIMITS.runKeyChars)];
    for (const id of ids) await store.save({ runId: id, nodeId: id, state: bytes(id) });
    for (const id of ids) {
      assert.deepEqual((await store.load(id, id)).state, bytes(id));
      assert.equal((await store.list(id)).length, 1);
    }
    assert.equal((await store.listRuns({ limit: 100 })).length, ids.length);
  },

  "refuses ids that cannot be kept everywhere": async (store) => {
    for (const id of ["", "x".repeat(LIMITS.runKeyChars + 1), "nul\u0000", "half\ud800"]) {
      await raises("invalid_input", () => store.save({ runId: id, nodeId: "n", state: bytes("") }));
      await raises("invalid_input", () => store.save({ runId: "r", nodeId: id, state: bytes("") }));
    }
  },

  "compresses a large state and gives it back exactly": async (store) => {
    const large = new Uint8Array(LIMITS.runCompressAboveBytes + 1).map((_, i) => i % 251);
    const saved = await store.save({ runId: "r", nodeId: "n", state: large });
    assert.equal(saved.size, large.byteLength);
    assert.ok(Buffer.from((await store.load("r", "n")).state as Uint8Array).equals(large));
    const { bytes: freed } = await store.prune({ olderThan: "9999-01-01T00:00:00.000Z" });
    assert.ok(freed > 0 && freed < large.byteLength / 10, `stored ${freed} bytes`);
  },

  "gives text back as text, exactly": async (store) => {
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

  "refuses a state that is too large, and says so": async (store) => {
    const huge = { byteLength: LIMITS.runStateBytes + 1 } as Uint8Array; // only its length is looked at before it is refused
    await raises("too_large", () => store.save({ runId: "r", nodeId: "n", state: huge }));
    assert.deepEqual(await store.list("r"), []);
  },

  "gives concurrent saves one sequence each": async (store) => {
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

  "starts a run once": async (store) => {
    const lease = await store.start(newRun("r", { project: "/p", parent: { runId: "older", sequence: 3 } }));
    assert.equal(lease.fence, 1);
    const { leaseUntil, createdAt, updatedAt, ...run } = (await store.getRun("r"))!;
    assert.ok(leaseUntil! > createdAt && updatedAt >= createdAt);
    assert.deepEqual(run, {
      runId: "r",
      graph: "demo",
      fingerprint: "f1",
      project: "/p",
      status: "running",
      note: null,
      parent: { runId: "older", sequence: 3 },
      lastSequence: 1,
      fence: 1,
      leaseOwner: "me",
    });
    assert.deepEqual((await store.loadAt("r", 1)).state, bytes("input"));
    await raises("conflict", () => store.start(newRun("r")), "exists");
  },

  "lets exactly one of many take hold of a run": async (store, pass) => {
    await store.start(newRun("r"));
    await raises("conflict", () => store.acquire("r", { owner: "you", leaseMs: LEASE_MS }), "held");
    await pass(LEASE_MS);
    const tries = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => store.acquire("r", { owner: `p${i}`, leaseMs: LEASE_MS * 10 })),
    );
    const won = tries.filter((attempt) => attempt.status === "fulfilled");
    assert.equal(won.length, 1);
    assert.equal(won[0]!.value.fence, 2);
    assert.equal((await store.getRun("r"))?.leaseOwner, won[0]!.value.owner);
    await raises("not_found", () => store.acquire("none", { owner: "you", leaseMs: LEASE_MS }));
  },

  "takes hold only of what was looked at, if asked to": async (store) => {
    const first = await store.start(newRun("r"));
    await store.release(first, { status: "paused" });
    await raises(
      "conflict",
      () => store.acquire("r", { owner: "late", leaseMs: LEASE_MS, seen: { fence: 0, lastSequence: 1, status: "paused" } }),
      "moved",
    );
    assert.equal((await store.getRun("r"))?.status, "paused");
    const second = await store.acquire("r", { owner: "you", leaseMs: LEASE_MS, seen: (await store.getRun("r"))! });
    const held = (await store.getRun("r"))!;
    await store.release(second, { status: "completed" });
    await raises("conflict", () => store.acquire("r", { owner: "late", leaseMs: LEASE_MS, seen: held }), "moved");
    assert.equal((await store.getRun("r"))?.status, "completed");
  },

  "refuses a writer whose lease ran out, also if nobody took over": async (store, pass) => {
    const lease = await store.start(newRun("r"));
    await store.save({ runId: "r", nodeId: "a", state: bytes("a") }, { fence: lease.fence });
    await pass(LEASE_MS);
    await raises("conflict", () => store.save({ runId: "r", nodeId: "b", state: bytes("late") }, { fence: lease.fence }), "fenced");
    await raises("conflict", () => store.renew(lease, LEASE_MS), "fenced");
    await raises("conflict", () => store.release(lease, { status: "completed" }), "fenced");
    const next = await store.acquire("r", { owner: "you", leaseMs: LEASE_MS });
    await raises("conflict", () => store.save({ runId: "r", nodeId: "b", state: bytes("late") }, { fence: lease.fence }), "fenced");
    await store.save({ runId: "r", nodeId: "b", state: bytes("b") }, { fence: next.fence });
    assert.deepEqual((await store.load("r", "b")).state, bytes("b"));
    assert.equal((await store.getRun("r"))?.lastSequence, 3);
  },

  "refuses a writer without a token while someone holds the run": async (store, pass) => {
    await store.start(newRun("r"));
    await raises("conflict", () => store.save({ runId: "r", nodeId: "a", state: bytes("") }), "held");
    await pass(LEASE_MS);
    await store.save({ runId: "r", nodeId: "a", state: bytes("") });
  },

  "holds on to a run for as long as it is renewed": async (store, pass) => {
    let lease = await store.start(newRun("r"));
    for (let i = 0; i < 3; i++) {
      await pass(LEASE_MS / 2);
      lease = await store.renew(lease, LEASE_MS);
    }
    await store.save({ runId: "r", nodeId: "a", state: bytes("") }, { fence: lease.fence });
  },

  "gives the run back with the last save, or with a reason": async (store) => {
    const first = await store.start(newRun("r"));
    await store.save({ runId: "r", nodeId: "a", state: bytes("") }, { fence: first.fence, status: "paused" });
    assert.equal((await store.getRun("r"))?.status, "paused");
    await raises("conflict", () => store.save({ runId: "r", nodeId: "b", state: bytes("") }, { fence: first.fence }), "fenced");
    const second = await store.acquire("r", { owner: "you", leaseMs: LEASE_MS, fingerprint: "f2" });
    assert.equal((await store.getRun("r"))?.status, "running");
    assert.equal((await store.getRun("r"))?.fingerprint, "f2");
    await store.release(second, { status: "failed", note: '{"message":"no"}' });
    const run = (await store.getRun("r"))!;
    assert.deepEqual([run.status, run.note, run.leaseOwner, run.leaseUntil], ["failed", '{"message":"no"}', null, null]);
    const third = await store.acquire("r", { owner: "me", leaseMs: LEASE_MS });
    assert.equal(third.fence, 3);
    assert.equal((await store.getRun("r"))?.note, null);
  },

  "fences off whoever holds a run that is deleted": async (store) => {
    const lease = await store.start(newRun("r"));
    await store.deleteRun("r");
    await raises("conflict", () => store.save({ runId: "r", nodeId: "a", state: bytes("") }, { fence: lease.fence }), "fenced");
    assert.equal(await store.getRun("r"), undefined);
    const again = await store.start(newRun("r"));
    assert.ok(again.fence > lease.fence);
    await raises("conflict", () => store.save({ runId: "r", nodeId: "a", state: bytes("") }, { fence: lease.fence }), "fenced");
  },

  "lists runs newest first, by status, graph and project, in pages": async (store, pass) => {
    for (const [i, id] of ["a", "b", "c", "d"].entries()) {
      const lease = await store.start(newRun(id, { project: i % 2 ? "/odd" : "/even", graph: i < 3 ? "demo" : "other" }));
      if (id !== "d") await store.release(lease, { status: id === "a" ? "failed" : "completed" });
      await pass(5);
    }
    const ids = async (query: object) => (await store.listRuns({ limit: 10, ...query })).map(({ runId }) => runId);
    assert.deepEqual(await ids({}), ["d", "c", "b", "a"]);
    assert.equal((await store.listRuns()).length, 4);
    assert.deepEqual(await ids({ status: "completed" }), ["c", "b"]);
    assert.deepEqual(await ids({ graph: "other" }), ["d"]);
    assert.deepEqual(await ids({ project: "/even" }), ["c", "a"]);
    const [, second] = await store.listRuns({ limit: 2 });
    assert.deepEqual(await ids({ after: second }), ["b", "a"]);
  },

  "finds runs whose process is gone": async (store, pass) => {
    await store.start(newRun("dead"));
    const done = await store.start(newRun("done"));
    await store.release(done, { status: "completed" });
    await store.save({ runId: "plain", nodeId: "a", state: bytes("") });
    await pass(LEASE_MS);
    await store.start(newRun("alive"));
    assert.deepEqual(
      (await store.listRuns({ limit: 10, abandoned: true })).map(({ runId }) => runId),
      ["dead"],
    );
  },

  "prunes by count, keeping each node's newest": async (store) => {
    await store.save({ runId: "r", nodeId: "first", state: bytes("only one") });
    for (let i = 0; i < 40; i++) await store.save({ runId: "r", nodeId: `n${i % 2}`, state: bytes("12345678") });
    const report = await store.prune({ keepLast: 10, batch: 7 });
    assert.deepEqual(report, { checkpoints: 30, runs: 0, bytes: 240 });
    const left = (await store.history("r", { limit: 100 })).map(({ sequence }) => sequence);
    assert.deepEqual(left, [41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 1]);
    assert.deepEqual((await store.load("r", "first")).state, bytes("only one"));
    assert.equal((await store.save({ runId: "r", nodeId: "n0", state: bytes("") })).sequence, 42);
    assert.deepEqual(await store.prune({ keepLast: 0, runId: "other" }), { checkpoints: 0, runs: 0, bytes: 0 });
  },

  "prunes by age: finished runs as a whole, the rest down to what is needed": async (store, pass) => {
    const finished = await store.start(newRun("finished"));
    await store.save({ runId: "finished", nodeId: "a", state: bytes("12345") }, { fence: finished.fence, status: "completed" });
    const working = await store.start(newRun("working"));
    for (const nodeId of ["a", "a", "a"]) await store.save({ runId: "working", nodeId, state: bytes("123") }, { fence: working.fence });
    await store.save({ runId: "working", nodeId: "a", branch: "fan#1/x", state: bytes("123") }, { fence: working.fence });
    await pass(20);
    const cutoff = new Date(Date.parse((await store.listRuns({ limit: 1 }))[0]!.updatedAt) + 10).toISOString();
    const young = await store.start(newRun("young"));
    await store.save({ runId: "young", nodeId: "a", state: bytes("1") }, { fence: young.fence, status: "completed" });
    assert.deepEqual(await store.prune({ olderThan: cutoff }), { checkpoints: 4, runs: 1, bytes: 16 });
    assert.equal(await store.getRun("finished"), undefined);
    // The newest of the main line and all after it stay, so that the run can go on.
    assert.deepEqual(
      (await store.history("working", { limit: 10 })).map(({ sequence }) => sequence),
      [5, 4, 1],
    );
    assert.equal((await store.history("young", { limit: 10 })).length, 2);
    await raises("invalid_input", () => store.prune({}));
  },

  "stops pruning when it is told to": async (store) => {
    for (let i = 0; i < 5; i++) await store.save({ runId: "r", nodeId: "n", state: bytes("") });
    await assert.rejects(store.prune({ keepLast: 1, signal: AbortSignal.abort() }));
    assert.equal((await store.history("r", { limit: 10 })).length, 5);
  },
};

function newRun(runId: string, more: Partial<NewRun> = {}): NewRun {
  const first = { nodeId: "__start__", nextNode: "a", kind: "start", state: bytes("input") } as const;
  return { runId, graph: "demo", fingerprint: "f1", owner: "me", leaseMs: LEASE_MS, first, ...more };
}

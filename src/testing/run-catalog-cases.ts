import assert from "node:assert/strict";
import { bytes, raises } from "./assertions.ts";
import { LEASE_MS, newRun, type RunCases } from "./run-samples.ts";

/** Listing and pruning runs. */
export const RUN_CATALOG_CASES: RunCases = {
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

  "finds runs whose process ended": async (store, pass) => {
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

  "prunes by age: finished runs entirely, others down to their resumable position": async (store, pass) => {
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
    // The newest of the main line and all after it stay, so that the run can continue.
    assert.deepEqual(
      (await store.history("working", { limit: 10 })).map(({ sequence }) => sequence),
      [5, 4, 1],
    );
    assert.equal((await store.history("young", { limit: 10 })).length, 2);
    await raises("invalid_input", () => store.prune({}));
  },

  "stops pruning when it is cancelled": async (store) => {
    for (let i = 0; i < 5; i++) await store.save({ runId: "r", nodeId: "n", state: bytes("") });
    await assert.rejects(store.prune({ keepLast: 1, signal: AbortSignal.abort() }));
    assert.equal((await store.history("r", { limit: 10 })).length, 5);
  },
};

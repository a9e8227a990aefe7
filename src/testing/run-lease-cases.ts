import assert from "node:assert/strict";
import { bytes, raises } from "./assertions.ts";
import { LEASE_MS, newRun, type RunCases } from "./run-samples.ts";

/** Starting, acquiring, renewing and releasing runs. */
export const RUN_LEASE_CASES: RunCases = {
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
      readyAt: null,
      claims: 0,
      claimedSequence: 0,
    });
    assert.deepEqual((await store.loadAt("r", 1)).state, bytes("input"));
    await raises("conflict", () => store.start(newRun("r")), "exists");
  },

  "grants the lease to one of several concurrent processes": async (store, pass) => {
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

  "takes over the lease of an owner that has ended, before it expires": async (store) => {
    const first = await store.start(newRun("r", { owner: "crashed" }));
    await raises("conflict", () => store.acquire("r", { owner: "you", leaseMs: LEASE_MS, endedOwner: "another" }), "held");
    const second = await store.acquire("r", { owner: "you", leaseMs: LEASE_MS, endedOwner: "crashed" });
    assert.equal(second.fence, first.fence + 1);
    await raises("conflict", () => store.acquire("r", { owner: "late", leaseMs: LEASE_MS, endedOwner: "crashed" }), "held");
    await raises("conflict", () => store.save({ runId: "r", nodeId: "a", state: bytes("a") }, { fence: first.fence }), "fenced");
  },

  "acquires only an unchanged run when `expected` is given": async (store) => {
    const first = await store.start(newRun("r"));
    await store.release(first, { status: "paused" });
    await raises(
      "conflict",
      () => store.acquire("r", { owner: "late", leaseMs: LEASE_MS, expected: { fence: 0, lastSequence: 1, status: "paused" } }),
      "moved",
    );
    assert.equal((await store.getRun("r"))?.status, "paused");
    const second = await store.acquire("r", { owner: "you", leaseMs: LEASE_MS, expected: (await store.getRun("r"))! });
    const held = (await store.getRun("r"))!;
    await store.release(second, { status: "completed" });
    await raises("conflict", () => store.acquire("r", { owner: "late", leaseMs: LEASE_MS, expected: held }), "moved");
    assert.equal((await store.getRun("r"))?.status, "completed");
  },

  "refuses a writer whose lease expired, also if no other process took over": async (store, pass) => {
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

  "refuses a writer without a fencing token while the run is leased": async (store, pass) => {
    await store.start(newRun("r"));
    await raises("conflict", () => store.save({ runId: "r", nodeId: "a", state: bytes("") }), "held");
    await pass(LEASE_MS);
    await store.save({ runId: "r", nodeId: "a", state: bytes("") });
  },

  "keeps the lease as long as it is renewed": async (store, pass) => {
    let lease = await store.start(newRun("r"));
    for (let i = 0; i < 3; i++) {
      await pass(LEASE_MS / 2);
      lease = await store.renew(lease, LEASE_MS);
    }
    await store.save({ runId: "r", nodeId: "a", state: bytes("") }, { fence: lease.fence });
  },

  "releases the lease with the last save or with a reason": async (store) => {
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

  "fences off the lease owner of a deleted run": async (store) => {
    const lease = await store.start(newRun("r"));
    await store.deleteRun("r");
    await raises("conflict", () => store.save({ runId: "r", nodeId: "a", state: bytes("") }, { fence: lease.fence }), "fenced");
    assert.equal(await store.getRun("r"), undefined);
    const again = await store.start(newRun("r"));
    assert.ok(again.fence > lease.fence);
    await raises("conflict", () => store.save({ runId: "r", nodeId: "a", state: bytes("") }, { fence: lease.fence }), "fenced");
  },
};

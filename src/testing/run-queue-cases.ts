import assert from "node:assert/strict";
import type { ClaimQuery } from "../ports/run-queue.ts";
import { bytes, raises } from "./assertions.ts";
import { LEASE_MS, newRun, type RunCases } from "./run-samples.ts";

const FROM_QUEUE: ClaimQuery = { graph: "demo", fingerprint: "f1", from: "queued", owner: "worker", leaseMs: LEASE_MS, limit: 10 };
const ABANDONED: ClaimQuery = { ...FROM_QUEUE, from: "abandoned" };

/** Queueing, requeueing and claiming runs. */
export const RUN_QUEUE_CASES: RunCases = {
  "queues a run once, without a lease": async (store) => {
    const queued = await store.enqueue({ ...newRun("r"), project: "/p", parent: { runId: "older", sequence: 3 } });
    assert.deepEqual(queued, await store.getRun("r"));
    const { readyAt, createdAt, updatedAt, ...run } = queued;
    assert.ok(readyAt !== null && readyAt >= createdAt && updatedAt >= createdAt);
    assert.deepEqual(run, {
      runId: "r",
      graph: "demo",
      fingerprint: "f1",
      project: "/p",
      status: "queued",
      note: null,
      parent: { runId: "older", sequence: 3 },
      lastSequence: 1,
      fence: 0,
      leaseOwner: null,
      leaseUntil: null,
      claims: 0,
      claimedSequence: 0,
    });
    assert.deepEqual((await store.loadAt("r", 1)).state, bytes("input"));
    await raises("conflict", () => store.enqueue(newRun("r")), "exists");
    await raises("conflict", () => store.start(newRun("r")), "exists");
    await store.deleteRun("r");
    assert.deepEqual(await store.claim(FROM_QUEUE), []);
    const again = await store.enqueue(newRun("r"));
    assert.deepEqual([again.lastSequence, again.claims], [2, 0]);
  },

  "claims queued runs of one graph and version, the longest waiting first": async (store, pass) => {
    for (const [runId, more] of Object.entries({ b: {}, a: {}, other: { graph: "other" }, changed: { fingerprint: "f2" } })) {
      await store.enqueue(newRun(runId, more));
      await pass(3);
    }
    await store.enqueue({ ...newRun("later"), delayMs: 3_600_000 });
    assert.deepEqual(
      (await store.claim({ ...FROM_QUEUE, limit: 1 })).map(({ lease, status, claims }) => [lease.runId, lease.owner, status, claims]),
      [["b", "worker", "queued", 1]],
    );
    const [second, ...more] = await store.claim(FROM_QUEUE);
    assert.deepEqual([second?.lease.runId, more], ["a", []]);
    assert.deepEqual(await store.claim(FROM_QUEUE), []);
    const run = (await store.getRun("a"))!;
    assert.deepEqual([run.status, run.leaseOwner, run.readyAt, run.fence], ["running", "worker", null, second!.lease.fence]);
    await store.save({ runId: "a", nodeId: "a", state: bytes("a") }, { fence: second!.lease.fence, status: "completed" });
    await raises("conflict", () => store.acquire("b", { owner: "you", leaseMs: LEASE_MS }), "held");
  },

  "gives each run to one of several concurrent workers": async (store) => {
    for (let i = 0; i < 12; i++) await store.enqueue(newRun(`r${i}`));
    const claims = await Promise.all(Array.from({ length: 6 }, (_, i) => store.claim({ ...FROM_QUEUE, owner: `w${i}`, limit: 4 })));
    const first = claims.flat().map(({ lease }) => lease.runId);
    const rest = (await store.claim({ ...FROM_QUEUE, limit: 20 })).map(({ lease }) => lease.runId);
    assert.equal(new Set([...first, ...rest]).size, 12);
    assert.equal(first.length + rest.length, 12);
  },

  "claims abandoned runs: expired ones, and those of ended owners before they expire": async (store, pass) => {
    await store.start(newRun("crashed", { owner: "crashed", leaseMs: 3_600_000 }));
    await store.start(newRun("alive", { owner: "alive", leaseMs: 3_600_000 }));
    await store.start(newRun("expired", { owner: "expired" }));
    assert.deepEqual(await store.claim(ABANDONED), []);
    const taken = await store.claim({ ...ABANDONED, leaseMs: 3_600_000, endedOwners: ["crashed", "unknown"] });
    assert.deepEqual(
      taken.map(({ lease, status, claims }) => [lease.runId, status, claims]),
      [["crashed", "running", 1]],
    );
    await pass(LEASE_MS);
    assert.deepEqual(
      (await store.claim({ ...ABANDONED, leaseMs: 3_600_000 })).map(({ lease }) => lease.runId),
      ["expired"],
    );
  },

  "waits before a run is claimed again that made no progress, and counts those claims": async (store, pass) => {
    await store.enqueue(newRun("r"));
    const claim = async (owner: string, query: ClaimQuery) => (await store.claim({ ...query, owner, leaseMs: 3_600_000 }))[0];
    const first = await claim("w0", FROM_QUEUE);
    assert.equal(await claim("w1", { ...ABANDONED, endedOwners: ["w0"] }), undefined);
    await pass(1_050); // the first delay
    const second = await claim("w1", { ...ABANDONED, endedOwners: ["w0"] });
    await pass(1_050); // the second one is twice as long
    assert.equal(await claim("w2", { ...ABANDONED, endedOwners: ["w1"] }), undefined);
    await pass(1_050);
    const third = await claim("w2", { ...ABANDONED, endedOwners: ["w1"] });
    await store.save({ runId: "r", nodeId: "a", state: bytes("a") }, { fence: third!.lease.fence });
    const fourth = await claim("w3", { ...ABANDONED, endedOwners: ["w2"] });
    assert.deepEqual(
      [first, second, third, fourth].map((taken) => taken?.claims),
      [1, 2, 3, 1],
    );
  },

  "puts an unchanged run without a process back into the queue": async (store) => {
    const lease = await store.start(newRun("r"));
    const held = (await store.getRun("r"))!;
    await raises("conflict", () => store.requeue("r", { status: "queued", expected: held }), "held");
    await store.release(lease, { status: "failed", note: '{"message":"no"}' });
    const failed = (await store.getRun("r"))!;
    await raises("conflict", () => store.requeue("r", { status: "queued", expected: held }), "moved");
    await raises("not_found", () => store.requeue("none", { status: "queued", expected: held }));
    const delayed = await store.requeue("r", { status: "queued", expected: failed, delayMs: 3_600_000 });
    assert.deepEqual([delayed.status, delayed.note], ["queued", '{"message":"no"}']);
    assert.deepEqual(await store.claim(FROM_QUEUE), []);
    const now = await store.requeue("r", { status: "queued", expected: delayed });
    assert.deepEqual(now, await store.getRun("r"));
    const [claim] = await store.claim(FROM_QUEUE);
    assert.deepEqual([claim?.lease.runId, claim?.status, claim?.claims], ["r", "queued", 1]);
    assert.equal((await store.getRun("r"))?.note, null);
    await store.release(claim!.lease, { status: "failed" });
    await store.requeue("r", { status: "queued", expected: (await store.getRun("r"))!, keepClaims: true });
    assert.equal((await store.claim(FROM_QUEUE))[0]?.claims, 2);
  },

  "releases a run to the queue, which counts as no claim": async (store) => {
    await store.enqueue(newRun("r"));
    for (const _ of [1, 2]) {
      const [claim] = await store.claim(FROM_QUEUE);
      assert.equal(claim?.claims, 1);
      await store.release(claim!.lease, { status: "queued" });
      const run = (await store.getRun("r"))!;
      assert.deepEqual([run.status, run.leaseOwner, run.leaseUntil], ["queued", null, null]);
      assert.ok(run.readyAt !== null);
    }
  },

  "saves an answer only once to an unchanged run, and queues it": async (store) => {
    const lease = await store.start(newRun("r"));
    await store.release(lease, { status: "paused" });
    const answer = { runId: "r", nodeId: "a", nextNode: "a", kind: "answer", state: bytes("input") } as const;
    await raises("conflict", () => store.save(answer, { status: "answered", expectedSequence: 7 }), "moved");
    const saves = await Promise.allSettled(
      Array.from({ length: 4 }, () => store.save(answer, { status: "answered", expectedSequence: 1 })),
    );
    assert.equal(saves.filter(({ status }) => status === "fulfilled").length, 1);
    const run = (await store.getRun("r"))!;
    assert.deepEqual([run.status, run.lastSequence], ["answered", 2]);
    assert.deepEqual(
      (await store.claim(FROM_QUEUE)).map(({ lease: { runId }, status }) => [runId, status]),
      [["r", "answered"]],
    );
    await raises("conflict", () => store.save(answer, { status: "answered", expectedSequence: 2 }), "held");
    await raises("conflict", () => store.save({ ...answer, runId: "none" }, { expectedSequence: 1 }), "moved");
  },

  "keeps a queued run when it prunes, and takes it out of the queue when it is acquired": async (store, pass) => {
    await store.enqueue(newRun("r"));
    await pass(20);
    await store.prune({ olderThan: new Date(Date.parse((await store.getRun("r"))!.updatedAt) + 10).toISOString() });
    assert.equal((await store.history("r")).length, 1);
    await store.acquire("r", { owner: "you", leaseMs: LEASE_MS });
    assert.deepEqual(await store.claim(FROM_QUEUE), []);
    const run = (await store.getRun("r"))!;
    assert.deepEqual([run.status, run.readyAt], ["running", null]);
  },
};

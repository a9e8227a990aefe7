import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { runRequests } from "../../src/runs/requests.ts";
import { openRunStore, type RunStoreOptions } from "../../src/runs.ts";
import { decodeState } from "../../src/text/plain-data.ts";

const script = join(import.meta.dirname, "pool-process.mjs");

/**
 * Queues runs for three worker processes and kills one after the other, sometimes gently. Every second run pauses and is answered twice,
 * by two callers at once. Afterwards every run is completed with the answer that was stored, every step is recorded once, and a run changed
 * its process only after that process was stopped or the run was answered. A step runs twice only if the process that began it was stopped.
 */
export async function expectRunsSurviveKills(
  options: RunStoreOptions,
  effects: string,
  { runs, kills }: { readonly runs: number; readonly kills: number },
): Promise<void> {
  writeFileSync(effects, "");
  const store = await openRunStore(options);
  const stopped = new Set<number>();
  const startWorker = async () => {
    const child = spawn(process.execPath, [script, JSON.stringify({ store: options, effects, paceMs: 300 })], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout!, "data");
    return child;
  };
  let workers: ChildProcess[] = await Promise.all([startWorker(), startWorker(), startWorker()]);
  const [shape] = await store.listGraphs({ graph: "pool", limit: 1 }).then(async (known) => {
    for (let found = known; ; found = await store.listGraphs({ graph: "pool", limit: 1 })) {
      if (found.length > 0) return found;
      await sleep(50);
    }
  });
  let enqueued = 0;
  const asking = new Set<string>();
  const enqueue = (runId: string) => {
    const asks = enqueued++ % 2 === 1;
    if (asks) asking.add(runId);
    return store.enqueue({
      ...{ runId, graph: "pool", fingerprint: shape!.fingerprint },
      first: { nodeId: "__start__", nextNode: "a", kind: "start", step: 0, state: JSON.stringify({ trail: [], asks }) },
    });
  };
  const requests = runRequests({ store, newId: () => crypto.randomUUID() });
  const answered = new Map<string, string>();
  /** Answers the open questions, each from two callers with different answers: one of them must be refused. */
  const answerAll = async () => {
    for (const { runId } of await store.listRuns({ status: "paused" })) {
      const outcomes = await Promise.allSettled(["yes", "no"].map((answer) => requests.answer({ runId, answer })));
      const stored = outcomes.flatMap((outcome, i) => (outcome.status === "fulfilled" && outcome.value.changed ? [["yes", "no"][i]!] : []));
      expect(stored.length, `${runId} took ${stored.length} answers`).toBeLessThanOrEqual(1);
      if (stored[0] === undefined) continue;
      expect(answered.has(runId), `${runId} asked twice`).toBe(false);
      answered.set(runId, stored[0]);
    }
  };
  for (let i = 0; i < runs; i++) await enqueue(`r${i}`);
  for (let kill = 0; kill < kills; kill++) {
    await sleep(100 + Math.random() * 200);
    const [victim, ...others] = workers;
    stopped.add(victim!.pid!);
    const ended = once(victim!, "exit");
    victim!.kill(kill % 4 === 3 ? "SIGTERM" : "SIGKILL");
    const [, next] = await Promise.all([ended, startWorker(), enqueue(`k${kill}`), enqueue(`m${kill}`)]);
    workers = [...others, next];
    await answerAll();
  }
  const isDone = async () => (await store.listRuns({ status: "completed" })).length === runs + 2 * kills;
  for (let waits = 0; waits < 3_000 && !(await isDone()); waits++) {
    await answerAll();
    await sleep(100);
  }
  for (const child of workers) {
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const [code] = await ended;
    expect(code).toBe(0);
  }

  const all = await store.listRuns();
  expect(all.filter(({ status }) => status !== "completed").map(({ runId, status, note }) => [runId, status, note])).toEqual([]);
  expect(all).toHaveLength(runs + 2 * kills);
  expect([...answered.keys()].sort()).toEqual([...asking].sort());
  const done: Effect[] = readFileSync(effects, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  let takeOvers = 0;
  for (const { runId } of all) {
    const finished = (await store.history(runId)).filter(({ kind }) => kind === "node").map(({ nodeId }) => nodeId);
    expect(finished.sort(), runId).toEqual(["a", "fan", "l", "q", "r", "z"]);
    const state = decodeState((await store.load(runId, "q")).state) as { readonly answer?: string };
    expect(state.answer, runId).toBe(answered.get(runId));
    takeOvers += countTakeOvers(runId, done, stopped);
  }
  expect(takeOvers).toBeGreaterThan(0);
  await store.close();
}

interface Effect {
  readonly pid: number;
  readonly runId: string;
  readonly name: string;
  readonly key: string;
}

/**
 * Checks the effects of a run: each step has one idempotency key, a step that ran again did so after the process that began it was stopped,
 * and the run left a process only when that one was stopped. Returns how often the run changed its process. After an answer any worker may
 * continue, so the step that asks does not count.
 */
function countTakeOvers(runId: string, done: readonly Effect[], stopped: ReadonlySet<number>): number {
  const own = done.filter((effect) => effect.runId === runId);
  expect(new Set(own.map(({ name, key }) => `${name} ${key}`)).size, runId).toBe(5);
  expect(new Set(own.map(({ key }) => key)).size, runId).toBe(5);
  for (const [index, { key, name, pid }] of own.entries())
    if (own.slice(index + 1).some((later) => later.key === key))
      expect(stopped, `${runId} ran ${name} again although ${pid} was alive`).toContain(pid);
  const pids = own.flatMap(({ name, pid }) => (name === "q" ? [] : [pid])).filter((pid, i, list) => pid !== list[i - 1]);
  expect(new Set(pids).size, `${runId} returned to an earlier process: ${pids}`).toBe(pids.length);
  for (const pid of pids.slice(0, -1)) expect(stopped, `${runId} left ${pid}, which was alive`).toContain(pid);
  return pids.length - 1;
}

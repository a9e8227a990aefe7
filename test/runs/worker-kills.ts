import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { openRunStore, type RunStoreOptions } from "../../src/runs.ts";

const script = join(import.meta.dirname, "pool-process.mjs");

/**
 * Queues runs for three worker processes and kills one after the other, sometimes gently. Afterwards every run is completed, every step is
 * recorded once, and a run changed its process only after that process was stopped.
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
  const enqueue = (runId: string) =>
    store.enqueue({
      ...{ runId, graph: "pool", fingerprint: shape!.fingerprint },
      first: { nodeId: "__start__", nextNode: "a", kind: "start", step: 0, state: '{"trail":[]}' },
    });
  for (let i = 0; i < runs; i++) await enqueue(`r${i}`);
  for (let kill = 0; kill < kills; kill++) {
    await sleep(100 + Math.random() * 200);
    const [victim, ...others] = workers;
    stopped.add(victim!.pid!);
    const ended = once(victim!, "exit");
    victim!.kill(kill % 4 === 3 ? "SIGTERM" : "SIGKILL");
    const [, next] = await Promise.all([ended, startWorker(), enqueue(`k${kill}`), enqueue(`m${kill}`)]);
    workers = [...others, next];
  }
  const isDone = async () => (await store.listRuns({ status: "completed" })).length === runs + 2 * kills;
  for (let waits = 0; waits < 600 && !(await isDone()); waits++) await sleep(100);
  for (const child of workers) {
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const [code] = await ended;
    expect(code).toBe(0);
  }

  const all = await store.listRuns();
  expect(all.filter(({ status }) => status !== "completed").map(({ runId, status, note }) => [runId, status, note])).toEqual([]);
  expect(all).toHaveLength(runs + 2 * kills);
  const done: { pid: number; runId: string; key: string }[] = readFileSync(effects, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  let changes = 0;
  for (const { runId } of all) {
    const finished = (await store.history(runId)).filter(({ kind }) => kind === "node").map(({ nodeId }) => nodeId);
    expect(finished.sort(), runId).toEqual(["a", "fan", "l", "r", "z"]);
    const own = done.filter((effect) => effect.runId === runId);
    expect(new Set(own.map(({ key }) => key)).size, runId).toBe(4);
    const pids = own.map(({ pid }) => pid).filter((pid, i, list) => pid !== list[i - 1]);
    expect(new Set(pids).size, `${runId} returned to an earlier process: ${pids}`).toBe(pids.length);
    changes += pids.length - 1;
    for (const pid of pids.slice(0, -1)) expect(stopped, `${runId} left ${pid}, which was alive`).toContain(pid);
  }
  expect(changes).toBeGreaterThan(0); // some runs were taken over
  await store.close();
}

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { decodeState, openRunStore, type RunStore, type RunStoreOptions } from "../../src/runs.ts";

/** The long form runs in `npm run test:soak`. */
export const soak = process.env.CAIRN_SOAK === "1";

export interface Order {
  readonly store: RunStoreOptions;
  readonly mode: "run" | "run-many" | "recover" | "pause" | "race" | "slow";
  readonly effects: string;
  readonly runId?: string;
  readonly dieAt?: number;
  readonly leaseMs?: number;
  readonly paceMs?: number;
  readonly count?: number;
}

type End = readonly [code: number | null, signal: NodeJS.Signals | null];
const ends = new WeakMap<ChildProcess, Promise<End>>();

export function work(order: Order): ChildProcess {
  const script = join(import.meta.dirname, "worker-process.mjs");
  const child = spawn(process.execPath, [script, JSON.stringify(order)], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.on("error", () => {}); // it may end before it reads anything
  // Not when it ends, but when all it has said was read.
  ends.set(child, new Promise((resolve) => child.once("close", (...end) => resolve(end))));
  return child;
}

/** Whether it came to its end; false if it was killed. */
export async function finished(child: ChildProcess): Promise<boolean> {
  const [code, signal] = await ends.get(child)!;
  if (signal === "SIGKILL") return false;
  expect(code).toBe(0);
  return true;
}

const TRAIL = ["prepare", "l1", "l2", "r1", "join", "again", "again", "again"];
const KEYS = ["prepare#1", "fan#2/left/l1#1", "fan#2/left/l2#2", "fan#2/right/r1#1", "join#3", "again#4", "again#5", "again#6"];

/** Which steps are recorded as done, as their idempotency keys. */
export async function finishedSteps(store: RunStore): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for (const { runId } of await store.listRuns({ limit: 10_000 }))
    for (const { kind, branch, nodeId, step, attempt } of await store.history(runId, { limit: 1_000 }))
      if (kind === "node" && nodeId !== "fan") keys.add(`${runId}/${branch && `${branch}/`}${nodeId}#${step}/${attempt}`);
  return keys;
}

/** After recovery: every run has the exact result, every checkpoint can be read, no step that was recorded as done was done again. */
export async function expectExact(options: RunStoreOptions, effectsPath: string, doneBefore: ReadonlySet<string>): Promise<number> {
  const store = await openRunStore(options);
  const effects = readFileSync(effectsPath, "utf8").trim().split("\n");
  const times = new Map<string, number>();
  for (const line of effects) {
    const { key } = JSON.parse(line);
    times.set(key, (times.get(key) ?? 0) + 1);
  }
  const runs = await store.listRuns({ limit: 10_000 });
  for (const { runId, status, lastSequence } of runs) {
    expect(status, runId).toBe("completed");
    const history = await store.history(runId, { limit: 1_000 });
    expect(history.map(({ sequence }) => sequence)).toEqual(Array.from({ length: lastSequence }, (_, i) => lastSequence - i));
    for (const { sequence } of history) decodeState((await store.loadAt(runId, sequence)).state);
    const { state } = await store.load(runId, "again");
    expect(decodeState(state), runId).toEqual({ trail: TRAIL, rounds: 3 });
    for (const key of KEYS) expect([1, 2], `${runId}/${key}`).toContain(times.get(`${runId}/${key}/1`));
  }
  for (const key of doneBefore) expect(times.get(key), `${key} was done again`).toBe(1);
  // What is not in the store never began.
  const known = new Set(runs.map(({ runId }) => runId));
  for (const line of effects) expect(known).toContain(JSON.parse(line).runId);
  await store.close();
  return runs.length;
}

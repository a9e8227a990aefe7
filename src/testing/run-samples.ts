import type { NewRun, RunStore } from "../ports/run-store.ts";
import { bytes } from "./assertions.ts";

/** The cases of a run store by name. `pass` lets time pass. */
export type RunCases = Readonly<Record<string, (store: RunStore, pass: (ms: number) => Promise<void>) => Promise<void>>>;

/** Milliseconds of a test lease. A store with its own clock must make the next call within it, also on a busy machine. */
export const LEASE_MS = 1_500;

export function newRun(runId: string, more: Partial<NewRun> = {}): NewRun {
  const first = { nodeId: "__start__", nextNode: "a", kind: "start", state: bytes("input") } as const;
  return { runId, graph: "demo", fingerprint: "f1", owner: "me", leaseMs: LEASE_MS, first, ...more };
}

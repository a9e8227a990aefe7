import { CairnError } from "../model/errors.ts";
import type { RunStore } from "../ports/run-store.ts";
import type { Interrupt, RunEvent } from "./events.ts";
import type { HandOver } from "./hand-over.ts";

/** Options of starting a run. */
export interface RunOptions<S = unknown> {
  /** Stores the progress. A run without a store ends with its process. */
  readonly store?: RunStore | undefined;
  /** The id of the run; a new one by default. */
  readonly runId?: string | undefined;
  /** The project of the run, which decides who may see it. */
  readonly project?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The time limit of the whole run. */
  readonly timeoutMs?: number | undefined;
  /** The maximum number of steps: 1,000 by default, 100,000 at most. */
  readonly maxIterations?: number | undefined;
  /** The duration of the lease. After it expires, another process may take over; it is renewed after a third of this time. */
  readonly leaseMs?: number | undefined;
  /** Keeps about N checkpoints of the run's history; all by default. */
  readonly keepHistory?: number | undefined;
  /** Whether a failed save fails the run (default) or is only reported. Losing the lease always fails it. */
  readonly onCheckpointError?: "fail" | "warn" | undefined;
  /** How long to retry an unavailable store before the save fails; at most the lease. */
  readonly storeWaitMs?: number | undefined;
  /** Receives every event, for logs and metrics. Its exceptions are ignored. */
  readonly onEvent?: ((event: RunEvent<S>) => void) | undefined;
  /** Wraps every attempt of every step, for tracing. It must call `work` and return its result. */
  readonly aroundStep?: (<T>(step: StepSpan, work: () => Promise<T>) => Promise<T>) | undefined;
}

/** The options of one execution. A worker can give the run back. */
export interface ExecutionOptions extends RunOptions<never> {
  readonly handOver?: HandOver | undefined;
}

/** Options of continuing a claimed run. */
export type ClaimedOptions = Omit<ExecutionOptions, "runId" | "project" | "store" | "onEvent"> & {
  readonly store: RunStore;
  readonly onEvent?: ((event: RunEvent) => void) | undefined;
};

/** Options of putting a run into the queue of workers. */
export interface EnqueueOptions {
  readonly store: RunStore;
  /** The id of the run; a new one by default. */
  readonly runId?: string | undefined;
  /** The project of the run, which decides who may see it. */
  readonly project?: string | undefined;
  /** Milliseconds before a worker may start it; default 0. */
  readonly delayMs?: number | undefined;
}

/** One attempt of a step, for tracing. */
export interface StepSpan {
  readonly runId: string;
  readonly graph: string;
  readonly node: string;
  readonly branch: string;
  readonly attempt: number;
}

/** Options of resuming a run. */
export interface ResumeOptions<S = unknown> extends Omit<RunOptions<S>, "runId" | "project" | "store"> {
  readonly store: RunStore;
  /** The answer to the question the run is paused on. */
  readonly input?: unknown;
  /** Answers by node, when several branches are paused at once. */
  readonly inputs?: Readonly<Record<string, unknown>> | undefined;
  /** Continues although the graph has changed since the run started. */
  readonly acceptGraphChange?: boolean | undefined;
  /** Continues with this state instead of the stored one. */
  readonly state?: S | undefined;
  /** Waits while another process has the lease, instead of failing. `signal` ends the wait. */
  readonly wait?: boolean | undefined;
  /** Called about twice a second during the wait. */
  readonly onWait?: ((held: HeldLease) => void) | undefined;
}

/** The lease for which a resume waits. */
export interface HeldLease {
  readonly runId: string;
  /** When the lease expires unless its process renews it. */
  readonly leaseUntil: string | null;
  readonly leaseOwner: string | null;
}

/** Selects the run checkpoint to go back to, and what to change. */
export interface ResumeFromOptions<S = unknown> extends Omit<ResumeOptions<S>, "input" | "inputs"> {
  /** After this checkpoint … */
  readonly sequence?: number | undefined;
  /** … or after the newest checkpoint of this node. */
  readonly node?: string | undefined;
  /** Runs that node itself again, with the state it was given then. */
  readonly replay?: boolean | undefined;
  /** Leaves the run unchanged and continues as a new run with this id. */
  readonly fork?: string | undefined;
}

/** The end of a run that did not fail: completed, or paused with its questions. */
export type RunResult<S> =
  | { readonly status: "completed"; readonly runId: string; readonly state: S }
  | { readonly status: "paused"; readonly runId: string; readonly state: S; readonly interrupts: readonly Interrupt[] };

export interface Settings {
  readonly maxIterations: number;
  readonly leaseMs: number;
  readonly storeWaitMs: number;
}

const MAX_ITERATIONS = { usual: 1_000, most: 100_000 };
const LEASE_MS = { usual: 30_000, least: 100, most: 24 * 3_600_000 };

/** Returns the validated settings of a run. */
export function settingsOf(options: RunOptions<never>): Settings {
  const { maxIterations = MAX_ITERATIONS.usual, leaseMs = LEASE_MS.usual, storeWaitMs = leaseMs, timeoutMs, keepHistory } = options;
  within("maxIterations", maxIterations, 1, MAX_ITERATIONS.most);
  within("leaseMs", leaseMs, LEASE_MS.least, LEASE_MS.most);
  within("storeWaitMs", storeWaitMs, 0, LEASE_MS.most);
  if (timeoutMs !== undefined) within("timeoutMs", timeoutMs, 1, 2 ** 31 - 1);
  if (keepHistory !== undefined) within("keepHistory", keepHistory, 1, 1_000_000);
  return { maxIterations, leaseMs, storeWaitMs: Math.min(storeWaitMs, leaseMs) };
}

function within(name: string, value: number, least: number, most: number): void {
  if (!Number.isInteger(value) || value < least || value > most)
    throw new CairnError("invalid_input", `${name} must be a whole number from ${least} to ${most}.`, { details: { field: name } });
}

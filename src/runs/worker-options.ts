import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { RunStatus } from "../model/run.ts";
import { WORKER_DEFAULTS } from "../model/run-worker.ts";
import type { RunStore } from "../ports/run-store.ts";
import type { Backoff } from "../scheduling/retry.ts";
import type { CompiledGraph } from "./compiled.ts";
import type { RunOptions } from "./options.ts";

/** A graph of a worker with its limits. */
export interface WorkerGraph {
  // biome-ignore lint/suspicious/noExplicitAny: a worker has graphs of several states
  readonly graph: CompiledGraph<any>;
  /** The maximum number of runs of this graph at the same time; default: that of the worker. */
  readonly concurrency?: number | undefined;
  /** The maximum number of runs that this worker starts per second; default: no limit. */
  readonly perSecond?: number | undefined;
  /** Retries failed runs: the number of executions, and the delays between them. Default: a failed run stays failed. */
  readonly retry?: ({ readonly attempts: number } & Partial<Backoff>) | undefined;
  /** Options of each execution. */
  readonly run?: Pick<RunOptions<never>, "timeoutMs" | "maxIterations" | "keepHistory" | "aroundStep"> | undefined;
}

/** A source of messages that a worker drains, such as a port of a system. */
export interface WorkerInbox {
  readonly name: string;
  /** Processes the pending messages once. */
  work(options: { readonly signal: AbortSignal }): Promise<{ readonly done: number; readonly failed: number; readonly dead: number }>;
}

/** Options of a worker. */
export interface WorkerOptions {
  readonly store: RunStore;
  // biome-ignore lint/suspicious/noExplicitAny: a worker has graphs of several states
  readonly graphs: readonly (CompiledGraph<any> | WorkerGraph)[];
  readonly inboxes?: readonly WorkerInbox[] | undefined;
  /** The maximum number of runs at the same time; default 10. */
  readonly concurrency?: number | undefined;
  /** Milliseconds between two looks for work, on average; default 500. */
  readonly pollMs?: number | undefined;
  /** The lease of each run: a worker on another machine takes over after it; default 10 s. */
  readonly leaseMs?: number | undefined;
  /** How long `close` lets the current steps finish; default 10 s. Then they are aborted and repeated by another worker. */
  readonly graceMs?: number | undefined;
  /** A run that ended its worker this many times in a row without finishing a step fails; default 5. */
  readonly maxClaims?: number | undefined;
  /** The command that starts this worker, and its folder: shown where no worker listens. */
  readonly command?: string | undefined;
  readonly folder?: string | undefined;
  readonly onEvent?: ((event: WorkerEvent) => void) | undefined;
}

/** What a worker reports. */
export type WorkerEvent =
  | {
      readonly type: "claimed";
      readonly runId: string;
      readonly graph: string;
      /** The status before: `running` for a run that was taken over. */
      readonly status: RunStatus;
    }
  | { readonly type: "ended"; readonly runId: string; readonly graph: string; readonly status: "completed" | "paused" | "queued" }
  | {
      readonly type: "failed";
      readonly runId: string;
      readonly graph: string;
      readonly error: unknown;
      /** When the run is tried again; absent if it stays failed. */
      readonly retryInMs?: number | undefined;
    }
  /** Runs of another version of the graph wait; this worker does not claim them. */
  | { readonly type: "graph_changed"; readonly graph: string; readonly runIds: readonly string[] }
  | { readonly type: "drained"; readonly inbox: string; readonly done: number; readonly failed: number; readonly dead: number }
  /** The store or an inbox did not answer; the worker tries again. */
  | { readonly type: "problem"; readonly error: unknown };

export interface WorkerSettings {
  readonly concurrency: number;
  readonly pollMs: number;
  readonly leaseMs: number;
  readonly graceMs: number;
  readonly maxClaims: number;
}

/** Returns the validated settings of a worker. */
export function workerSettings(options: WorkerOptions): WorkerSettings {
  const { concurrency, pollMs, leaseMs, graceMs, maxClaims } = { ...WORKER_DEFAULTS, ...defined(options) };
  return {
    concurrency: whole("concurrency", concurrency, 1, LIMITS.workerConcurrency),
    pollMs: whole("pollMs", pollMs, 10, 60_000),
    leaseMs: whole("leaseMs", leaseMs, 1_000, 86_400_000),
    graceMs: whole("graceMs", graceMs, 0, 3_600_000),
    maxClaims: whole("maxClaims", maxClaims, 1, 1_000),
  };
}

/** Raises `invalid_input` for limits of a graph that no worker can keep. */
export function assertGraphLimits({ graph, concurrency, perSecond, retry }: WorkerGraph): void {
  const of = ` of the graph ${JSON.stringify(graph.name)}`;
  if (concurrency !== undefined) whole(`concurrency${of}`, concurrency, 1, LIMITS.workerConcurrency);
  if (perSecond !== undefined && !(Number.isFinite(perSecond) && perSecond > 0))
    throw new CairnError("invalid_input", `perSecond${of} must be a number above 0.`, { details: { field: "perSecond" } });
  if (retry !== undefined) whole(`retry.attempts${of}`, retry?.attempts, 1, 1_000);
}

function defined<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;
}

function whole(name: string, value: number, least: number, most: number): number {
  if (!Number.isInteger(value) || value < least || value > most)
    throw new CairnError("invalid_input", `${name} must be a whole number from ${least} to ${most}.`, { details: { field: name } });
  return value;
}

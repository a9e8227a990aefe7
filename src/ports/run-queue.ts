import type { GraphShape } from "../model/graph-shape.ts";
import type { Run, RunLease, RunStatus } from "../model/run.ts";
import type { ClaimQuery, RequeueOptions } from "../model/run-queue-rules.ts";
import type { NewWorker, RunWorker } from "../model/run-worker.ts";
import type { NewRun } from "./run-store.ts";

export type { ClaimQuery, RequeueOptions } from "../model/run-queue-rules.ts";
export type { NewWorker, RunWorker } from "../model/run-worker.ts";

/** A run that no process executes yet. */
export type QueuedRun = Omit<NewRun, "owner" | "leaseMs"> & {
  /** Milliseconds before a worker may claim it; default 0. */
  readonly delayMs?: number | undefined;
};

/** A run that a worker has claimed. */
export interface ClaimedRun {
  readonly lease: RunLease;
  /** The status before the claim. */
  readonly status: RunStatus;
  /** The number of consecutive claims without a new checkpoint, this one included. */
  readonly claims: number;
}

/** The queue of runs that wait for a worker. */
export interface RunQueue {
  /** Creates a run without a lease, as `queued`; raises `conflict` when the id is taken. */
  enqueue(run: QueuedRun): Promise<Run>;
  /** Puts a run without a process back into the queue; raises `conflict` while a process has it, `not_found` without a run. */
  requeue(runId: string, options: RequeueOptions): Promise<Run>;
  /** Takes the leases of up to `limit` runs, the longest waiting first. No run is given to two callers. */
  claim(query: ClaimQuery): Promise<readonly ClaimedRun[]>;
}

/** The shapes of the graphs of runs. */
export interface GraphCatalog {
  /** Stores the shape once per graph and fingerprint; does nothing if it is stored already. */
  saveGraph(shape: GraphShape): Promise<void>;
  getGraph(graph: string, fingerprint: string): Promise<GraphShape | undefined>;
  /** Returns the shapes of a graph's versions, or of all graphs: the newest first. */
  listGraphs(query: { readonly graph?: string | undefined; readonly limit: number }): Promise<readonly GraphShape[]>;
}

/** The workers that listen for runs. */
export interface WorkerRegistry {
  /** Records that the worker listens for `leaseMs`, and removes workers that expired a week ago. */
  announce(worker: NewWorker, leaseMs: number): Promise<void>;
  /** Records that the worker has stopped. */
  withdraw(workerId: string): Promise<void>;
  /** Returns workers, also the ones that expired in the last week: listening ones first, then by the time at which they stopped. */
  listWorkers(query: { readonly graph?: string | undefined; readonly limit: number }): Promise<readonly RunWorker[]>;
}

import type { NewRunCheckpoint, Run, RunCheckpoint, RunCheckpointInfo, RunLease, RunQuery, RunStatus } from "../model/run.ts";
import type { EventLog } from "./event-log.ts";
import type { GraphCatalog, RunQueue, WorkerRegistry } from "./run-queue.ts";

/** Options of saving a run checkpoint. */
export interface SaveOptions {
  /** The fencing token of the lease. Without it, saving to a leased run is refused. */
  readonly fence?: number;
  /** Sets the run's status atomically; any status but `running` also releases the lease. */
  readonly status?: RunStatus;
  /** Without a token: saves only if this is the run's newest sequence; otherwise raises `conflict`. */
  readonly expectedSequence?: number;
}

/** The first record of a run. */
export interface NewRun {
  readonly runId: string;
  readonly graph: string;
  readonly fingerprint: string;
  readonly project?: string | null;
  readonly parent?: Run["parent"];
  readonly owner: string;
  readonly leaseMs: number;
  /** The first checkpoint: the entry node and the initial state. */
  readonly first: Omit<NewRunCheckpoint, "runId">;
}

/** Selects the run checkpoints of a history. */
export interface HistoryQuery {
  /** Only checkpoints before this sequence. */
  readonly before?: number | undefined;
  /** Default: all. */
  readonly limit?: number | undefined;
}

/** Selects the run checkpoints that `prune` deletes. */
export interface PruneOptions {
  /** Deletes only checkpoints written before this time. Finished runs whose last change is older are deleted entirely. */
  readonly olderThan?: string | undefined;
  /** Keeps the newest N checkpoints of each run. */
  readonly keepLast?: number | undefined;
  /** Only this run. */
  readonly runId?: string | undefined;
  /** The number of checkpoints per transaction, so that others can write in between. */
  readonly batch?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Counts what `prune` deleted. */
export interface PruneReport {
  readonly checkpoints: number;
  readonly runs: number;
  /** Bytes of deleted state. */
  readonly bytes: number;
}

export interface AcquireOptions {
  readonly owner: string;
  readonly leaseMs: number;
  /** Records that the run continues with a changed graph. */
  readonly fingerprint?: string | undefined;
  /** Acquires the lease only if the run still has these values; otherwise raises `conflict`. */
  readonly expected?: Pick<Run, "fence" | "lastSequence" | "status"> | undefined;
  /** An owner whose process has ended: its lease is taken over before it expires. */
  readonly endedOwner?: string | undefined;
}

/** The checkpoints of runs. */
export interface RunCheckpointStore {
  /** Stores the node's newest checkpoint; the previous one stays in the history. */
  save(checkpoint: NewRunCheckpoint, options?: SaveOptions): Promise<RunCheckpointInfo>;
  /** Returns the newest checkpoint of that node; raises `not_found`. */
  load(runId: string, nodeId: string): Promise<RunCheckpoint>;
  /** Returns the checkpoint with that sequence; raises `not_found`. */
  loadAt(runId: string, sequence: number): Promise<RunCheckpoint>;
  /** Returns the newest checkpoint of each node, by sequence, without states. */
  list(runId: string): Promise<readonly RunCheckpointInfo[]>;
  /** Returns all checkpoints, newest first, without states. */
  history(runId: string, query?: HistoryQuery): Promise<readonly RunCheckpointInfo[]>;
  /** Deletes a node's checkpoints; does nothing when there are none. */
  delete(runId: string, nodeId: string): Promise<void>;
}

/** The leases of runs: one process at a time executes a run. */
export interface RunLeaseStore {
  /** Creates a run and its lease; raises `conflict` when the id is taken. */
  start(run: NewRun): Promise<RunLease>;
  /** Takes the lease of a run and marks it running; raises `conflict` while another process has it, `not_found` without a run. */
  acquire(runId: string, options: AcquireOptions): Promise<RunLease>;
  /** Extends the lease; raises `conflict` once it expired or another process has it. */
  renew(lease: RunLease, leaseMs: number): Promise<RunLease>;
  /** Ends the lease with a status and a reason; raises `conflict` as `renew` does. */
  release(lease: RunLease, outcome: { readonly status: RunStatus; readonly note?: string | null }): Promise<void>;
}

/** The list of runs and its retention. */
export interface RunCatalog {
  getRun(runId: string): Promise<Run | undefined>;
  listRuns(query?: RunQuery): Promise<readonly Run[]>;
  /** Deletes a run and fences off the process that has its lease. Only its last sequence and token remain, so that neither is used again. */
  deleteRun(runId: string): Promise<void>;
  /** Deletes in batches. A checkpoint is deleted when every given rule selects it. */
  prune(options: PruneOptions): Promise<PruneReport>;
}

/**
 * Stores the progress of runs. Every method is atomic, a resolved promise means durable, and bytes are copied in and out.
 * Pruning never deletes what an unfinished run needs to continue.
 */
export interface RunStore extends RunCheckpointStore, RunLeaseStore, RunCatalog, RunQueue, GraphCatalog, WorkerRegistry {
  /** The steps and changes of status of all runs. Absent where the store has no log, as with plain files. */
  readonly events?: EventLog | undefined;
  /** Removes secrets from a state. Absent unless `redaction.state` is set. The caller applies it to every state before it saves. */
  readonly redactState?: ((value: unknown) => unknown) | undefined;
  close(): Promise<void>;
}

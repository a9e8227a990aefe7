import type { NewRunCheckpoint, Run, RunCheckpoint, RunCheckpointInfo, RunLease, RunQuery, RunStatus } from "../model/run.ts";

export interface SaveOptions {
  /** The token of the lease under which this is written. Without one, a run that someone holds is refused. */
  readonly fence?: number;
  /** Sets the run's status in the same step; any status but `running` gives the lease back as well. */
  readonly status?: RunStatus;
}

export interface NewRun {
  readonly runId: string;
  readonly graph: string;
  readonly fingerprint: string;
  readonly project?: string | null;
  readonly parent?: Run["parent"];
  readonly owner: string;
  readonly leaseMs: number;
  /** The first checkpoint: where the run begins, and with what. */
  readonly first: Omit<NewRunCheckpoint, "runId">;
}

export interface HistoryQuery {
  /** Only checkpoints before this sequence. */
  readonly before?: number | undefined;
  /** All of them unless told. */
  readonly limit?: number | undefined;
}

export interface PruneOptions {
  /** Only checkpoints written before this time go. Finished runs whose last change is older go as a whole. */
  readonly olderThan?: string | undefined;
  /** The newest so many checkpoints of each run stay. */
  readonly keepLast?: number | undefined;
  /** Only this run. */
  readonly runId?: string | undefined;
  /** How many checkpoints go in one step, so that others can write in between. */
  readonly batch?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface PruneReport {
  readonly checkpoints: number;
  readonly runs: number;
  /** Bytes of stored state that went. */
  readonly bytes: number;
}

/**
 * Where runs keep their progress. Every verb is atomic, done means durable, and bytes are copied in and out.
 * What unfinished runs need in order to go on is never pruned.
 */
export interface RunStore {
  /** Applied to every state before it is saved, where the store's owner wants no secrets in states. */
  readonly redactState?: ((value: unknown) => unknown) | undefined;

  /** Becomes the node's checkpoint in place of the one before it, which stays in the history. */
  save(checkpoint: NewRunCheckpoint, options?: SaveOptions): Promise<RunCheckpointInfo>;
  /** The newest checkpoint of that node; raises `not_found`. */
  load(runId: string, nodeId: string): Promise<RunCheckpoint>;
  /** The checkpoint with that sequence; raises `not_found`. */
  loadAt(runId: string, sequence: number): Promise<RunCheckpoint>;
  /** The newest checkpoint of each node, in order of sequence, without their states. */
  list(runId: string): Promise<readonly RunCheckpointInfo[]>;
  /** All checkpoints, newest first, without their states. */
  history(runId: string, query?: HistoryQuery): Promise<readonly RunCheckpointInfo[]>;
  /** Removes a node's checkpoints; nothing happens when there are none. */
  delete(runId: string, nodeId: string): Promise<void>;
  /** Removes a run and fences off whoever holds it. Only its last sequence and token are remembered, so that neither is used again. */
  deleteRun(runId: string): Promise<void>;

  getRun(runId: string): Promise<Run | undefined>;
  listRuns(query?: RunQuery): Promise<readonly Run[]>;
  /** Works in batches. A checkpoint goes when every rule given says so. */
  prune(options: PruneOptions): Promise<PruneReport>;

  /** Begins a run and holds it; raises `conflict` when the id is taken. */
  start(run: NewRun): Promise<RunLease>;
  /** Takes hold of a run nobody holds, and marks it running; raises `conflict` while someone does, `not_found` when there is none. */
  acquire(runId: string, options: AcquireOptions): Promise<RunLease>;
  /** Holds on for longer; raises `conflict` once the lease ran out or went to another. */
  renew(lease: RunLease, leaseMs: number): Promise<RunLease>;
  /** Gives the run back with a status and a reason; raises `conflict` as `renew` does. */
  release(lease: RunLease, outcome: { readonly status: RunStatus; readonly note?: string | null }): Promise<void>;

  close(): Promise<void>;
}

export interface AcquireOptions {
  readonly owner: string;
  readonly leaseMs: number;
  /** Records that the run goes on with a changed graph. */
  readonly fingerprint?: string | undefined;
  /** Only if the run is still as it was when it was looked at. Else raises `conflict`. */
  readonly seen?: Pick<Run, "fence" | "lastSequence" | "status"> | undefined;
}

/** Domain types of durable runs: a graph of steps whose progress outlives its process. */

/** The state of a run. */
export type RunStatus = "running" | "paused" | "completed" | "failed" | "cancelled";

/** Why a checkpoint was written: a run began, a step finished, a try failed, a step waits for a person, the person answered, or the run was set back. */
export type CheckpointKind = "start" | "node" | "failed" | "pause" | "answer" | "rewind";

/** The format of what is stored. A reader refuses a version it does not know. */
export const CHECKPOINT_VERSION = 1;

/** Everything about a checkpoint except the state itself. */
export interface RunCheckpointInfo {
  readonly version: number;
  readonly runId: string;
  readonly nodeId: string;
  /** Grows for ever within a run; a number is never used twice, also not after a delete. */
  readonly sequence: number;
  readonly timestamp: string;
  /** Bytes of the state, uncompressed. */
  readonly size: number;
  /** The next node of the line; `null` at its end. */
  readonly nextNode: string | null;
  readonly previousNode: string | null;
  /** The attempt of the node, from 1. */
  readonly attempt: number;
  /** Empty on the main line; else the fork or sub-graph visit this line belongs to, such as `fan#3/left`. */
  readonly branch: string;
  /** How many steps its line had taken, this one included. */
  readonly step: number;
  readonly kind: CheckpointKind;
  /** Plain data that goes with the kind, as JSON: the question of a pause, the answer given. */
  readonly note: string | null;
}

/** A state as it is stored. Text comes back as text, bytes as bytes. */
export type StoredState = string | Uint8Array;

/** A run checkpoint with its state. */
export interface RunCheckpoint extends RunCheckpointInfo {
  readonly state: StoredState;
}

/** What a caller hands in. The store gives the sequence and the time. */
export interface NewRunCheckpoint {
  readonly runId: string;
  readonly nodeId: string;
  readonly state: StoredState;
  readonly nextNode?: string | null;
  readonly previousNode?: string | null;
  readonly attempt?: number;
  readonly branch?: string;
  readonly step?: number;
  readonly kind?: CheckpointKind;
  readonly note?: string | null;
}

/** One execution of a graph, as stored. */
export interface Run {
  readonly runId: string;
  /** The name of the graph; empty for checkpoints saved without one. */
  readonly graph: string;
  readonly fingerprint: string;
  /** The project the run works for; `null` if none was named. */
  readonly project: string | null;
  readonly status: RunStatus;
  /** Why the run ended as it did, as JSON. */
  readonly note: string | null;
  /** The run and the checkpoint this one was forked from. */
  readonly parent: { readonly runId: string; readonly sequence: number } | null;
  readonly lastSequence: number;
  /** The newest fencing token given out. A writer with an older one is refused. */
  readonly fence: number;
  readonly leaseOwner: string | null;
  /** Until when the owner may write; `null` when nobody holds the run. */
  readonly leaseUntil: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The right to advance a run until it ends. The fence shows the store that no one else took the run since. */
export interface RunLease {
  readonly runId: string;
  readonly owner: string;
  readonly fence: number;
  readonly until: string;
}

/** Selects runs of a list. */
export interface RunQuery {
  readonly status?: RunStatus | undefined;
  readonly graph?: string | undefined;
  readonly project?: string | undefined;
  /** Only runs marked as running whose lease has run out: their process is gone. */
  readonly abandoned?: boolean | undefined;
  /** Default: all. */
  readonly limit?: number | undefined;
  /** Only runs after this one in the order: newest change first, ties by id. */
  readonly after?: { readonly updatedAt: string; readonly runId: string } | undefined;
}

/** The status of a run that no process continues without a call. */
export function isFinished(status: RunStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** Domain types of durable runs: a graph of steps whose progress outlives its process. */

/** The state of a run. `queued` and `answered` runs wait for a worker: new, forked or requested ones, and paused ones whose question was answered. */
export type RunStatus = "queued" | "answered" | "running" | "paused" | "completed" | "failed" | "cancelled";

/** Why a checkpoint was written: the run started, a step finished, an attempt failed, a step waits for input, the input arrived, or the run was rewound. */
export type CheckpointKind = "start" | "node" | "failed" | "pause" | "answer" | "rewind";

/** The version of the storage format. A reader refuses unknown versions. */
export const CHECKPOINT_VERSION = 1;

/** Everything about a checkpoint except the state itself. */
export interface RunCheckpointInfo {
  readonly version: number;
  readonly runId: string;
  readonly nodeId: string;
  /** Increases within a run. A number is never reused, not even after a delete. */
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
  /** The number of steps of the line, including this one. */
  readonly step: number;
  readonly kind: CheckpointKind;
  /** Details of the kind as JSON: the question of a pause, or the answer. */
  readonly note: string | null;
}

/** A stored state. Text is returned as text, bytes as bytes. */
export type StoredState = string | Uint8Array;

/** A run checkpoint with its state. */
export interface RunCheckpoint extends RunCheckpointInfo {
  readonly state: StoredState;
}

/** A checkpoint to save. The store assigns the sequence and the time. */
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
  /** The newest fencing token. A writer with an older one is refused. */
  readonly fence: number;
  readonly leaseOwner: string | null;
  /** When the lease expires; `null` without a lease. */
  readonly leaseUntil: string | null;
  /** When a worker may claim the run; `null` unless it is `queued` or `answered`. */
  readonly readyAt: string | null;
  /** The number of consecutive claims by workers without a new checkpoint, the current one included. */
  readonly claims: number;
  /** The value of `lastSequence` at the newest claim. */
  readonly claimedSequence: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The exclusive right to execute a run until it expires. The fence proves to the store that no other process acquired the run since. */
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
  /** Only runs marked as running whose lease has expired: their process ended. */
  readonly abandoned?: boolean | undefined;
  /** Default: all. */
  readonly limit?: number | undefined;
  /** Only runs after this one in the order: newest change first, ties by id. */
  readonly after?: { readonly updatedAt: string; readonly runId: string } | undefined;
}

/** Returns whether no process continues the run without a call. */
export function isFinished(status: RunStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** Returns whether the run waits for a worker. */
export function isQueued(status: RunStatus): boolean {
  return status === "queued" || status === "answered";
}

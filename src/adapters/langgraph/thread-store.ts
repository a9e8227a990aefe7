/** What the saver needs of a database. Values arrive and leave as bytes; what they mean is the saver's business. */

/** Serialised data with the name of its format. */
export interface Typed {
  readonly type: string;
  readonly data: Uint8Array;
}

/** Names one checkpoint of a thread. */
export interface CheckpointKey {
  readonly threadId: string;
  readonly namespace: string;
  readonly checkpointId: string;
}

export interface StoredWrite {
  readonly checkpointId: string;
  readonly taskId: string;
  /** Negative for the few kinds of which a task has at most one: these replace one another. */
  readonly index: number;
  readonly channel: string;
  readonly value: Typed;
}

export interface StoredCheckpoint extends CheckpointKey {
  readonly parentId: string | null;
  /** With the values of those channels that changed in it. */
  readonly checkpoint: Typed;
  readonly metadata: Typed;
  /** For each channel that did not change: the ancestor whose row has its value. */
  readonly homes: Readonly<Record<string, string>>;
  /** Retention has removed it, but newer ones still need what it holds. */
  readonly hidden: boolean;
}

export interface NewCheckpoint extends Omit<StoredCheckpoint, "homes" | "hidden"> {
  /** The channels whose value is in it. */
  readonly changed: readonly string[];
  /** The channels whose value is the parent's. */
  readonly unchanged: readonly string[];
  readonly deltas: readonly string[];
}

/** What retention and the walk along a line of ancestors need to know of a checkpoint, without reading it. */
export interface CheckpointOutline {
  readonly checkpointId: string;
  readonly parentId: string | null;
  readonly createdAt: string;
  /** The channels that have a value in it, stored here or in a home. */
  readonly channels: readonly string[];
  readonly homes: Readonly<Record<string, string>>;
  /** The channels that must be put together from its ancestors. */
  readonly deltas: readonly string[];
}

export interface ListQuery {
  readonly threadId?: string | undefined;
  readonly namespace?: string | undefined;
  readonly checkpointId?: string | undefined;
  /** Only checkpoints whose id is lower. */
  readonly before?: string | undefined;
  readonly limit: number;
  /** Where the page before ended. */
  readonly after?: CheckpointKey | undefined;
}

export interface ThreadStore {
  put(checkpoint: NewCheckpoint): Promise<void>;
  /** All of them or none. */
  putWrites(key: CheckpointKey, writes: readonly Omit<StoredWrite, "checkpointId">[]): Promise<void>;
  /** The newest without an id; its writes come in order of task and index. */
  get(
    threadId: string,
    namespace: string,
    checkpointId?: string,
  ): Promise<
    | {
        readonly stored: StoredCheckpoint;
        readonly writes: readonly StoredWrite[];
        /** The checkpoints in which the values of unchanged channels stand, by id. */
        readonly homes: ReadonlyMap<string, Typed>;
      }
    | undefined
  >;
  /** Highest id first. */
  list(query: ListQuery): Promise<readonly (CheckpointKey & { readonly metadata: Typed })[]>;
  /** The writes of these checkpoints, in order of task and index; of these channels only, if any are named. */
  writes(
    threadId: string,
    namespace: string,
    checkpointIds: readonly string[],
    channels?: readonly string[],
  ): Promise<readonly StoredWrite[]>;
  /** The checkpoint and its ancestors, nearest first, at most `limit`. */
  lineage(key: CheckpointKey, limit: number): Promise<readonly CheckpointOutline[]>;
  deleteThread(threadId: string): Promise<void>;

  threads(after: string, limit: number): Promise<readonly string[]>;
  /** Every checkpoint of a thread, newest first in each namespace. */
  outlines(threadId: string): Promise<ReadonlyMap<string, readonly CheckpointOutline[]>>;
  /** Removes checkpoints with their writes, hides checkpoints that only others need, and returns the freed bytes. */
  remove(threadId: string, namespace: string, gone: readonly string[], hidden: readonly string[]): Promise<number>;
  close(): Promise<void>;
}

/** A pending write as both engines store it. */
export interface WriteRow {
  checkpoint_id: string;
  task_id: string;
  idx: number;
  channel: string;
  type: string;
  value: Uint8Array;
}

export function toWrite(row: WriteRow): StoredWrite {
  return {
    checkpointId: row.checkpoint_id,
    taskId: row.task_id,
    index: row.idx,
    channel: row.channel,
    value: { type: row.type, data: row.value },
  };
}

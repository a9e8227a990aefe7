import type { Checkpoint, CheckpointSort } from "../model/checkpoint.ts";

export interface CheckpointQuery {
  readonly limit: number;
  readonly offset: number;
  /** Newest first by this time; ties by id, so that pages never overlap. */
  readonly sortBy: CheckpointSort;
  /** Only records that come after this one in the order. */
  readonly after?: { readonly at: string; readonly id: string } | undefined;
}

export interface CheckpointPage {
  readonly checkpoints: readonly Checkpoint[];
  /** Exact, and of the same moment as the page. */
  readonly total: number;
}

/** The checkpoints of one project. Every verb is atomic, and done means durable. */
export interface CheckpointStore {
  /** Stores a new record. Storing the same record again changes nothing, so a caller that lost the answer may repeat the call. */
  put(checkpoint: Checkpoint): Promise<void>;
  get(id: string): Promise<Checkpoint | undefined>;
  list(query: CheckpointQuery): Promise<CheckpointPage>;
  /** Whether there was anything to delete. */
  delete(id: string): Promise<boolean>;
}

import type { Checkpoint, CheckpointSort } from "../model/checkpoint.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import type { VersionedVector } from "./embedding-store.ts";
import type { RecordStore } from "./recall-store.ts";

export interface CheckpointFilter {
  /** All of them must match, without regard to case. */
  readonly tags?: readonly string[] | undefined;
  /** `substring`: a tag that contains the one asked for matches too. */
  readonly tagMatch?: "exact" | "substring" | undefined;
  /** Created at or after, and before. */
  readonly createdFrom?: string | undefined;
  readonly createdBefore?: string | undefined;
}

export interface CheckpointQuery {
  readonly filter?: CheckpointFilter | undefined;
  readonly limit: number;
  readonly offset: number;
  /** Newest first by this time's place in the order; ties by id, so that pages never overlap. */
  readonly sortBy: CheckpointSort;
  /** Only records that come after this one in the order, or after where it is now if it was moved down. */
  readonly after?: { readonly at: string; readonly id: string } | undefined;
}

export interface CheckpointPage {
  readonly checkpoints: readonly Checkpoint[];
  /** Records within the page that cannot be read; they count in `total`, and further records take their places. */
  readonly damaged: readonly DamagedRecord[];
  /** How many match, exact, and of the same moment as the page. */
  readonly total: number;
}

export interface PutOptions {
  /**
   * The clock's time, for a record that is saved now; absent for one that was made earlier and is imported or copied. Records that a
   * clock placed far ahead of it come to stand just before it.
   */
  readonly savedAt?: string | undefined;
}

/** The checkpoints of one project. Every verb is atomic, and done means durable. */
export interface CheckpointStore extends RecordStore<Checkpoint, CheckpointFilter> {
  /**
   * Stores a new record with its vectors. Storing the same record again changes nothing, so a caller that lost the answer
   * may repeat the call. Vectors of versions that are gone by now are left out. Its place in the order is the one it has.
   */
  put(checkpoint: Checkpoint, vectors?: readonly VersionedVector[], options?: PutOptions): Promise<void>;
  /** Replaces a record and its vectors if it is still at the revision before `checkpoint.revision`; returns whether it was. */
  replace(checkpoint: Checkpoint, vectors?: readonly VersionedVector[]): Promise<boolean>;
  /** Raises `conflict` if the record is damaged. */
  get(id: string): Promise<Checkpoint | undefined>;
  list(query: CheckpointQuery): Promise<CheckpointPage>;
  /** Whether there was anything to delete. */
  delete(id: string): Promise<boolean>;
  /** Deletes these in one transaction and returns how many existed. */
  deleteMany(ids: readonly string[]): Promise<number>;
}

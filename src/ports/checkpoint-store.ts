import type { Checkpoint, CheckpointSort } from "../model/checkpoint.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import type { IdempotencyKey } from "../model/idempotency.ts";
import type { VersionedVector } from "./embedding-store.ts";
import type { RecordStore } from "./recall-store.ts";

export interface CheckpointFilter {
  /** All must match, case-insensitively. */
  readonly tags?: readonly string[] | undefined;
  /** `substring`: a tag that contains the requested one matches too. */
  readonly tagMatch?: "exact" | "substring" | undefined;
  /** Created at or after, and before. */
  readonly createdFrom?: string | undefined;
  readonly createdBefore?: string | undefined;
  /** The context must have all of these pairs, such as a branch or a session. */
  readonly context?: Readonly<Record<string, string>> | undefined;
  /** Summary, description or tags must have every word, in any of its forms. A text without a word matches everything. */
  readonly text?: string | undefined;
}

/** A calendar day, as `2026-01-31`, with the number of checkpoints created on it. */
export interface DayCount {
  readonly day: string;
  readonly count: number;
}

export interface CheckpointQuery {
  readonly filter?: CheckpointFilter | undefined;
  readonly limit: number;
  readonly offset: number;
  /** Newest first by this time; ties by id, so that pages never overlap. */
  readonly sortBy: CheckpointSort;
  /** Only records after this one in the order; if it was reordered, after its new position. */
  readonly after?: { readonly at: string; readonly id: string } | undefined;
}

export interface CheckpointPage {
  readonly checkpoints: readonly Checkpoint[];
  /** Unreadable records within the page; they count in `total`, and further records fill the page. */
  readonly damaged: readonly DamagedRecord[];
  /** The exact number of matches, from the same snapshot as the page. */
  readonly total: number;
}

/** A tag and the number of checkpoints that have it. Spellings that differ only in case are one tag. */
export interface TagCount {
  readonly tag: string;
  readonly count: number;
}

export interface PutOptions {
  /**
   * The current time, for a record that is saved now; absent for an imported or copied record. Records dated in the future are
   * reordered to just before it.
   */
  readonly savedAt?: string | undefined;
  /** Ids of records that this one replaces: their `supersededBy` becomes its id in the same transaction. Missing and damaged ones are skipped. */
  readonly supersedes?: readonly string[] | undefined;
  /** Makes the call one with earlier calls of the same key: if one of them had an effect, this one has none. */
  readonly once?: IdempotencyKey | undefined;
}

/** The checkpoints of one project. Every method is atomic, and a resolved promise means durable. */
export interface CheckpointStore extends RecordStore<Checkpoint, CheckpointFilter> {
  /**
   * Stores a new record with its vectors. Storing the same record again changes nothing, so a caller that lost the response
   * may repeat the call. Vectors of deleted versions are ignored. The record keeps its position in the order. Returns false and changes
   * nothing if `once` was used.
   */
  put(checkpoint: Checkpoint, vectors?: readonly VersionedVector[], options?: PutOptions): Promise<boolean>;
  /** Replaces a record and its vectors if it is still at the revision before `checkpoint.revision`; returns whether it was. */
  replace(checkpoint: Checkpoint, vectors?: readonly VersionedVector[], options?: Pick<PutOptions, "supersedes">): Promise<boolean>;
  /** Raises `conflict` if the record is damaged. */
  get(id: string): Promise<Checkpoint | undefined>;
  list(query: CheckpointQuery): Promise<CheckpointPage>;
  /** Returns the latest days with checkpoints. A day starts at midnight of a time zone, `utcOffsetMinutes` ahead of UTC. */
  days(query: {
    readonly filter?: CheckpointFilter | undefined;
    readonly utcOffsetMinutes: number;
    readonly limit: number;
  }): Promise<readonly DayCount[]>;
  /** Returns the most frequent tags, ties in alphabetical order. */
  tags(limit: number): Promise<readonly TagCount[]>;
}

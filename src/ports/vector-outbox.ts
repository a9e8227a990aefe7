/** A vector that changed and is not yet in the index outside. */
export interface VectorChange {
  /** Grows with each change of the same vector. */
  readonly change: number;
  /** The record's number in its database. */
  readonly key: number;
  /** Absent when the record is gone. */
  readonly id?: string | undefined;
  /** What the database holds now; absent when it holds none. */
  readonly vector?: Float32Array | undefined;
}

/**
 * Feeds an index outside with the vectors of one collection. A change is written down in the transaction that makes it, so none
 * can be missed, and it is forgotten only when the index has it. The database stays the truth: an index can always be made again.
 */
export interface VectorOutbox {
  /** Writes changes down from now on, starting with every vector there is; gives the name of this database for the index, the same each time. */
  enable(): Promise<string>;
  /** Returns the oldest changes of a version, at most `limit`. */
  pending(versionId: number, limit: number): Promise<readonly VectorChange[]>;
  /** Forgets changes that the index has. One that was changed again meanwhile stays, under its new number. */
  done(versionId: number, changes: readonly VectorChange[]): Promise<void>;
  /** Returns the ids of records among those changes, at most `limit`. */
  pendingIds(versionId: number, limit: number): Promise<readonly string[]>;
  /** Forgets all changes of versions that are gone. */
  forgetGone(): Promise<void>;
  /** Writes these down as changed, because the index differs from the database there. */
  mark(versionId: number, keys: readonly number[]): Promise<void>;
  /** The keys that have a vector, in order, starting after the one given. */
  keys(versionId: number, afterKey: number, limit: number): Promise<readonly number[]>;
}

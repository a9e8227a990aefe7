/** A changed vector that the external index does not have yet. */
export interface VectorChange {
  /** Grows with each change of the same vector. */
  readonly change: number;
  /** The numeric key of the vector in its database: of a record and a piece of it. */
  readonly key: number;
  /** Absent if the record was deleted. */
  readonly id?: string | undefined;
  /** The vector in the database; absent if there is none. */
  readonly vector?: Float32Array | undefined;
}

/**
 * Feeds an external index with the vectors of one collection. A change is recorded in the transaction that makes it, so none is
 * missed, and it stays until the index has acknowledged it. The database is authoritative: the external index can always be rebuilt.
 */
export interface VectorOutbox {
  /** Starts recording changes, beginning with every existing vector. Returns the stable id of this database for the external index. */
  enable(): Promise<string>;
  /** Returns the oldest changes of a version with a number above `afterChange`, at most `limit`. */
  pending(versionId: number, limit: number, afterChange: number): Promise<readonly VectorChange[]>;
  /** Deletes acknowledged changes. A vector that changed again meanwhile stays, with its new number. */
  done(versionId: number, changes: readonly VectorChange[]): Promise<void>;
  /** Returns the record ids of pending changes, at most `limit`. */
  pendingIds(versionId: number, limit: number): Promise<readonly string[]>;
  /** Returns the deleted versions whose vectors the external index may still have: their deletion is in the outbox. */
  deletedVersions(): Promise<readonly number[]>;
  /** Deletes the changes of these versions. */
  forgetVersions(versionIds: readonly number[]): Promise<void>;
  /** Records these vectors as changed, because the external index differs from the database. */
  mark(versionId: number, keys: readonly number[]): Promise<void>;
  /** Returns the keys that have a vector, in order, after `afterKey`. */
  keys(versionId: number, afterKey: number, limit: number): Promise<readonly number[]>;
}

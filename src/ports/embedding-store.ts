import type { VectorOutbox } from "./vector-outbox.ts";

/** A vector space. Vectors of two spaces are never compared. */
export interface VectorSpace {
  readonly model: string;
  readonly version: string;
  readonly dimension: number;
}

export interface EmbeddingVersion extends VectorSpace {
  readonly versionId: number;
  /** The one that searches use. Exactly one per collection, once there is any. */
  readonly isCurrent: boolean;
  readonly createdAt: string;
}

/** A text that has no vector in some version yet. */
export interface Unembedded {
  readonly id: string;
  /** Grows with each edit, so that a vector of an older text is never stored for a newer one. */
  readonly revision: number;
  readonly text: string;
}

export interface EmbeddedText {
  readonly id: string;
  readonly revision: number;
  readonly vector: Float32Array;
}

/** A vector for a record that is being written, in one of the versions that are alive. */
export interface VersionedVector {
  readonly versionId: number;
  readonly vector: Float32Array;
}

/** The embedding versions of one collection of records: two may live side by side while one is being filled. */
export interface EmbeddingStore {
  /** Where the store can feed an index outside. */
  readonly outbox?: VectorOutbox | undefined;
  versions(): Promise<readonly EmbeddingVersion[]>;
  /** Finds or makes the version. It becomes current only if the collection has none yet. */
  addVersion(space: VectorSpace): Promise<EmbeddingVersion>;
  /** Records without a vector in this version, in a stable order, starting after the id given. */
  missing(versionId: number, limit: number, afterId?: string): Promise<readonly Unembedded[]>;
  counts(versionId: number): Promise<{ readonly records: number; readonly vectors: number }>;
  /** Stores those whose record is still there at the same revision; says how many. */
  putVectors(versionId: number, vectors: readonly EmbeddedText[]): Promise<number>;
  /** Switches searches to this version, if every record has its vector in it; all in one step. */
  makeCurrent(versionId: number): Promise<"switched" | "incomplete">;
  /** Deletes a version and its vectors. The current one is refused. Says how many vectors went. */
  dropVersion(versionId: number): Promise<number>;
  /** Removes vectors that cannot be right (length, not finite, not unit length), so that they count as missing; gives their records' ids. */
  dropDamaged(versionId: number): Promise<readonly string[]>;
  /** Writes the mirror `embedding_records` again if it does not match the records and their vectors; says how many rows were wrong. */
  repairMirror?(): Promise<number>;
}

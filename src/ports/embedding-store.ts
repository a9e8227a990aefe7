import type { VectorOutbox } from "./vector-outbox.ts";

/** A vector space. Vectors of two spaces are never compared. */
export interface VectorSpace {
  readonly model: string;
  readonly version: string;
  readonly dimension: number;
}

export interface EmbeddingVersion extends VectorSpace {
  readonly versionId: number;
  /** Searches use the current version. Exactly one version of a collection is current. */
  readonly isCurrent: boolean;
  readonly createdAt: string;
}

/** A piece of a record: 0 is the whole text, and a long text has parts from 1 on. */
export interface PieceRef {
  readonly id: string;
  readonly piece: number;
}

/** A piece that has no vector in some version yet. */
export interface Unembedded extends PieceRef {
  /** Grows with each edit, so that a vector of an older text is never stored for a newer one. */
  readonly revision: number;
  readonly text: string;
}

export interface EmbeddedPiece extends Unembedded {
  readonly vector: Float32Array;
}

/** A vector of the whole text of a record that is being written, in an existing embedding version. */
export interface VersionedVector {
  readonly versionId: number;
  readonly vector: Float32Array;
}

/** How complete a version is. */
export interface VectorCounts {
  readonly records: number;
  /** Records whose whole text has a vector: semantic search finds them. */
  readonly vectors: number;
  /** Parts of long records, which have vectors of their own. */
  readonly parts: number;
  readonly partVectors: number;
}

/** The vectors of one collection of records. */
export interface VectorStore {
  /** Returns pieces without a vector in this version, after the given one: whole texts first, then parts, each in the order of ids. */
  missing(versionId: number, limit: number, after?: PieceRef): Promise<readonly Unembedded[]>;
  counts(versionId: number): Promise<VectorCounts>;
  /** Stores the vectors whose record still has the same revision and the same text, and returns their number. */
  putVectors(versionId: number, vectors: readonly EmbeddedPiece[]): Promise<number>;
  /** Deletes vectors of the wrong length, with infinite values or not of unit length, so that they count as missing. Returns the record ids. */
  dropDamaged(versionId: number): Promise<readonly string[]>;
  /** Rewrites the mirror `embedding_records` if it does not match the records and their vectors, and returns the number of wrong rows. */
  repairMirror?(): Promise<number>;
}

/** The embedding versions of one collection of records. Two exist at the same time while one is being filled. */
export interface EmbeddingStore extends VectorStore {
  /** Present where the store can feed an external vector index. */
  readonly outbox?: VectorOutbox | undefined;
  versions(): Promise<readonly EmbeddingVersion[]>;
  /** Finds or creates the version. It becomes current only if the collection has none yet. */
  addVersion(space: VectorSpace): Promise<EmbeddingVersion>;
  /** Switches searches to this version atomically, if every piece of every record has its vector in it. */
  makeCurrent(versionId: number): Promise<"switched" | "incomplete">;
  /** Deletes a version and its vectors, and returns the number of vectors. Refuses the current version. */
  dropVersion(versionId: number): Promise<number>;
}

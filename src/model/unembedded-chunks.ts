import type { Chunk } from "./code-chunk.ts";

/** A stored chunk that has no vector yet. Its text is a range of a block. */
export interface UnembeddedChunk extends Pick<Chunk, "kind" | "name" | "parents" | "defines"> {
  /** The key of the chunk in the store. It is never reused. */
  readonly key: number;
  readonly path: string;
  readonly block: number;
  readonly start: number;
  readonly length: number;
}

/** Stored chunks that have no vector yet, in the form in which they are stored: the thread that embeds them decompresses their texts. */
export interface UnembeddedChunks {
  /** In the order of their keys. */
  readonly chunks: readonly UnembeddedChunk[];
  /** The compressed texts, several chunks in each. */
  readonly blocks: readonly Uint8Array[];
}

/** Vectors for stored chunks, one after the other in `values`. */
export interface ChunkVectors {
  readonly versionId: number;
  readonly dimension: number;
  readonly keys: readonly number[];
  readonly values: Float32Array;
}

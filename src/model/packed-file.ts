import type { Chunk } from "./code-chunk.ts";

/** A chunk without its text. */
export type ChunkOutline = Omit<Chunk, "text">;

/** The position of a chunk's text: the block of its file, and the range of characters in it. */
export interface TextPlace {
  readonly block: number;
  readonly start: number;
  readonly length: number;
}

/**
 * The stored form of a file's chunks and symbols. A thread computes it from the file, and another one writes it. It has few and large
 * parts, because a message between threads costs time for each object.
 */
export interface PackedFile {
  readonly outlines: readonly ChunkOutline[];
  /** The full-text terms of each chunk, separated by spaces. */
  readonly terms: readonly string[];
  /** The texts of the chunks: compressed blocks, one after the other, and where each ends. */
  readonly blocks: Uint8Array;
  readonly blockEnds: readonly number[];
  /** Where the text of each chunk is. */
  readonly places: readonly TextPlace[];
  readonly symbols: PackedSymbols;
}

/**
 * The symbols of a file: one small entry per name, of which a chunk has about four. The outline, one compressed text, holds the details
 * of the definitions and the list of all names.
 */
export interface PackedSymbols {
  /** The names, each followed by a NUL character, which no indexed file contains. */
  readonly names: string;
  /** For each name the number of its definitions, the number of its uses and the bytes of its positions. */
  readonly figures: Uint32Array;
  /** The positions of the uses of all names. */
  readonly positions: Uint8Array;
  readonly outline: Uint8Array;
}

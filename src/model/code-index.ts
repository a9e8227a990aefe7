import type { Chunk, SymbolDefinition, SymbolReference } from "./code-chunk.ts";
import { CairnError } from "./errors.ts";
import { framedHash } from "./ids.ts";

/** A file as it is in the index. */
export interface IndexedFile {
  /** Relative to the project, with `/`. */
  readonly path: string;
  /** SHA-256 of the content as it was sent. */
  readonly contentHash: string;
  /** The number of the index commit that wrote the file. A number is not reused while the index file exists. */
  readonly generation: number;
  readonly indexedAt: string;
  readonly language: string;
  readonly bytes: number;
  readonly lines: number;
  /** Why the file was indexed only partially. Such a file never counts as unchanged, so that the next index run retries it. */
  readonly notice?: string | undefined;
}

/** A chunk in the index, with the fields of its file. */
export interface CodeChunk extends Chunk {
  readonly id: string;
  readonly path: string;
  readonly generation: number;
  readonly language: string;
  readonly contentHash: string;
  readonly indexedAt: string;
}

/** A chunk without its text, which is the slowest field to read. */
export type CodeOutline = Omit<CodeChunk, "text">;

export interface FileRename {
  readonly oldPath: string;
  readonly newPath: string;
  readonly detectedAt: string;
}

export interface DefinitionSite extends Omit<SymbolDefinition, "role"> {
  readonly path: string;
  /** The chunk that holds the line. */
  readonly chunkId: string;
}

export interface ReferenceSite {
  readonly path: string;
  readonly line: number;
  readonly column: number;
}

/** The symbols of a part of a file, by line and column. */
export interface FileSymbols {
  readonly definitions: readonly Omit<SymbolDefinition, "role">[];
  readonly references: readonly Omit<SymbolReference, "role">[];
}

/** Orphaned rows. All are 0 unless another program altered the database. */
export interface CodeOrphans {
  readonly rows: number;
  readonly terms: number;
  readonly vectors: number;
}

export interface CodeCounts {
  readonly files: number;
  readonly chunks: number;
  readonly definitions: number;
  readonly references: number;
  readonly bytes: number;
  readonly renames: number;
  /** The number of the latest index commit. */
  readonly generation: number;
  readonly lastIndexedAt?: string | undefined;
  readonly languages: readonly { readonly language: string; readonly files: number; readonly chunks: number }[];
}

export function chunkId(projectId: string, path: string, index: number, generation: number): string {
  return framedHash(projectId, path, index, generation);
}

/** Hashes a chunk without its path, so that equal chunks share a vector. */
export function chunkFingerprint({ kind, name = "", parents, defines, text }: Omit<Chunk, "index" | "startLine" | "endLine">): string {
  return framedHash(kind, name, parents.length, ...parents, defines.length, ...defines, text);
}

/** Returns the text to embed for a chunk: its path and names, then its text. The prefix lets a query match by name and place. */
export function chunkText(path: string, chunk: Pick<Chunk, "kind" | "name" | "parents" | "defines" | "text">): string {
  const names = chunk.name ? [[...chunk.parents, chunk.name].join(".")] : chunk.defines.slice(0, 8);
  const label = names.length > 0 ? `${chunk.kind} ${names.join(", ")}` : "";
  return [path, label, chunk.text.trim()].filter((part) => part !== "").join("\n");
}

/** Reports a damaged code index. It is derived data: the next index run deletes it and builds it again. */
export function damagedCodeIndex(path: string, cause: unknown): CairnError {
  return new CairnError(
    "unavailable",
    `The code index ${path} is damaged. Checkpoints and knowledge are not affected. Build the index again with: cairn code index`,
    { cause, details: { path, damaged: true, codeIndex: true } },
  );
}

export function isDamagedCodeIndex(error: unknown): boolean {
  return error instanceof CairnError && error.details?.codeIndex === true;
}

import type { Chunk, CodeKind, SymbolEntry } from "../model/code-chunk.ts";
import type {
  CodeChunk,
  CodeCounts,
  CodeOrphans,
  CodeOutline,
  DefinitionSite,
  FileRename,
  IndexedFile,
  ReferenceSite,
} from "../model/code-index.ts";
import type { VersionedVector } from "./embedding-store.ts";
import type { RecallStore } from "./recall-store.ts";

export interface CodeFilter {
  readonly languages?: readonly string[] | undefined;
  readonly kinds?: readonly CodeKind[] | undefined;
  /** See text/glob.ts. */
  readonly glob?: string | undefined;
  /** Written or renamed in the index at or after this time. */
  readonly changedSince?: string | undefined;
}

export interface ChunkWrite {
  readonly chunk: Chunk;
  readonly vectors: readonly VersionedVector[];
}

export interface FileWrite extends Omit<IndexedFile, "generation" | "indexedAt"> {
  readonly chunks: readonly ChunkWrite[];
  readonly symbols: readonly SymbolEntry[];
}

export interface CodeBatch {
  readonly at: string;
  /** Done first: the file's rows and vectors go over to the new path. Left undone unless `from` still has this content and `to` is free. */
  readonly renames?: readonly { readonly from: string; readonly to: string; readonly contentHash: string }[];
  /** Removed if the file still has this content. `renamedTo`: recorded as a rename to a file that is written by itself. */
  readonly removes?: readonly { readonly path: string; readonly contentHash: string; readonly renamedTo?: string | undefined }[];
  /** Each in place of what was at its path. */
  readonly files?: readonly FileWrite[];
}

export interface CommitResult {
  readonly generation: number;
  /** The new paths of the renames that were made. */
  readonly renamed: readonly string[];
  /** The paths that were removed. */
  readonly removed: readonly string[];
}

export interface Compacted {
  readonly forgottenRenames: number;
  /** By how much the database became smaller on disk. */
  readonly freedBytes: number;
}

/**
 * The code of one project. A batch is one step: readers see all of it or nothing, and a process that dies leaves the one or the
 * other. A file's content hash becomes visible together with its chunks, so a file that failed never counts as unchanged.
 */
export interface CodeStore extends RecallStore<CodeFilter> {
  /** In the order asked, without those that are gone. */
  getMany(ids: readonly string[]): Promise<readonly CodeChunk[]>;
  commit(batch: CodeBatch): Promise<CommitResult>;
  /** Those of these paths that are in the index. */
  filesAt(paths: readonly string[]): Promise<readonly IndexedFile[]>;
  /** The files with one of these contents, by path. */
  filesWith(contentHashes: readonly string[]): Promise<readonly IndexedFile[]>;
  /** All files, by path. */
  files(): Promise<readonly IndexedFile[]>;
  /** As `getMany`, without the texts. */
  outlines(ids: readonly string[]): Promise<readonly CodeOutline[]>;
  /** The chunks of a file, in order; together they are its text. With `lines`, only the chunks that have one of these lines. */
  chunksOf(path: string, lines?: readonly number[]): Promise<readonly CodeChunk[]>;
  /** The vectors of a file's chunks, by chunkPrint, so that an edit or a copy embeds only what is new. */
  vectorsOf(path: string): Promise<ReadonlyMap<string, readonly VersionedVector[]>>;
  /** Where these names are defined, by path and line. */
  definitions(names: readonly string[], filter: CodeFilter, limit: number): Promise<readonly DefinitionSite[]>;
  /** Where the name is used, by path and line, and in how many places there are. */
  references(
    name: string,
    filter: Omit<CodeFilter, "kinds">,
    limit: number,
  ): Promise<{ readonly sites: readonly ReferenceSite[]; readonly total: number }>;
  /** Newest first. */
  renames(limit: number): Promise<readonly FileRename[]>;
  counts(): Promise<CodeCounts>;
  /** Removes what belongs to nothing, and says how much it was. A file whose chunks are not all there is removed, to be indexed again. */
  reconcile(): Promise<CodeOrphans>;
  /** Checks the whole index and deletes it if it is damaged. Absent where the index is not a file of its own. */
  dropDamaged?(): Promise<void>;
  /** Only counts them. */
  orphans(): Promise<CodeOrphans>;
  /** Forgets all renames but the newest, tidies the index of words and gives room back. */
  compact(keepRenames: number): Promise<Compacted>;
}

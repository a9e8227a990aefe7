import type { Chunk, CodeKind, SymbolEntry } from "../model/code-chunk.ts";
import type {
  CodeChunk,
  CodeCounts,
  CodeOrphans,
  DefinitionSite,
  FileRename,
  FileSymbols,
  IndexedFile,
  ReferenceSite,
} from "../model/code-index.ts";
import type { IndexReport, StoredReport } from "../model/index-report.ts";
import type { PackedFile } from "../model/packed-file.ts";
import type { ChunkVectors, UnembeddedChunks } from "../model/unembedded-chunks.ts";
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

/** A file whose stored form was computed before, usually in another thread. */
export interface PackedFileWrite extends Omit<IndexedFile, "generation" | "indexedAt"> {
  readonly packed: PackedFile;
  /** The vectors of each chunk. */
  readonly vectors: readonly (readonly VersionedVector[])[];
}

export interface CodeBatch {
  readonly at: string;
  /** Applied first: the file keeps its rows and vectors under the new path. Skipped unless `from` still has this content and `to` is free. */
  readonly renames?: readonly { readonly from: string; readonly to: string; readonly contentHash: string }[];
  /** Removed if the file still has this content. `renamedTo`: recorded as a rename to a file that is written separately. */
  readonly removes?: readonly { readonly path: string; readonly contentHash: string; readonly renamedTo?: string | undefined }[];
  /** Each replaces the file at its path. */
  readonly files?: readonly (FileWrite | PackedFileWrite)[];
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
  /** Bytes that were returned to the file system. */
  readonly freedBytes: number;
}

/**
 * Writes the code index of one project and reads its files. A batch is atomic: readers see all of it or nothing, and so does the
 * process that starts after a crash. A file's content hash becomes visible together with its chunks, so a file that failed never
 * counts as unchanged.
 */
export interface CodeIndexStore {
  commit(batch: CodeBatch): Promise<CommitResult>;
  /** Returns the indexed files among these paths. */
  filesAt(paths: readonly string[]): Promise<readonly IndexedFile[]>;
  /** Returns the files with one of these content hashes, by path. */
  filesWith(contentHashes: readonly string[]): Promise<readonly IndexedFile[]>;
  /** Returns all files, by path. */
  files(): Promise<readonly IndexedFile[]>;
  /** Returns the vectors of a file's chunks, by `chunkFingerprint`, so that an edit or a copy embeds only new text. A store may round them to int8. */
  vectorsOf(path: string): Promise<ReadonlyMap<string, readonly VersionedVector[]>>;
  /** Returns the recorded renames, newest first. */
  renames(limit: number): Promise<readonly FileRename[]>;
}

/** Finds the chunks of one project and reads them. */
export interface CodeSearchStore extends RecallStore<CodeFilter> {
  /** Returns chunks in the order requested, without missing ones. */
  getMany(ids: readonly string[]): Promise<readonly CodeChunk[]>;
  /** Returns the chunks of a file in order; together they are its text. With `lines`, returns only chunks with one of these lines. */
  chunksOf(path: string, lines?: readonly number[]): Promise<readonly CodeChunk[]>;
  /**
   * Returns the paths of the files that match the filter, in order. With `words`, only files with a chunk that has all of them, and files
   * with a chunk that is too long for the full-text index. Words are compared by their terms in that index, so a few files may have other
   * forms of them.
   */
  pathsWith(words: readonly string[], filter: Omit<CodeFilter, "kinds">): Promise<readonly string[]>;
}

/** Finds the definitions and references of names. */
export interface CodeSymbolStore {
  /** Returns where these names are defined, by path and line. */
  definitions(names: readonly string[], filter: CodeFilter, limit: number): Promise<readonly DefinitionSite[]>;
  /** Returns where the name is used, by path and line, and the number of all uses. */
  references(
    name: string,
    filter: Omit<CodeFilter, "kinds">,
    limit: number,
  ): Promise<{ readonly sites: readonly ReferenceSite[]; readonly total: number }>;
  /** Returns all definitions of a file and, with `lines`, the references in these lines, inclusive. Empty for an unknown path. */
  symbolsOf(path: string, lines?: { readonly from: number; readonly to: number }): Promise<FileSymbols>;
}

/** Measures, checks and compacts the code index of one project. */
export interface CodeMaintenanceStore {
  counts(): Promise<CodeCounts>;
  /** Counts orphaned rows and changes nothing. */
  orphans(): Promise<CodeOrphans>;
  /** Removes orphaned rows and returns their number. A file with missing chunks is removed, to be indexed again. */
  reconcile(): Promise<CodeOrphans>;
  /** Checks the whole index and deletes it if it is damaged. Does nothing where the index is not a file of its own. */
  dropDamaged(): Promise<void>;
  /** Deletes all but the newest renames, compacts the full-text index and returns free space to the file system. */
  compact(keepRenames: number): Promise<Compacted>;
}

export interface FilePageQuery {
  readonly glob?: string | undefined;
  readonly languages?: readonly string[] | undefined;
  /** By path ascending, or by size or time descending, then by path. */
  readonly sortBy: "path" | "bytes" | "indexed_at";
  readonly limit: number;
  readonly offset: number;
}

/** The reports of the jobs that fill the index, and the files that they stored. */
export interface CodeJobStore {
  /** Stores the report of a job instead of its previous one, and deletes those of all but the newest `REPORTS_KEPT` jobs. */
  report(report: IndexReport): Promise<{ readonly cancelRequested: boolean }>;
  /** Returns the reports, newest job first. */
  reports(): Promise<readonly StoredReport[]>;
  /** Asks a job to end, and returns its report; `undefined` if there is none. */
  requestCancel(jobId: string): Promise<StoredReport | undefined>;
  /** Returns a page of the indexed files and the number of all that match. */
  filePage(query: FilePageQuery): Promise<{ readonly files: readonly IndexedFile[]; readonly total: number }>;
}

/** A file of a project by its path and the hash of its content. */
export interface FileContent {
  readonly path: string;
  readonly contentHash: string;
}

/** Fills a new index with what the storage has derived from the same files before. */
export interface CodeSeedStore {
  /**
   * Creates the index from that of another project of the same storage, if one has most files of the sample. Takes over only files that
   * `list` returns with the same path and content, and returns their number. Does nothing if the index exists. Absent where projects of
   * several users share a storage.
   */
  seed?(sample: readonly FileContent[], list: () => Promise<readonly FileContent[]>): Promise<number>;
}

/** Adds vectors to chunks that were committed without. A store has both verbs or neither; without them, vectors come with their chunks. */
export interface CodeVectorStore {
  /** Returns chunks that have no vector in this version, by key, after the given key. */
  unembedded?(versionId: number, limit: number, afterKey?: number): Promise<UnembeddedChunks>;
  /** Stores vectors, except those of chunks that were removed meanwhile, and returns their number. */
  putVectors?(vectors: ChunkVectors): Promise<number>;
}

/** The code index of one project. */
export interface CodeStore
  extends CodeIndexStore,
    CodeSearchStore,
    CodeSymbolStore,
    CodeMaintenanceStore,
    CodeJobStore,
    CodeSeedStore,
    CodeVectorStore {}

import { existsSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import type { CodeBatch, CommitResult, FileWrite } from "../../../../ports/code-store.ts";
import { yieldToCalls } from "../../../../scheduling/calls.ts";
import { reuseThread } from "../../../../scheduling/run-in-thread.ts";
import { codeTerms } from "../../../../text/terms.ts";
import { packTexts, type TextPlace } from "../../../rows/chunk-row.ts";
import { chunkTerms, type PackedSymbols, packSymbols } from "../../../rows/index-text.ts";
import type { SqliteDatabase } from "../../driver/driver.ts";
import { commitCode } from "./write.ts";

/** Chunks that the main thread writes itself: about ten milliseconds. */
const INLINE_CHUNKS = 50;
/** Chunks that a file has on average, for removals, whose chunks are not counted. */
const CHUNKS_PER_FILE = 10;

export interface CommitOrder {
  readonly path: string;
  readonly projectId: string;
  readonly batch: CodeBatch;
}

/** Milliseconds that the commit thread waits for the next batch of an index run. */
const IDLE_MS = 5_000;
const commitInThread = reuseThread<CommitOrder, CommitResult>("stores/sqlite/projects/code/commit-worker.js", IDLE_MS);

/** Commits a batch in one transaction: readers see all of it or nothing. A large batch is written by a thread, off the event loop. */
export async function commitBatch(database: SqliteDatabase, projectId: string, batch: CodeBatch): Promise<CommitResult> {
  if (isMainThread && sizeOf(batch) > INLINE_CHUNKS) {
    if (!existsSync(database.path)) await database.write(() => {}); // creates the file, with its schema and its owner
    const order: CommitOrder = { path: database.path, projectId, batch };
    return commitInThread(order);
  }
  const files = (batch.files ?? []).map(rowsOf);
  return database.write((tx) => commitCode(tx, projectId, { ...batch, files }));
}

function sizeOf({ files = [], renames = [], removes = [] }: CodeBatch): number {
  return files.reduce((sum, { chunks }) => sum + chunks.length, 0) + CHUNKS_PER_FILE * (renames.length + removes.length);
}

/** The rows of a file. Preparing them takes longer than inserting them, so that happens before the transaction. */
export interface FileRows {
  readonly file: FileWrite;
  /** The texts of the chunks, compressed together, and the place of each chunk's text in them. */
  readonly blocks: readonly Uint8Array[];
  readonly places: readonly TextPlace[];
  /** The full-text terms of each chunk. */
  readonly words: readonly string[];
  readonly symbols: PackedSymbols;
}

export function rowsOf(file: FileWrite): FileRows {
  const { path, chunks, symbols } = file;
  const words = chunks.map(({ chunk }) => {
    yieldToCalls();
    return codeTerms(chunkTerms(path, chunk)).join(" ");
  });
  return { file, ...packTexts(chunks.map(({ chunk }) => chunk.text)), words, symbols: packSymbols(symbols) };
}

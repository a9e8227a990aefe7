import { existsSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import type { CodeBatch, CommitResult } from "../../../../ports/code-store.ts";
import { runInThread } from "../../../../scheduling/run-in-thread.ts";
import type { SqliteDatabase } from "../../driver/driver.ts";
import { rowsOf } from "./rows.ts";
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

/** Commits a batch in one transaction: readers see all of it or nothing. A large batch is written by a thread, off the event loop. */
export async function commitBatch(database: SqliteDatabase, projectId: string, batch: CodeBatch): Promise<CommitResult> {
  if (isMainThread && sizeOf(batch) > INLINE_CHUNKS) {
    if (!existsSync(database.path)) await database.write(() => {}); // creates the file, with its schema and its owner
    const order: CommitOrder = { path: database.path, projectId, batch };
    return runInThread<CommitResult>("stores/sqlite/projects/code/commit-worker.js", order);
  }
  const files = (batch.files ?? []).map(rowsOf);
  return database.write((tx) => commitCode(tx, projectId, { ...batch, files }));
}

function sizeOf({ files = [], renames = [], removes = [] }: CodeBatch): number {
  return files.reduce((sum, { chunks }) => sum + chunks.length, 0) + CHUNKS_PER_FILE * (renames.length + removes.length);
}

import { existsSync } from "node:fs";
import type { CodeBatch, CommitResult } from "../../../../ports/code-store.ts";
import { toPacked } from "../../../rows/file-write.ts";
import type { SqliteDatabase } from "../../driver/driver.ts";
import { commitInThread, isCommitting } from "./commit-thread.ts";
import { commitCode } from "./write.ts";

/** Chunks that the calling thread writes itself: about ten milliseconds. */
const INLINE_CHUNKS = 50;
/** Chunks that a file has on average, for removals, whose chunks are not counted. */
const CHUNKS_PER_FILE = 10;

/** Commits a batch in one transaction: readers see all of it or nothing. A large batch is written by a thread, off the event loop. */
export async function commitBatch(database: SqliteDatabase, projectId: string, batch: CodeBatch): Promise<CommitResult> {
  const chunks = sizeOf(batch);
  if (chunks <= INLINE_CHUNKS && !isCommitting()) return writeBatch(database, projectId, batch);
  if (!existsSync(database.path)) await database.write(() => {}); // creates the file, with its schema and its owner
  return commitInThread(database.path, projectId, batch, chunks);
}

/** Writes a batch in this thread. */
export function writeBatch(database: SqliteDatabase, projectId: string, batch: CodeBatch): Promise<CommitResult> {
  const files = (batch.files ?? []).map(toPacked); // takes longer than to insert the rows, so it happens before the transaction
  return database.write((tx) => commitCode(tx, projectId, { ...batch, files }));
}

function sizeOf({ files = [], renames = [], removes = [] }: CodeBatch): number {
  return (
    files.reduce((sum, file) => sum + ("packed" in file ? file.packed.outlines : file.chunks).length, 0) +
    CHUNKS_PER_FILE * (renames.length + removes.length)
  );
}

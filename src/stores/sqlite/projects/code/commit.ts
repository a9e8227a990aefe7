import { existsSync } from "node:fs";
import type { ChunkVectors } from "../../../../model/unembedded-chunks.ts";
import type { CodeBatch, CommitResult } from "../../../../ports/code-store.ts";
import { hasCallsInFlight } from "../../../../scheduling/calls.ts";
import { readSettled, reuseThread, type Settled } from "../../../../scheduling/run-in-thread.ts";
import { toPacked } from "../../../rows/file-write.ts";
import type { SqliteDatabase } from "../../driver/driver.ts";
import { putLateVectors } from "./late-vectors.ts";
import { commitCode } from "./write.ts";

/** Chunks that the calling thread writes itself: about ten milliseconds. */
const INLINE_CHUNKS = 50;
/** Milliseconds after a commit of the thread in which small batches go to it too: an index run sends more, which share a transaction. */
const BUSY_MS = 500;
/** Chunks that a file has on average, for removals, whose chunks are not counted. */
const CHUNKS_PER_FILE = 10;

/** What the commit thread writes: files with their chunks, or vectors of chunks that are stored. */
export type IndexWrite = CodeBatch | ChunkVectors;

/** The number of vectors, or the result of a batch of files. */
type Written<Write extends IndexWrite> = Write extends ChunkVectors ? number : CommitResult;

/** Commits a batch in one transaction: readers see all of it or nothing. A large batch is written by a thread, off the event loop. */
export async function commitBatch<Write extends IndexWrite>(
  database: SqliteDatabase,
  projectId: string,
  batch: Write,
): Promise<Written<Write>> {
  const chunks = sizeOf(batch);
  if (chunks <= INLINE_CHUNKS && !running && performance.now() - endedAt > BUSY_MS) return writeBatch(database, projectId, batch);
  if (!existsSync(database.path)) await database.write(() => {}); // creates the file, with its schema and its owner
  return (await commitInThread(database.path, projectId, batch, chunks)) as Written<Write>;
}

/** Writes a batch in this thread. */
export async function writeBatch<Write extends IndexWrite>(
  database: SqliteDatabase,
  projectId: string,
  batch: Write,
): Promise<Written<Write>> {
  return (await ("keys" in batch
    ? database.write((tx) => putLateVectors(tx, batch))
    : writeFiles(database, projectId, batch))) as Written<Write>;
}

function writeFiles(database: SqliteDatabase, projectId: string, batch: CodeBatch): Promise<CommitResult> {
  const files = (batch.files ?? []).map(toPacked); // takes longer than to insert the rows, so it happens before the transaction
  return database.write((tx) => commitCode(tx, projectId, { ...batch, files }));
}

function sizeOf(batch: IndexWrite): number {
  if ("keys" in batch) return batch.keys.length;
  const { files = [], renames = [], removes = [] } = batch;
  return (
    files.reduce((sum, file) => sum + ("packed" in file ? file.packed.outlines : file.chunks).length, 0) +
    CHUNKS_PER_FILE * (renames.length + removes.length)
  );
}

/** Batches that the commit thread writes in one transaction. */
export interface CommitOrder {
  readonly path: string;
  readonly projectId: string;
  readonly batches: readonly IndexWrite[];
}

/** Milliseconds that the commit thread waits for the next batch of an index run. */
const IDLE_MS = 5_000;
/** Chunks of one transaction while no call is in flight: each transaction adds a segment to the full-text index, which must be merged. */
const CHUNKS_PER_COMMIT = 2_000;

const perform = reuseThread<CommitOrder, Settled<CommitResult | number>[]>("stores/sqlite/projects/code/commit-worker.js", IDLE_MS);

interface Waiting {
  readonly path: string;
  readonly projectId: string;
  readonly batch: IndexWrite;
  readonly chunks: number;
  resolve(result: CommitResult | number): void;
  reject(error: unknown): void;
}

const waiting: Waiting[] = [];
let running = false;
let endedAt = Number.NEGATIVE_INFINITY;

/** Commits a batch in the commit thread. Batches of one index that wait at the same time share a transaction. */
function commitInThread(path: string, projectId: string, batch: IndexWrite, chunks: number): Promise<CommitResult | number> {
  return new Promise((resolve, reject) => {
    waiting.push({ path, projectId, batch, chunks, resolve, reject });
    if (!running) void commitWaiting();
  });
}

async function commitWaiting(): Promise<void> {
  running = true;
  while (waiting.length > 0) {
    const group = takeGroup();
    const { path, projectId } = group[0]!;
    try {
      const results = await perform({ path, projectId, batches: group.map(({ batch }) => batch) });
      for (const [place, { resolve, reject }] of group.entries())
        try {
          resolve(readSettled(results[place]!));
        } catch (error) {
          reject(error);
        }
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
  running = false;
  endedAt = performance.now();
}

/** Takes the next batches of one index: a single one while a call is in flight, because a call may wait for the disk or for a core. */
function takeGroup(): Waiting[] {
  const first = waiting[0]!;
  const limit = hasCallsInFlight() ? 0 : CHUNKS_PER_COMMIT;
  let chunks = 0;
  let count = 0;
  for (const { path, projectId, chunks: more } of waiting) {
    if (path !== first.path || projectId !== first.projectId || (count > 0 && chunks + more > limit)) break;
    chunks += more;
    count++;
  }
  return waiting.splice(0, count);
}

import type { CodeBatch, CommitResult } from "../../../../ports/code-store.ts";
import { hasCallsInFlight } from "../../../../scheduling/calls.ts";
import { readSettled, reuseThread, type Settled } from "../../../../scheduling/run-in-thread.ts";

/** Batches that the commit thread writes in one transaction. */
export interface CommitOrder {
  readonly path: string;
  readonly projectId: string;
  readonly batches: readonly CodeBatch[];
}

/** Milliseconds that the commit thread waits for the next batch of an index run. */
const IDLE_MS = 5_000;
/** Chunks of one transaction while no call is in flight: each transaction adds a segment to the full-text index, which must be merged. */
const CHUNKS_PER_COMMIT = 2_000;

const perform = reuseThread<CommitOrder, Settled<CommitResult>[]>("stores/sqlite/projects/code/commit-worker.js", IDLE_MS);

interface Waiting {
  readonly path: string;
  readonly projectId: string;
  readonly batch: CodeBatch;
  readonly chunks: number;
  resolve(result: CommitResult): void;
  reject(error: unknown): void;
}

const waiting: Waiting[] = [];
let running = false;

/** Commits a batch in the commit thread. Batches of one index that wait at the same time share a transaction. */
export function commitInThread(path: string, projectId: string, batch: CodeBatch, chunks: number): Promise<CommitResult> {
  return new Promise((resolve, reject) => {
    waiting.push({ path, projectId, batch, chunks, resolve, reject });
    if (!running) void commitWaiting();
  });
}

/** Returns whether the commit thread has work: a small batch then joins it instead of waiting for the lock of the file. */
export const isCommitting = (): boolean => running;

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

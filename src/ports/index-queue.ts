import type { IndexJob, IndexOutcome, IndexWork } from "../model/index-job.ts";

/** Performs one job and returns its outcome; never rejects. A job may run again after a crash, and then finds its files unchanged. */
export type PerformIndexWork = (work: IndexWork, signal: AbortSignal) => Promise<IndexOutcome>;

/** Returns how many jobs of a queue one sender may have: half of the capacity, so that others can always add jobs. */
export const shareOf = (capacity: number): number => Math.max(1, Math.floor(capacity / 2));

/**
 * The queue of index jobs, processed in the background. Jobs of one project run one at a time in the order of their acceptance, so
 * that older content never replaces newer content.
 */
export interface IndexQueue {
  /** Queues a job. Raises `unavailable` with `retryAfterMs` if the queue is full or the sender already has half of it. */
  add(work: IndexWork, sender?: string): Promise<IndexJob>;
  /** Returns the job; `undefined` if the id is unknown or the job has expired. */
  get(id: string): Promise<IndexJob | undefined>;
  /** Cancels an unfinished job; has no effect once its commit has started. */
  cancel(id: string): Promise<IndexJob | undefined>;
  /** Returns the number of jobs of one project, or of all. */
  depth(projectId?: string): Promise<QueueDepth>;
  /** Starts processing queued jobs, including those of other processes. */
  start(): Promise<void>;
  /** Stops accepting jobs and finishes or cancels the running ones. An in-memory queue drains first. */
  close(): Promise<void>;
}

export interface QueueDepth {
  readonly pending: number;
  readonly running: number;
  /** Over all projects. */
  readonly capacity: number;
}

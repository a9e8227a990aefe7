import type { IndexJob, IndexOutcome, IndexWork } from "../model/index-job.ts";

/** Performs one piece of work and returns its result; raises nothing. It may be done again after a crash, and then finds the files unchanged. */
export type PerformIndexWork = (work: IndexWork, signal: AbortSignal) => Promise<IndexOutcome>;

/** How much of a queue one sender may fill, so that others can always add work. */
export const shareOf = (capacity: number): number => Math.max(1, Math.floor(capacity / 2));

/**
 * Work that was accepted and is done in the background. Pieces of one project are done one after another in the order in which they
 * were accepted, so that an older content never takes the place of a newer one.
 */
export interface IndexQueue {
  /** Raises `unavailable`, with a time to wait, when the queue is full or its sender has half of it already. */
  add(work: IndexWork, sender?: string): Promise<IndexJob>;
  /** `undefined` for one that is not known, or not any more. */
  get(id: string): Promise<IndexJob | undefined>;
  /** Ends a job that has not ended. One that is under way either ends before its files are visible, or it is too late. */
  cancel(id: string): Promise<IndexJob | undefined>;
  /** Of one project, or of all. */
  depth(projectId?: string): Promise<QueueDepth>;
  /** Begins with what waits, also what other processes left. Adding work begins too. */
  start(): Promise<void>;
  /** Takes nothing more, and ends what is under way. What waits is done first where only this process knows of it. */
  close(): Promise<void>;
}

export interface QueueDepth {
  readonly pending: number;
  readonly running: number;
  /** Over all projects. */
  readonly capacity: number;
}

import { setTimeout as sleep } from "node:timers/promises";
import { asCairnError, CairnError } from "../../model/errors.ts";
import type { OnFolder } from "../files/walk.ts";
import { hasEnded, type Job } from "../jobs/job.ts";
import { folderWatch } from "./watch-folders.ts";

export interface WatchOptions {
  /** Brings the index up to date, and reports every folder that it enters. */
  readonly index: (onFolder: OnFolder, signal: AbortSignal) => Promise<Job>;
  readonly signal: AbortSignal;
  /** Called after every index run, also after one that found no change or failed. */
  readonly onIndexed?: (outcome: Job | CairnError) => void | Promise<void>;
  readonly maxFolders?: number;
  /** Milliseconds without a change after which a burst of changes has ended. */
  readonly settleMs?: number;
  /** Milliseconds between index runs without a reported change: systems drop events when there are too many. */
  readonly rescanMs?: number;
  /** The same if not all folders can be watched. */
  readonly pollMs?: number;
  readonly pauseAfterFailureMs?: number;
}

/** Settle periods after which a burst that does not end is indexed nevertheless. */
const SETTLE_ROUNDS = 5;
/** Milliseconds to pause after an index run, at most. */
const MAX_PAUSE_MS = 1_500;

/**
 * Keeps the index of a tree up to date until stopped. It records only whether something changed; the next index run finds out what. So a
 * flood of events, a rename, a deleted folder or a checkout costs one run each, and no events queue up.
 */
export async function watchProject(options: WatchOptions): Promise<void> {
  const { index, signal, onIndexed = () => {}, settleMs = 200, rescanMs = 60_000, pollMs = 2_000, pauseAfterFailureMs = 5_000 } = options;
  let changed = true;
  let wake = () => {};
  const folders = folderWatch({
    ...(options.maxFolders !== undefined && { maxFolders: options.maxFolders }),
    onChange() {
      changed = true;
      wake();
    },
  });
  const pause = (ms: number) => sleep(ms, undefined, { signal });

  /** Waits until something changes, at most `ms`. */
  async function untilChanged(ms: number): Promise<void> {
    if (changed) return;
    const woken = new AbortController();
    wake = () => woken.abort();
    await sleep(ms, undefined, { signal: AbortSignal.any([signal, woken.signal]) }).catch(() => {});
    wake = () => {};
    signal.throwIfAborted();
  }

  try {
    for (;;) {
      for (let round = 0; changed && round < SETTLE_ROUNDS; round++) {
        changed = false;
        await pause(settleMs);
      }
      changed = false;
      const entered = new Set<string>();
      const startedAt = performance.now();
      const enter: OnFolder = (folder, rules) => {
        entered.add(folder);
        folders.add(folder, rules);
      };
      const outcome = await index(enter, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        return asCairnError(error);
      });
      const tookMs = performance.now() - startedAt;
      await onIndexed(outcome);
      if (outcome instanceof CairnError || outcome.status === "failed" || !hasEnded(outcome)) {
        // The tree may be unavailable for a moment, or the disk full: the watches are not reliable then.
        changed = true;
        await pause(pauseAfterFailureMs);
        continue;
      }
      if (entered.size > 0) folders.retain(entered);
      else changed = true; // it joined a job of another process, which reports no folders
      // A large tree with constant changes is not walked all the time.
      await pause(Math.min(tookMs, MAX_PAUSE_MS));
      await untilChanged(folders.incomplete ? Math.max(pollMs, 10 * tookMs) : rescanMs);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    folders.close();
  }
}

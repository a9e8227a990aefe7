import { setTimeout as sleep } from "node:timers/promises";
import { asCairnError, CairnError } from "../../model/errors.ts";
import type { OnFolder } from "../files/walk.ts";
import { hasEnded, type Job } from "../jobs/job.ts";
import { folderWatch } from "./watch-folders.ts";

export interface WatchOptions {
  /** Brings the index up to date, and tells of every folder that it enters. */
  readonly index: (onFolder: OnFolder, signal: AbortSignal) => Promise<Job>;
  readonly signal: AbortSignal;
  /** Told after every look, also of one that found nothing or failed. */
  readonly onLook?: (outcome: Job | CairnError) => void | Promise<void>;
  readonly maxFolders?: number;
  /** Quiet for this long, and a burst of changes is taken to be over. */
  readonly settleMs?: number;
  /** A look without any sign of a change, since systems drop events when there are too many. */
  readonly rescanMs?: number;
  /** The same where not all folders can be watched. */
  readonly pollMs?: number;
  readonly pauseAfterFailureMs?: number;
}

/** A burst that never ends is looked at now and then all the same. */
const SETTLE_ROUNDS = 5;
const MAX_REST_MS = 1_500;

/**
 * Keeps the index of a tree up to date until stopped. All it keeps of what happened is whether something did: the look that
 * follows finds out what, so that floods, renames, deleted folders and checkouts cost one look each, and nothing piles up.
 */
export async function watchProject(options: WatchOptions): Promise<void> {
  const { index, signal, onLook = () => {}, settleMs = 200, rescanMs = 60_000, pollMs = 2_000, pauseAfterFailureMs = 5_000 } = options;
  let changed = true;
  let wake = () => {};
  const folders = folderWatch({
    ...(options.maxFolders !== undefined && { maxFolders: options.maxFolders }),
    onChange() {
      changed = true;
      wake();
    },
  });
  const quiet = (ms: number) => sleep(ms, undefined, { signal });

  /** Until something changes, or for so long. */
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
        await quiet(settleMs);
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
      await onLook(outcome);
      if (outcome instanceof CairnError || outcome.status === "failed" || !hasEnded(outcome)) {
        // The tree may be away for a moment, or the disk full: what the watches say counts for nothing then.
        changed = true;
        await quiet(pauseAfterFailureMs);
        continue;
      }
      if (entered.size > 0) folders.keep(entered);
      else changed = true; // a job of another process was joined, which told nothing of the folders
      // However busy its files, a large tree is not looked at all the time.
      await quiet(Math.min(tookMs, MAX_REST_MS));
      await untilChanged(folders.incomplete ? Math.max(pollMs, 10 * tookMs) : rescanMs);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    folders.close();
  }
}

import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { openFilesBudget } from "../../../files/open-files.ts";
import { CairnError } from "../../../model/errors.ts";
import { LIMITS } from "../../../model/limits.ts";
import { waitLimitMs } from "../../../scheduling/calls.ts";
import { releaseClosedConnections } from "./engine.ts";

/** An open database as the slots see it. */
export interface SlotHolder {
  /** Increases with every use: of idle databases the least recently used ones are closed. */
  readonly lastUse: number;
  /** Closes the database if nothing uses it, and returns whether it did. */
  closeIfIdle(): boolean;
}

/** Limits how many databases are open at once. */
export interface OpenSlots {
  /** Waits until one more database may be open, and closes the least recently used idle ones to make room. */
  take(holder: SlotHolder): Promise<void>;
  free(holder: SlotHolder): void;
}

/** Milliseconds between two looks for an idle database while all are in use. */
const RETRY_MS = 5;
/** The part of the slots that is freed together: closing for real takes a garbage collection with one of the engines. */
const BATCH_SHARE = 0.5;

export function openSlots(max: number, waitMs: number = LIMITS.lockWaitMs): OpenSlots {
  const holders = new Set<SlotHolder>();
  let queue: Promise<void> = Promise.resolve();
  let waiting = 0;

  async function closeIdle(): Promise<boolean> {
    await nextTurn(); // a caller that was just handed a database uses it before this continues
    let closed = 0;
    for (const holder of [...holders].sort((a, b) => a.lastUse - b.lastUse)) {
      if (closed >= Math.max(1, max * BATCH_SHARE)) break;
      if (holder.closeIfIdle()) closed++;
    }
    if (closed > 0) await releaseClosedConnections();
    return closed > 0;
  }

  async function makeRoom(isExpired: () => boolean): Promise<void> {
    while (holders.size >= max && !isExpired()) if (!(await closeIdle())) await sleep(RETRY_MS);
  }

  return {
    take(holder) {
      if (holders.size < max && waiting === 0) {
        holders.add(holder);
        return Promise.resolve();
      }
      let expired = false;
      waiting++;
      queue = queue
        .then(() => makeRoom(() => expired))
        .then(() => {
          if (!expired) holders.add(holder);
        })
        .finally(() => waiting--);
      const turn = queue;
      return new Promise((resolve, reject) => {
        // Each waits as long as its own call may: a holder in front that may wait longer must not turn its wait into a bare timeout.
        const timer = setTimeout(() => {
          expired = true;
          reject(allInUse(max));
        }, waitLimitMs(waitMs));
        turn.then(resolve, reject).finally(() => clearTimeout(timer));
      });
    },
    free(holder) {
      holders.delete(holder);
    },
  };
}

function allInUse(max: number): CairnError {
  return new CairnError(
    "unavailable",
    `All ${max} databases that may be open at once are in use. Try again, or allow more open files with: ulimit -n`,
    { retryAfterMs: 1_000, details: { max } },
  );
}

/** Keeps memory in bounds where descriptors are plentiful: each open database may cache several megabytes. */
const DATABASES_MAX = 100;

let shared: OpenSlots | undefined;

/** Returns the slots of this process, which all its storages share. */
export function processSlots(): OpenSlots {
  shared ??= openSlots(Math.min(DATABASES_MAX, openFilesBudget().databases));
  return shared;
}

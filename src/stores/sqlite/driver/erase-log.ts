import { setTimeout as sleep } from "node:timers/promises";

/** Empties the write-ahead log after a deletion: older versions of the changed pages, with the deleted text, are still in it. */
export interface LogEraser {
  /**
   * Resolves once the log is empty. While readers need the log it resolves after a second, and the work continues in the background;
   * until that succeeds, further calls do not wait again, so that a long deletion in batches is not held up by each of them.
   */
  erase(): Promise<void>;
  /** Empties the log within about a second, once for all calls until then: for replaced text, which changes more often than text is deleted. */
  eraseLater(): void;
  close(): void;
}

/** Milliseconds before each attempt that the caller waits for. The first delay lets deletions of the same turn share one attempt. */
const CALLER_DELAYS_MS = [0, 10, 40, 150, 300, 500];
/** Milliseconds between attempts in the background, and how many of them: ten minutes. Closing the database tries once more. */
const BACKGROUND_DELAY_MS = 1_000;
const BACKGROUND_ATTEMPTS = 600;

/** `truncate` copies the log into the database and cuts it to zero bytes; it returns false while others use the log. */
export function logEraser(truncate: () => boolean): LogEraser {
  let closed = false;
  let attempts: Promise<void> | undefined;
  let heldByReaders = false;
  let background: NodeJS.Timeout | undefined;

  async function attempt(): Promise<void> {
    for (const delayMs of heldByReaders ? CALLER_DELAYS_MS.slice(0, 1) : CALLER_DELAYS_MS) {
      await sleep(delayMs);
      heldByReaders = !closed && !truncate();
      if (!heldByReaders) return;
    }
    continueInBackground(BACKGROUND_ATTEMPTS);
  }

  function continueInBackground(left: number): void {
    clearTimeout(background);
    background = undefined;
    if (left === 0) return;
    background = setTimeout(() => {
      background = undefined;
      heldByReaders = !closed && !truncate();
      if (heldByReaders) continueInBackground(left - 1);
    }, BACKGROUND_DELAY_MS).unref();
  }

  return {
    eraseLater() {
      if (!background) continueInBackground(BACKGROUND_ATTEMPTS);
    },
    erase() {
      attempts ??= attempt().finally(() => {
        attempts = undefined;
      });
      return attempts;
    },
    close() {
      closed = true;
      clearTimeout(background);
    },
  };
}

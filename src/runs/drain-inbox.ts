import { setTimeout as sleep } from "node:timers/promises";
import { retryDelayMs } from "../scheduling/retry.ts";
import type { WorkerEvent, WorkerInbox } from "./worker-options.ts";

interface DrainOptions {
  readonly pollMs: number;
  /** Ends the loop after the current pass. */
  readonly stop: AbortSignal;
  /** Aborts the current pass. */
  readonly now: AbortSignal;
  readonly emit: (event: WorkerEvent) => void;
}

/** A loop over the pending messages of one inbox. */
export interface Drain {
  readonly ended: Promise<void>;
  /** Resolves when a pass has found no message that it could process. */
  idle(): Promise<void>;
}

/** Delays after a pass with failed messages, so that a message has time to succeed before its attempts are used up. */
const FAILURE_BACKOFF = { firstMs: 1_000, maxMs: 60_000 };

/** Processes the pending messages of an inbox again and again. A failed message is tried again after a growing delay. */
export function drainInbox(inbox: WorkerInbox, { pollMs, stop, now, emit }: DrainOptions): Drain {
  let waitsForIdle: (() => void)[] = [];

  async function drain(): Promise<void> {
    for (let failures = 0; !stop.aborted; ) {
      let waitMs = pollMs * (0.5 + Math.random());
      try {
        const { done, failed, dead } = await inbox.work({ signal: now });
        if (done + failed + dead > 0) emit({ type: "drained", inbox: inbox.name, done, failed, dead });
        failures = failed > 0 ? failures + 1 : 0;
        if (failed > 0) waitMs = retryDelayMs(FAILURE_BACKOFF, failures);
        if (done === 0) {
          for (const resolve of waitsForIdle) resolve();
          waitsForIdle = [];
        }
      } catch (error) {
        if (!now.aborted) emit({ type: "problem", error });
        waitMs = retryDelayMs(FAILURE_BACKOFF, ++failures);
      }
      await sleep(waitMs, undefined, { signal: stop }).catch(() => {});
    }
    for (const resolve of waitsForIdle) resolve();
  }

  return {
    ended: drain(),
    idle: () => (stop.aborted ? Promise.resolve() : new Promise<void>((resolve) => waitsForIdle.push(resolve))),
  };
}

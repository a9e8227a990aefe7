import { CairnError } from "../../model/errors.ts";

/** Circuit breaker: stops calls to a provider that keeps failing, so that saves do not wait for it. After a pause one call tries again. */
export interface Breaker {
  /** Raises `unavailable` while the breaker is open. */
  assertClosed(name: string): void;
  succeeded(): void;
  failed(): void;
}

export interface BreakerOptions {
  readonly failures?: number;
  readonly pauseMs?: number;
  readonly now?: () => number;
}

export function breaker({ failures = 5, pauseMs = 30_000, now = Date.now }: BreakerOptions = {}): Breaker {
  let inARow = 0;
  let openUntil = 0;
  return {
    assertClosed(name) {
      const waitMs = openUntil - now();
      if (waitMs <= 0) {
        // The next call is a trial; further calls fail until it has ended.
        if (openUntil > 0) openUntil = now() + pauseMs;
        return;
      }
      throw new CairnError("unavailable", `${name} failed ${inARow} times in a row and is not called for ${Math.ceil(waitMs / 1_000)} s.`, {
        retryAfterMs: waitMs,
      });
    },
    succeeded() {
      inARow = 0;
      openUntil = 0;
    },
    failed() {
      if (++inARow >= failures) openUntil = now() + pauseMs;
    },
  };
}

import { CairnError } from "../../model/errors.ts";

/** Stops asking a provider that keeps failing, so that saves do not wait for it one by one. After a while one call may try again. */
export interface Breaker {
  /** Raises `unavailable` at once while the provider is taken to be down. */
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
        // The next call is a trial: others are still turned away until it has answered.
        if (openUntil > 0) openUntil = now() + pauseMs;
        return;
      }
      throw new CairnError("unavailable", `${name} failed ${inARow} times in a row and is left alone for ${Math.ceil(waitMs / 1_000)} s.`, {
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

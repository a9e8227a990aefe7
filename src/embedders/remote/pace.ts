import { setTimeout as sleepFor } from "node:timers/promises";

/** Spaces calls to respect a provider's rate limit; callers wait in order. */
export interface Pace {
  turn(signal?: AbortSignal): Promise<void>;
}

export interface PaceOptions {
  readonly perMinute: number;
  /** Calls allowed at once after an idle period. */
  readonly burst?: number;
  readonly now?: () => number;
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

export function pace({ perMinute, burst = Math.max(1, Math.floor(perMinute / 60)), now = Date.now, sleep }: PaceOptions): Pace {
  const spacingMs = 60_000 / perMinute;
  const wait = sleep ?? (async (ms, signal) => void (await sleepFor(ms, undefined, signal ? { signal } : {})));
  let next = Number.NEGATIVE_INFINITY;
  return {
    async turn(signal) {
      const at = Math.max(now() - burst * spacingMs, next) + spacingMs;
      next = at;
      const waitMs = at - now();
      if (waitMs > 0) await wait(waitMs, signal);
    },
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../model/errors.ts";

/** Delays between attempts, in milliseconds: `firstMs`, multiplied by `factor` (2) after each attempt, up to `maxMs`. */
export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
  readonly factor?: number;
}

/** Time and chance, so that tests need not wait. */
export interface RetryClock {
  nowMs(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Returns a number from 0 to 1. */
  random(): number;
}

export const SYSTEM_CLOCK: RetryClock = {
  nowMs: () => performance.now(),
  sleep: async (ms, signal) => void (await sleep(ms, undefined, signal ? { signal } : {})),
  random: Math.random,
};

export interface RetryOptions {
  readonly backoff: Backoff;
  /** Returns whether waiting can help; any other error ends the retries. */
  readonly isRetryable: (error: unknown) => boolean;
  /** Limits the number of attempts, the first one included. */
  readonly attempts?: number;
  /** Starts no further attempt after this many milliseconds. */
  readonly limitMs?: number;
  readonly signal?: AbortSignal | undefined;
  readonly clock?: RetryClock;
}

/** Runs `work` until it succeeds, fails for good or reaches a limit; then raises the last error. An abort raises its reason. */
export async function retry<T>(
  work: (attempt: number) => Promise<T>,
  { backoff, isRetryable, attempts = Number.POSITIVE_INFINITY, limitMs, signal, clock = SYSTEM_CLOCK }: RetryOptions,
): Promise<T> {
  const endsAt = clock.nowMs() + (limitMs ?? Number.POSITIVE_INFINITY);
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    try {
      return await work(attempt);
    } catch (error) {
      signal?.throwIfAborted();
      if (attempt >= attempts || clock.nowMs() >= endsAt || !isRetryable(error)) throw error;
      await pause(retryDelayMs(backoff, attempt, error, clock.random), signal, clock);
    }
  }
}

/**
 * Returns the delay after the given failed attempt, counted from 1. The upper half of it is random, so that processes that failed
 * together do not repeat together. An error with `retryAfterMs` lengthens it, up to `maxMs`.
 */
export function retryDelayMs(backoff: Backoff, attempt: number, error?: unknown, random: () => number = Math.random): number {
  const { firstMs, maxMs, factor = 2 } = backoff;
  const fullMs = Math.min(maxMs, firstMs * factor ** (attempt - 1));
  const requestedMs = error instanceof CairnError ? (error.retryAfterMs ?? 0) : 0;
  return Math.max((fullMs * (1 + random())) / 2, Math.min(requestedMs, maxMs));
}

export interface PollOptions {
  /** Milliseconds between attempts, on average: each delay is half to 1.5 times as long. */
  readonly everyMs: number;
  readonly limitMs: number;
  readonly clock?: RetryClock;
}

/** Repeats `attempt` until it returns a value. Returns undefined when the time is up; there is always one attempt. */
export async function poll<T>(
  attempt: () => T | undefined | Promise<T | undefined>,
  { everyMs, limitMs, clock = SYSTEM_CLOCK }: PollOptions,
): Promise<T | undefined> {
  const endsAt = clock.nowMs() + limitMs;
  for (;;) {
    const result = await attempt();
    if (result !== undefined || clock.nowMs() >= endsAt) return result;
    await clock.sleep(pollDelayMs(everyMs, clock.random));
  }
}

/** Returns a random delay of half to 1.5 times `everyMs`, so that processes that wait for the same thing do not look at the same moment. */
export function pollDelayMs(everyMs: number, random: () => number = Math.random): number {
  return everyMs * (0.5 + random());
}

async function pause(ms: number, signal: AbortSignal | undefined, clock: RetryClock): Promise<void> {
  try {
    await clock.sleep(ms, signal);
  } catch (error) {
    signal?.throwIfAborted(); // the reason of the abort, not the timer's own error
    throw error;
  }
}

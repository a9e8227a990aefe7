import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../model/errors.ts";

/** A token bucket: a steady rate and a burst. */
export interface RateLimit {
  /** How many requests a caller may make per second, over time. */
  readonly perSecond: number;
  /** How many it may make at once after a pause. */
  readonly burst: number;
}

export const DEFAULT_RATE_LIMIT: RateLimit = { perSecond: 50, burst: 100 };

/** Callers that have a bucket. The one that was not seen for longest goes first; its bucket has usually filled up by then. */
const MAX_BUCKETS = 10_000;

/** A token bucket: it holds up to `burst` tokens and gains `perSecond`. */
function tokenBucket({ perSecond, burst }: RateLimit, nowMs: () => number) {
  let tokens = burst;
  let atMs = nowMs();
  return {
    /** Returns the milliseconds until there is a token: 0 if there is one. */
    waitMs(): number {
      const now = nowMs();
      tokens = Math.min(burst, tokens + (Math.max(0, now - atMs) / 1000) * perSecond);
      atMs = now;
      return tokens >= 1 ? 0 : ((1 - tokens) / perSecond) * 1000;
    },
    /** Takes a token, also one that is still to come: later callers then wait longer. */
    take(): void {
      tokens -= 1;
    },
  };
}

const monotonicMs = () => performance.now();

/** Limits calls per caller. The returned function takes a token of the caller, or raises `rate_limited` with the time until there is one. */
export function rateLimiter(limit: RateLimit, nowMs: () => number = monotonicMs): (caller: string) => void {
  const buckets = new Map<string, ReturnType<typeof tokenBucket>>();
  return (caller) => {
    const bucket = buckets.get(caller) ?? tokenBucket(limit, nowMs);
    buckets.delete(caller); // put back at the end: the map's order is by last use
    buckets.set(caller, bucket);
    if (buckets.size > MAX_BUCKETS) buckets.delete(buckets.keys().next().value!);
    const retryAfterMs = bucket.waitMs();
    if (retryAfterMs > 0)
      throw new CairnError("rate_limited", `More than ${limit.perSecond} requests per second. Wait as long as Retry-After says.`, {
        retryAfterMs,
      });
    bucket.take();
  };
}

/** Paces the calls of one caller. The returned function waits until the call may be made; calls are let through in turn. */
export function callPacer(perSecond: number): (signal: AbortSignal) => Promise<void> {
  const bucket = tokenBucket({ perSecond, burst: 1 }, monotonicMs);
  return async (signal) => {
    const waitMs = bucket.waitMs();
    bucket.take();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal });
  };
}

import { CairnError } from "../model/errors.ts";

/** A token bucket: a steady rate and a burst. */
export interface RateLimit {
  /** How many requests a caller may make per second, over time. */
  readonly perSecond: number;
  /** How many it may make at once after a pause. */
  readonly burst: number;
}

export const DEFAULT_RATE_LIMIT: RateLimit = { perSecond: 50, burst: 100 };

/** So many callers are remembered; the ones not seen for longest are forgotten first, and their bucket has usually filled up by then. */
const MAX_BUCKETS = 10_000;

interface Bucket {
  tokens: number;
  atMs: number;
}

/** Token buckets, one per caller. The returned function takes a token, or raises `rate_limited` with the time until there is one. */
export function rateLimiter({ perSecond, burst }: RateLimit, nowMs: () => number = () => performance.now()): (caller: string) => void {
  const buckets = new Map<string, Bucket>();
  return (caller) => {
    const now = nowMs();
    const bucket = buckets.get(caller) ?? { tokens: burst, atMs: now };
    bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.atMs) / 1000) * perSecond);
    bucket.atMs = now;
    buckets.delete(caller); // put back at the end: the map's order is by last use
    buckets.set(caller, bucket);
    if (buckets.size > MAX_BUCKETS) buckets.delete(buckets.keys().next().value!);
    if (bucket.tokens < 1)
      throw new CairnError("rate_limited", `More than ${perSecond} requests per second. Wait as long as Retry-After says.`, {
        retryAfterMs: ((1 - bucket.tokens) / perSecond) * 1000,
      });
    bucket.tokens -= 1;
  };
}

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
export function tokenBucket({ perSecond, burst }: RateLimit, nowMs: () => number = monotonicMs) {
  let tokens = burst;
  let atMs = nowMs();
  const refill = () => {
    const now = nowMs();
    tokens = Math.min(burst, tokens + (Math.max(0, now - atMs) / 1000) * perSecond);
    atMs = now;
  };
  return {
    /** Returns the number of whole tokens. */
    count(): number {
      refill();
      return Math.floor(tokens);
    },
    /** Returns the milliseconds until there is a token: 0 if there is one. */
    waitMs(): number {
      refill();
      return tokens >= 1 ? 0 : ((1 - tokens) / perSecond) * 1000;
    },
    /** Takes a token, also one that is still to come: later callers then wait longer. */
    take(): void {
      tokens -= 1;
    },
    /** Takes the tokens of calls that were made elsewhere, at most a burst of tokens that are still to come. */
    debit(count: number): void {
      tokens = Math.max(tokens - count, Math.min(tokens, -burst));
    },
  };
}

const monotonicMs = () => performance.now();

/**
 * Exchanges usage with the other servers of a team: adds the calls that callers made here, and returns the calls that the same callers
 * have made elsewhere since the last exchange.
 */
export type ExchangeUsage = (taken: ReadonlyMap<string, number>) => Promise<ReadonlyMap<string, number>>;

/** Milliseconds between two exchanges. Until the next one, a caller has a bucket on each server. */
const EXCHANGE_EVERY_MS = 1_000;

/**
 * Limits calls per caller. The returned function takes a token of the caller, or raises `rate_limited` with the time until there is one.
 * With `exchange`, calls on other servers take tokens as well, up to a second later. An exchange that fails is left out.
 */
export function rateLimiter(limit: RateLimit, nowMs: () => number = monotonicMs, exchange?: ExchangeUsage): (caller: string) => void {
  const buckets = new Map<string, ReturnType<typeof tokenBucket>>();
  let taken = new Map<string, number>();
  let exchangedAt = nowMs();
  let exchanging = false;

  function exchangeUsage(via: ExchangeUsage): void {
    if (exchanging || nowMs() - exchangedAt < EXCHANGE_EVERY_MS) return;
    exchanging = true;
    exchangedAt = nowMs();
    const since = taken;
    taken = new Map();
    via(since)
      .then((elsewhere) => {
        for (const [caller, count] of elsewhere) {
          const bucket = buckets.get(caller);
          bucket?.waitMs(); // gains what is due before the burst is full again
          bucket?.debit(count);
        }
      })
      .catch(() => {})
      .finally(() => {
        exchanging = false;
      });
  }

  return (caller) => {
    const bucket = buckets.get(caller) ?? tokenBucket(limit, nowMs);
    buckets.delete(caller); // put back at the end: the map's order is by last use
    buckets.set(caller, bucket);
    if (buckets.size > MAX_BUCKETS) buckets.delete(buckets.keys().next().value!);
    if (exchange) {
      taken.set(caller, taken.get(caller) ?? 0); // also a caller that is refused is active
      exchangeUsage(exchange);
    }
    const retryAfterMs = bucket.waitMs();
    if (retryAfterMs > 0)
      throw new CairnError("rate_limited", `More than ${limit.perSecond} requests per second. Wait as long as Retry-After says.`, {
        retryAfterMs,
      });
    bucket.take();
    if (exchange) taken.set(caller, (taken.get(caller) ?? 0) + 1);
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

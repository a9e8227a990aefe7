import { describe, expect, it } from "vitest";
import { CairnError } from "../../src/model/errors.ts";
import { poll, type RetryClock, retry, retryDelayMs } from "../../src/scheduling/retry.ts";

/** A clock that records delays and advances at once. */
function fakeClock(random = () => 1): RetryClock & { readonly delays: number[] } {
  const delays: number[] = [];
  let now = 0;
  return {
    delays,
    nowMs: () => now,
    random,
    sleep: async (ms) => {
      delays.push(ms);
      now += ms;
    },
  };
}

const BACKOFF = { firstMs: 100, maxMs: 500 };
const busy = () => new CairnError("unavailable", "busy");

function failing(times: number, error: () => unknown = busy) {
  let calls = 0;
  return {
    calls: () => calls,
    work: async () => {
      if (++calls <= times) throw error();
      return "done";
    },
  };
}

describe("retry", () => {
  it("doubles the delay up to its maximum until the work succeeds", async () => {
    const clock = fakeClock();
    const { work } = failing(5);
    expect(await retry(work, { backoff: BACKOFF, isRetryable: () => true, clock })).toBe("done");
    expect(clock.delays).toEqual([100, 200, 400, 500, 500]);
  });

  it("raises the last error after the given number of attempts", async () => {
    const { work, calls } = failing(9);
    await expect(retry(work, { backoff: BACKOFF, isRetryable: () => true, attempts: 3, clock: fakeClock() })).rejects.toThrow("busy");
    expect(calls()).toBe(3);
  });

  it("starts no attempt after its time limit", async () => {
    const clock = fakeClock();
    const { work, calls } = failing(99);
    await expect(retry(work, { backoff: BACKOFF, isRetryable: () => true, limitMs: 250, clock })).rejects.toThrow("busy");
    expect(calls()).toBe(3); // at 0, 100 and 300 ms
  });

  it("does not repeat what fails for another reason", async () => {
    const { work, calls } = failing(9, () => new Error("wrong"));
    await expect(retry(work, { backoff: BACKOFF, isRetryable: () => false, clock: fakeClock() })).rejects.toThrow("wrong");
    expect(calls()).toBe(1);
  });

  it("raises the reason of an abort, also during a delay", async () => {
    const stop = new AbortController();
    const clock: RetryClock = {
      ...fakeClock(),
      sleep: async () => {
        stop.abort(new Error("cancelled"));
        throw new Error("timer aborted");
      },
    };
    const { work, calls } = failing(9);
    await expect(retry(work, { backoff: BACKOFF, isRetryable: () => true, signal: stop.signal, clock })).rejects.toThrow("cancelled");
    await expect(retry(work, { backoff: BACKOFF, isRetryable: () => true, signal: stop.signal, clock })).rejects.toThrow("cancelled");
    expect(calls()).toBe(1);
  });
});

describe("retryDelayMs", () => {
  it("spreads delays over the upper half", () => {
    expect(retryDelayMs(BACKOFF, 2, undefined, () => 0)).toBe(100);
    expect(retryDelayMs(BACKOFF, 2, undefined, () => 1)).toBe(200);
    expect(retryDelayMs({ firstMs: 10, maxMs: 1_000, factor: 3 }, 3, undefined, () => 1)).toBe(90);
  });

  it("waits as long as the error requests, up to the maximum", () => {
    const asking = (retryAfterMs: number) => new CairnError("rate_limited", "slow down", { retryAfterMs });
    expect(retryDelayMs(BACKOFF, 1, asking(300), () => 1)).toBe(300);
    expect(retryDelayMs(BACKOFF, 1, asking(10), () => 1)).toBe(100);
    expect(retryDelayMs(BACKOFF, 1, asking(60_000), () => 1)).toBe(500);
  });
});

describe("poll", () => {
  it("returns the first value", async () => {
    const clock = fakeClock(() => 0.5);
    let looks = 0;
    expect(await poll(() => (++looks === 3 ? looks : undefined), { everyMs: 20, limitMs: 1_000, clock })).toBe(3);
    expect(clock.delays).toEqual([20, 20]);
  });

  it("returns undefined when the time is up, after at least one attempt", async () => {
    let looks = 0;
    const look = () => {
      looks++;
      return undefined;
    };
    expect(await poll(look, { everyMs: 20, limitMs: 50, clock: fakeClock(() => 0.5) })).toBeUndefined();
    expect(looks).toBe(4); // at 0, 20, 40 and 60 ms
    expect(await poll(look, { everyMs: 20, limitMs: 0, clock: fakeClock() })).toBeUndefined();
    expect(looks).toBe(5);
  });
});

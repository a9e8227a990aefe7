import { describe, expect, it } from "vitest";
import { cachedEmbedder, costMeter, limitedEmbedder } from "../../src/embedders/pipeline.ts";
import type { Embedder } from "../../src/ports/embedder.ts";
import { testEmbedder } from "../support/embedders.ts";

describe("the cache", () => {
  it("embeds a text once, within and across calls, and gives copies", async () => {
    const inner = testEmbedder();
    const cached = cachedEmbedder(inner);
    const [a, b] = await cached.embed(["x", "x", "y"]);
    a![0] = 99;
    expect(b![0]).not.toBe(99);
    expect((await cached.embed(["x"]))[0]).toEqual(b);
    expect(inner.calls).toBe(2);
    expect(cached.stats()).toEqual({ hits: 2, misses: 2, entries: 2 });
  });

  it("shares one call between equal requests at the same moment", async () => {
    const inner = testEmbedder();
    const cached = cachedEmbedder(inner);
    await Promise.all(Array.from({ length: 20 }, () => cached.embed(["same"])));
    expect(inner.calls).toBe(1);
  });

  it("forgets after its time, and the least recently used first when full", async () => {
    let time = 0;
    const inner = testEmbedder();
    const cached = cachedEmbedder(inner, { ttlMs: 100, entries: 2, now: () => time });
    await cached.embed(["a"]);
    await cached.embed(["b"]);
    await cached.embed(["a"]);
    await cached.embed(["c"]); // b goes
    expect(inner.calls).toBe(3);
    await cached.embed(["a"]);
    expect(inner.calls).toBe(3);
    await cached.embed(["b"]);
    expect(inner.calls).toBe(4);
    time = 100;
    await cached.embed(["b"]);
    expect(inner.calls).toBe(5);
  });

  it("keeps no failure, and keeps questions apart from texts", async () => {
    const inner = testEmbedder();
    const cached = cachedEmbedder(inner);
    inner.mood = "down";
    await expect(cached.embed(["x"])).rejects.toThrow(/down/);
    inner.mood = "well";
    await cached.embed(["x"]);
    await cached.embed(["x"], { purpose: "query" });
    expect(inner.calls).toBe(2);
  });

  it("does not let one caller's abort cost another its vector", async () => {
    const inner = testEmbedder();
    const cached = cachedEmbedder(inner);
    inner.mood = "hanging";
    const abort = new AbortController();
    const first = cached.embed(["x"], { signal: abort.signal });
    const second = cached.embed(["x"]);
    inner.mood = "well";
    abort.abort();
    await expect(first).rejects.toMatchObject({ name: "AbortError" });
    await expect(second).resolves.toHaveLength(1);
  });
});

it("meters what goes to the model and what the cache saved", async () => {
  const meter = costMeter(0.02);
  const cached = cachedEmbedder(meter.metered(testEmbedder()), { onUse: ({ hits }) => meter.saved(hits) });
  await cached.embed(["some text of a few words"]);
  await cached.embed(["some text of a few words"]);
  const { texts, tokens, dollars, savedTokens, savedDollars } = meter.read();
  expect({ texts, savedTokens }).toEqual({ texts: 1, savedTokens: tokens });
  expect(dollars).toBeCloseTo((tokens * 0.02) / 1e6, 12);
  expect(savedDollars).toBe(dollars);
});

describe("the concurrency limit", () => {
  function gated(): { embedder: Embedder; open: (() => void)[]; most: () => number } {
    const open: (() => void)[] = [];
    let now = 0;
    let most = 0;
    return {
      open,
      most: () => most,
      embedder: {
        ...testEmbedder(),
        async embed(texts) {
          most = Math.max(most, ++now);
          await new Promise<void>((resolve) => open.push(resolve));
          now--;
          return texts.map(() => new Float32Array(1));
        },
      },
    };
  }

  it("limits concurrency, in order, and refuses what would wait too long", async () => {
    const { embedder, open, most } = gated();
    const limited = limitedEmbedder(embedder, { atOnce: 2, waiting: 2 });
    const calls = Array.from({ length: 4 }, () => limited.embed(["x"]));
    await expect(limited.embed(["x"])).rejects.toMatchObject({ code: "unavailable" });
    while (open.length > 0) {
      open.shift()!();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(calls);
    expect(most()).toBe(2);
  });

  it("gives up its place in the queue when aborted", async () => {
    const { embedder, open } = gated();
    const limited = limitedEmbedder(embedder, { atOnce: 1 });
    const first = limited.embed(["x"]);
    const abort = new AbortController();
    const second = limited.embed(["x"], { signal: abort.signal });
    abort.abort();
    await expect(second).rejects.toMatchObject({ name: "AbortError" });
    const third = limited.embed(["x"]);
    open.shift()!();
    await first;
    await new Promise((resolve) => setImmediate(resolve));
    open.shift()!();
    await expect(third).resolves.toHaveLength(1);
  });
});

import { describe, expect, it } from "vitest";
import { rateLimiter } from "../../src/scheduling/rate-limit.ts";
import { api, REMOTE } from "./api.ts";

describe("rate limits", () => {
  it("allow a burst, then perSecond calls, and report how long to wait", async () => {
    let clock = 0;
    const take = rateLimiter({ perSecond: 2, burst: 3 }, () => clock);
    const attempt = () => {
      try {
        take("a");
        return "ok";
      } catch (error) {
        return (error as { retryAfterMs: number }).retryAfterMs;
      }
    };
    expect([attempt(), attempt(), attempt(), attempt()]).toEqual(["ok", "ok", "ok", 500]);
    clock += 400;
    expect(attempt()).toBeCloseTo(100);
    clock += 100;
    expect([attempt(), attempt()]).toEqual(["ok", 500]);
    clock += 60_000;
    expect([attempt(), attempt(), attempt(), attempt()]).toEqual(["ok", "ok", "ok", 500]);
  });

  it("count what the caller did on other servers, once per second", async () => {
    let clock = 0;
    const exchanged: Record<string, number>[] = [];
    let elsewhere = new Map([["a", 2]]);
    const take = rateLimiter(
      { perSecond: 1, burst: 4 },
      () => clock,
      async (taken) => {
        exchanged.push(Object.fromEntries(taken));
        return elsewhere;
      },
    );
    take("a");
    take("b");
    clock = 1_000; // a has its burst again
    take("a");
    await new Promise(setImmediate);
    expect(exchanged).toEqual([{ a: 1, b: 1 }]);
    take("a");
    expect(() => take("a")).toThrow(/requests per second/); // 4 - 1 - 2 - 1
    take("b");
    clock = 1_999;
    take("b");
    expect(exchanged).toHaveLength(1);
    elsewhere = new Map([["a", 1_000_000]]);
    clock = 2_000;
    expect(() => take("b")).not.toThrow();
    await new Promise(setImmediate);
    clock += 4_999; // a debt is at most one burst
    expect(() => take("a")).toThrow(/requests per second/);
    elsewhere = new Map();
    clock += 2;
    expect(() => take("a")).not.toThrow();
  });

  it("hold per server while the exchange fails", async () => {
    let clock = 0;
    const take = rateLimiter(
      { perSecond: 1, burst: 1 },
      () => clock,
      () => Promise.reject(new Error("The database is down.")),
    );
    for (; clock < 5_000; clock += 1_000) {
      take("a");
      expect(() => take("a")).toThrow(/requests per second/);
      await new Promise(setImmediate);
    }
  });

  it("do not mind a clock that goes back", () => {
    let clock = 10_000;
    const take = rateLimiter({ perSecond: 1, burst: 1 }, () => clock);
    take("a");
    clock = 0;
    expect(() => take("a")).toThrow(/requests per second/);
  });

  it("remember a bounded number of callers, the latest", () => {
    const take = rateLimiter({ perSecond: 1, burst: 1 }, () => 0);
    take("first");
    take("second");
    for (let i = 0; i < 9_998; i++) take(`other ${i}`);
    expect(() => take("first")).toThrow(); // still known, and now the latest
    take("one more"); // the longest unseen, "second", is forgotten for it
    expect(() => take("first")).toThrow();
    expect(() => take("second")).not.toThrow();
  });

  it("answer 429 with Retry-After, per key and not for others", async () => {
    let clock = 0;
    const { call, cairn } = await api({ rateLimit: { perSecond: 0.5, burst: 2 }, nowMs: () => clock });
    const [a, b] = await Promise.all(["a", "b"].map((label) => cairn.keys.create({ label, access: "read", projects: "all" })));
    const as = (key: string) =>
      call("POST", "/v1/checkpoint/list", { project_path: "/p" }, { headers: { authorization: `Bearer ${key}` }, connection: REMOTE });
    expect([(await as(a!.key)).status, (await as(a!.key)).status]).toEqual([200, 200]);
    const rejected = await as(a!.key);
    expect([rejected.status, rejected.body.error.name, rejected.headers.get("retry-after")]).toEqual([429, "RATE_LIMITED", "2"]);
    expect((await as(b!.key)).status).toBe(200);
    clock += 2_000;
    expect((await as(a!.key)).status).toBe(200);
  });

  it("slow down guessing of keys, per address", async () => {
    const { call } = await api({ rateLimit: { perSecond: 1, burst: 3 }, nowMs: () => 0 });
    const guess = async (remoteAddress: string) =>
      (await call("GET", "/v1/key/list", undefined, { headers: { "x-api-key": "guess" }, connection: { remoteAddress } })).status;
    const tries = [];
    for (let i = 0; i < 4; i++) tries.push(await guess("203.0.113.7"));
    expect(tries).toEqual([401, 401, 401, 429]);
    expect(await guess("203.0.113.8")).toBe(401);
  });

  it("leave the local token alone, and can be switched off", async () => {
    const { call, cairn } = await api({ rateLimit: { perSecond: 1, burst: 1 }, nowMs: () => 0 });
    for (let i = 0; i < 5; i++) expect((await call("POST", "/v1/checkpoint/list", { project_path: "/p" })).status).toBe(200);
    const { key } = await cairn.keys.create({ label: "a", access: "read", projects: "all" });
    const off = await api({ cairn, rateLimit: false });
    for (let i = 0; i < 200; i++) {
      const headers = { "x-api-key": key };
      expect((await off.call("POST", "/v1/checkpoint/list", { project_path: "/p" }, { headers, connection: REMOTE })).status).toBe(200);
    }
  });
});

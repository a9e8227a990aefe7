import { describe, expect, it } from "vitest";
import { clientAddress } from "../../src/http/client-address.ts";
import { addressGroup, isNetwork } from "../../src/text/networks.ts";
import { api, LOCAL, REMOTE } from "../http/api.ts";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";

const BURST = 5;
const limited = { rateLimit: { perSecond: 1, burst: BURST }, nowMs: () => 0 };

type Request = readonly [method: string, path: string, headers: Record<string, string>, status: number];
const REQUESTS: readonly Request[] = [
  ["GET", "/nothing/here", {}, 404],
  ["GET", "/v1/checkpoint/save", {}, 405],
  ["PUT", "/health", {}, 405],
  ["OPTIONS", "/v1/checkpoint/save", {}, 204],
  ["OPTIONS", "/nothing", {}, 404],
  ["GET", "/", {}, 200],
  ["GET", "/docs", {}, 200],
  ["HEAD", "/openapi.json", {}, 200],
  ["GET", "/health", {}, 200],
  ["GET", "/health/live", {}, 200],
  ["GET", "/health/ready", {}, 200],
  ["GET", "/metrics", {}, 401],
  ["POST", "/mcp", {}, 401],
  ["POST", "/v1/checkpoint/list", {}, 401],
  ["GET", "/v1/key/list", { authorization: "Bearer wrong" }, 401],
  ["GET", "/v1/key/list", { authorization: "Basic d3Jvbmc=" }, 401],
  ["GET", "/nothing/here", { "x-api-key": "wrong" }, 404],
];

describe("a flood of requests without a valid credential", () => {
  it.each(REQUESTS)("to %s %s (%o, %i) is limited by address, on loopback too", async (method, path, headers, status) => {
    const { call } = await api({ ...limited, metrics: async () => "", mount: { "/mcp": () => Response.json({}) } });
    for (const connection of [LOCAL, REMOTE]) {
      const statuses = [];
      for (let n = 0; n <= BURST; n++) statuses.push((await call(method, path, undefined, { headers, connection })).status);
      expect(statuses).toEqual([...new Array(BURST).fill(status), 429]);
    }
  });

  it("does not use up the limit of keys, of the local token or of health probes from the same address", async () => {
    const { call, cairn } = await api(limited);
    const { key } = await cairn.keys.create({ label: "k", access: "read", projects: "all" });
    for (let n = 0; n < 3 * BURST; n++) await call("GET", "/nothing", undefined, { connection: LOCAL });
    expect((await call("GET", "/nothing", undefined, { connection: LOCAL })).status).toBe(429);
    expect((await call("GET", "/health", undefined, { connection: LOCAL })).status).toBe(200);
    for (const credential of [key, TEST_TOKEN])
      expect(
        (await call("POST", "/v1/checkpoint/list", { project_path: "/p" }, { headers: bearer(credential), connection: LOCAL })).status,
      ).toBe(200);
  });

  it("is answered with 429 while the key file is damaged, and health still answers", async () => {
    const { cairn } = await api();
    const keys = { ...cairn.keys, verify: () => Promise.reject(new Error("damaged")) };
    const { call } = await api({ ...limited, cairn: { ...cairn, keys } });
    const statuses = [];
    for (let n = 0; n <= BURST; n++)
      statuses.push((await call("GET", "/v1/key/list", undefined, { headers: bearer("x"), connection: REMOTE })).status);
    expect(statuses).toEqual([...new Array(BURST).fill(503), 429]);
    expect((await call("GET", "/health", undefined, { headers: bearer("x"), connection: REMOTE })).status).toBe(200);
  });

  it("from many addresses of one IPv6 network is one caller", async () => {
    const { call } = await api(limited);
    const statuses = [];
    for (let n = 0; n <= BURST; n++)
      statuses.push((await call("GET", "/nothing", undefined, { connection: { remoteAddress: `2001:db8:1:2:${n}::${n}` } })).status);
    expect(statuses.at(-1)).toBe(429);
    expect((await call("GET", "/nothing", undefined, { connection: { remoteAddress: "2001:db8:1:3::1" } })).status).toBe(404);
  });
});

describe("a key", () => {
  it("is limited on every answer, errors included, wherever it calls from", async () => {
    const { call, cairn } = await api(limited);
    const { key } = await cairn.keys.create({ label: "k", access: "read", projects: "all" });
    const as = (connection: { remoteAddress: string }) => ({ headers: bearer(key), connection });
    const statuses = [];
    for (const path of ["/nothing", "/v1/key/list", "/docs", "/health", "/openapi.json", "/nothing"])
      statuses.push((await call("GET", path, undefined, as(statuses.length % 2 ? LOCAL : REMOTE))).status);
    expect(statuses).toEqual([404, 403, 200, 200, 200, 429]);
  });
});

describe("X-Forwarded-For", () => {
  const proxies = ["127.0.0.1", "10.0.0.0/8", "2001:db8:ffff::/48"];
  const addressOf = (forwarded: string | undefined, remoteAddress = "127.0.0.1", trusted = proxies) =>
    clientAddress(trusted)(new Headers(forwarded === undefined ? {} : { "x-forwarded-for": forwarded }), { remoteAddress });

  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["203.0.113.7, 10.1.2.3", "203.0.113.7"],
    ["1.1.1.1, 203.0.113.7, 10.1.2.3 ,10.9.9.9", "203.0.113.7"],
    ["203.0.113.7:4711", "203.0.113.7"],
    ["[2001:db8::7]:4711", "2001:db8::7"],
    ["2001:db8::7, 2001:db8:ffff::1", "2001:db8::7"],
    ["10.0.0.1, 10.0.0.2", "10.0.0.1"],
    ["203.0.113.7, nonsense", "127.0.0.1"],
    ["203.0.113.7, unknown, 10.0.0.2", "10.0.0.2"],
    ["", "127.0.0.1"],
    [undefined, "127.0.0.1"],
  ])("of a trusted proxy %j selects %s", (forwarded, expected) => {
    expect(addressOf(forwarded)).toBe(expected);
  });

  it("of an untrusted peer selects nothing, so that no caller gets a new limit or that of another caller", () => {
    expect(addressOf("198.51.100.1", "203.0.113.7")).toBe("203.0.113.7");
    expect(addressOf("198.51.100.1", "127.0.0.1", [])).toBe("127.0.0.1");
    expect(addressOf("198.51.100.1, 203.0.113.7")).toBe("203.0.113.7"); // the client's own header, then the proxy's entry
  });

  it("of any length is read from its end, and no further than 32 hops", () => {
    const hops = (count: number, hop: string) => new Array(count).fill(hop).join(",");
    expect(addressOf(`${hops(100_000, "198.51.100.1")}, 203.0.113.7`)).toBe("203.0.113.7");
    expect(addressOf(`198.51.100.1,${hops(40, "10.0.0.1")}`)).toBe("10.0.0.1");
    expect(addressOf(",".repeat(1_000_000))).toBe("127.0.0.1");
  });

  it("never grants access: a trusted proxy that names loopback gets 401", async () => {
    const { call } = await api({ trustedProxies: proxies });
    const answer = await call("GET", "/v1/key/list", undefined, { headers: { "x-forwarded-for": "127.0.0.1" }, connection: LOCAL });
    expect(answer.status).toBe(401);
  });

  it("gives each client behind a trusted proxy a limit of its own", async () => {
    const { call } = await api({ ...limited, trustedProxies: proxies });
    const from = async (client: string) =>
      (await call("GET", "/nothing", undefined, { headers: { "x-forwarded-for": client }, connection: LOCAL })).status;
    for (let n = 0; n < BURST; n++) await from("203.0.113.7");
    expect([await from("203.0.113.7"), await from(`198.51.100.${BURST}, 203.0.113.7`), await from("203.0.113.8")]).toEqual([429, 429, 404]);
  });
});

describe("networks", () => {
  it.each(["127.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32", "10.0.0.1/32", "0.0.0.0/1"])("%s is one", (text) => {
    expect(isNetwork(text)).toBe(true);
  });

  it.each([
    "",
    "localhost",
    "10.0.0.0/0",
    "::/0",
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "fe80::1%eth0",
    "10.0.0.0/8 ",
  ])("%j is none", (text) => {
    expect(isNetwork(text)).toBe(false);
  });

  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["::1", "0:0:0:0::/64"],
    ["2001:DB8:0001:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
    ["unknown", "unknown"],
  ])("%s counts as %s", (address, group) => {
    expect(addressGroup(address)).toBe(group);
  });
});

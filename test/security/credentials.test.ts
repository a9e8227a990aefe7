import { describe, expect, it } from "vitest";
import { routeOf } from "../../src/http/routes.ts";
import { CairnError } from "../../src/index.ts";
import { operations } from "../../src/operations/list.ts";
import { type Answer, api, LOCAL, REMOTE } from "../http/api.ts";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";

const project = "/home/me/project";
const SPOOFED: Record<string, string>[] = [
  {},
  { host: "localhost" },
  { host: "127.0.0.1:7483" },
  { host: "[::1]:7483", origin: "http://[::1]:7483" },
  { "x-forwarded-for": "127.0.0.1" },
  { "x-real-ip": "127.0.0.1", "x-forwarded-host": "localhost" },
  { forwarded: "for=127.0.0.1;host=localhost" },
  { via: "1.1 localhost" },
];

describe("a caller without a credential", () => {
  it("gets 401 from every operation, on loopback, with any header that looks local", async () => {
    const { call, cairn } = await api({
      rateLimit: false,
      metrics: async () => "up 1\n",
      trustedProxies: ["127.0.0.1"],
      mount: { "/mcp": () => Response.json({ reached: true }) },
    });
    const routes = operations.map(routeOf).map(({ method, path }): [string, string] => [method, path.replace(/\{\w+\}/g, "x")]);
    expect(routes.length).toBeGreaterThan(40);
    for (const connection of [LOCAL, { remoteAddress: "::1" }, { remoteAddress: "::ffff:127.0.0.1" }, REMOTE, {}])
      for (const [method, path] of [...routes, ["GET", "/metrics"], ["POST", "/mcp"], ["GET", "/mcp/x"]] as const)
        for (const headers of SPOOFED) {
          const answer = await call(method, path, method === "POST" ? "{}" : undefined, { headers, connection });
          expect([method, path, answer.status]).toEqual([method, path, 401]);
        }
    expect(await cairn.projects()).toEqual([]);
    expect(await cairn.keys.list()).toEqual([]);
  });

  it("reads the public documents and the health status, and nothing else", async () => {
    const { call } = await api();
    const anonymous = (path: string) => call("GET", path, undefined, { connection: LOCAL });
    for (const path of ["/", "/docs", "/openapi.json", "/health", "/health/live", "/health/ready"])
      expect([path, (await anonymous(path)).status]).toEqual([path, 200]);
    expect(Object.keys((await anonymous("/health")).body).sort()).toEqual(["live", "ready", "status", "uptime_seconds", "version"]);
  });

  it("gets an error that explains how to get a credential", async () => {
    const { call } = await api();
    const { body, headers } = await call("GET", "/v1/key/list", undefined, { connection: LOCAL });
    expect(body.error.message).toMatch(/no credential.*cairn token.*cairn key create/);
    expect(headers.get("www-authenticate")).toBe('Bearer realm="cairn"');
  });
});

describe("the local token", () => {
  it("is an administrator of all projects, from any address, before and after keys exist", async () => {
    const { call } = await api();
    for (const connection of [LOCAL, REMOTE, {}]) {
      const as = { headers: bearer(TEST_TOKEN), connection };
      expect((await call("POST", "/v1/checkpoint/save", { project_path: project, summary: "x" }, as)).status).toBe(200);
      expect((await call("POST", "/v1/key/create", { label: "k", access: "admin", all_projects: true }, as)).status).toBe(201);
      expect((await call("GET", "/v1/key/list", undefined, as)).status).toBe(200);
      expect((await call("GET", "/health", undefined, as)).body.checks).toBeDefined();
    }
  });

  it.each(["", " ", "undefined", TEST_TOKEN.slice(0, -1), `${TEST_TOKEN}0`, TEST_TOKEN.toUpperCase(), "cairn_local_", "*"])(
    "cannot be guessed as %j",
    async (guess) => {
      const { call } = await api();
      for (const headers of [{ authorization: `Bearer ${guess}` }, { "x-api-key": guess }, { authorization: `Basic ${guess}` }])
        expect((await call("GET", "/v1/key/list", undefined, { headers, connection: LOCAL })).status).toBe(401);
    },
  );

  it.each([undefined, async () => undefined, async () => ""])("matches nothing where there is none (%s)", async (localToken) => {
    const { call, cairn } = await api({ localToken: localToken as () => Promise<string | undefined> });
    const { key } = await cairn.keys.create({ label: "k", access: "admin", projects: "all" });
    const list = async (headers: Record<string, string>): Promise<Answer> =>
      call("GET", "/v1/key/list", undefined, { headers, connection: LOCAL });
    for (const guess of ["", "undefined", TEST_TOKEN]) {
      expect((await list({ "x-api-key": guess })).status).toBe(401);
      expect((await list(bearer(guess))).status).toBe(401);
    }
    expect((await list(bearer(key))).status).toBe(200);
  });
});

describe("a damaged credential store", () => {
  it("answers 503 without the path of its file, and writes the reason to the log", async () => {
    const { cairn } = await api();
    const logged: unknown[] = [];
    const log = {
      error: (...args: unknown[]) => logged.push(args),
      warn: (...args: unknown[]) => logged.push(args),
      info() {},
      debug() {},
    };
    const verify = () => Promise.reject(new CairnError("unavailable", "The API keys in /home/me/.cairn/keys.json cannot be read."));
    const { call } = await api({ cairn: { ...cairn, keys: { ...cairn.keys, verify } }, log });
    const { status, body } = await call("GET", "/v1/key/list", undefined, { headers: bearer("x"), connection: REMOTE });
    expect([status, JSON.stringify(body).includes("/home/me")]).toEqual([503, false]);
    expect(logged).toMatchObject([[{ err: { message: expect.stringContaining("keys.json") } }, expect.any(String)]]);
    expect((await call("GET", "/v1/key/list")).status).toBe(200); // the local token does not depend on the keys
  });
});

describe("a web page of another origin", () => {
  it("cannot call with the local user's rights: browsers send no credential by themselves, and get no CORS headers", async () => {
    const { call } = await api();
    const headers = { host: "127.0.0.1:7483", origin: "https://evil.example" };
    expect((await call("POST", "/v1/checkpoint/list", { project_path: project }, { headers, connection: LOCAL })).status).toBe(401);
    const preflight = await call("OPTIONS", "/v1/checkpoint/list", undefined, { headers, connection: LOCAL });
    expect(preflight.headers.get("access-control-allow-origin")).toBeNull();
    expect(preflight.headers.get("access-control-allow-credentials")).toBeNull();
  });

  it("cannot reach it under a name that it resolves to loopback (DNS rebinding)", async () => {
    const { call } = await api({ mount: { "/mcp": () => Response.json({ reached: true }) } });
    const headers = { host: "rebound.example", origin: "http://rebound.example" };
    for (const [method, path] of [
      ["GET", "/v1/key/list"],
      ["POST", "/mcp"],
    ] as const)
      expect((await call(method, path, method === "POST" ? "{}" : undefined, { headers, connection: LOCAL })).status).toBe(401);
  });
});

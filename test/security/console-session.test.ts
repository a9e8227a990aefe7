import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CODE_MS, oneTimeCodes } from "../../src/http/one-time-codes.ts";
import { SESSION_MS } from "../../src/http/session-cookie.ts";
import { type Answer, type Api, api, LOCAL, REMOTE } from "../http/api.ts";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";

const ORIGIN = "http://127.0.0.1";
const ALLOWED = "http://localhost:5173";
const project = "/home/me/project";
let server: Api;
let nowMs = Date.now();
let token = TEST_TOKEN;
beforeAll(async () => {
  server = await api({ nowMs: () => nowMs, localToken: async () => token, allowedOrigins: [ALLOWED], rateLimit: false });
});
afterAll(() => server?.cairn.close());

/** Calls without a credential of its own. */
const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  server.call(method, path, body, { headers, connection: LOCAL });
const code = async () => (await server.call("POST", "/session/code", undefined, { headers: bearer(token) })).body.code as string;

interface Session {
  readonly cookie: string;
  readonly pageKey: string;
  readonly setCookie: string;
}

function sessionOf({ status, headers, body }: Answer): Session {
  expect(status).toBe(200);
  const setCookie = headers.getSetCookie().at(-1)!;
  return { cookie: setCookie.split(";")[0]!, pageKey: body.page_key, setCookie };
}

const signIn = async (input: unknown, headers = {}) => sessionOf(await call("POST", "/session", input, headers));
const both = ({ cookie, pageKey }: Session) => ({ cookie, "x-cairn-page-key": pageKey });
const list = (headers: Record<string, string>) => call("POST", "/v1/checkpoint/list", { project_path: project }, headers);

describe("a session of the console", () => {
  it("is a cookie that scripts cannot read and that no other site can send", async () => {
    const { setCookie } = await signIn({ code: await code() });
    expect(setCookie).toMatch(/^cairn_[0-9a-f]{16}=[\w-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
    const secure = await signIn({ code: await code() }, { origin: "https://memory.example", "sec-fetch-site": "same-origin" });
    expect(secure.setCookie).toMatch(/; Secure$/);
  });

  it("makes the local user an administrator, and a key what it is", async () => {
    const local = await signIn({ code: await code() });
    expect((await call("GET", "/session", undefined, both(local))).body).toMatchObject({ access: "admin", all_projects: true });
    const { key, id } = await server.cairn.keys.create({ label: "reader", access: "read", projects: [project] });
    const reader = await signIn({ key });
    expect((await call("GET", "/session", undefined, both(reader))).body).toEqual({
      access: "read",
      all_projects: false,
      projects: [project],
      key_id: id,
      version: expect.any(String),
      event_id: expect.any(String),
    });
    expect((await list(both(reader))).status).toBe(200);
    expect((await call("POST", "/v1/checkpoint/save", { project_path: project, summary: "x" }, both(reader))).status).toBe(403);
    expect((await call("POST", "/v1/checkpoint/list", { project_path: "/other" }, both(reader))).status).toBe(403);
  });

  it("is worthless to another program on this machine that receives the cookie", async () => {
    const session = await signIn({ code: await code() });
    const { cookie } = session;
    expect((await list({ cookie })).status).toBe(401);
    expect((await list({ cookie, "x-cairn-page-key": Buffer.alloc(32).toString("base64url") })).status).toBe(401);
    expect((await list({ "x-cairn-page-key": session.pageKey })).status).toBe(401);
    expect(Buffer.from(cookie, "utf8").includes(TEST_TOKEN)).toBe(false);
    expect(Buffer.from(cookie.split("=")[1]!, "base64url").includes("cairn_local_")).toBe(false);
  });

  it("is refused when a byte of the cookie is altered", async () => {
    const session = await signIn({ code: await code() });
    const [name, value] = session.cookie.split("=") as [string, string];
    for (let index = 0; index < value.length; index += 7) {
      const altered = Buffer.from(value, "base64url");
      altered[Math.floor((index * 3) / 4)]! ^= 1;
      expect((await list({ ...both(session), cookie: `${name}=${altered.toString("base64url")}` })).status).toBe(401);
    }
  });

  it("ends after twelve hours", async () => {
    const session = await signIn({ code: await code() });
    const start = nowMs;
    nowMs = start + SESSION_MS - 1;
    expect((await list(both(session))).status).toBe(200);
    nowMs = start + SESSION_MS;
    expect((await list(both(session))).status).toBe(401);
    nowMs = start;
  });

  it("ends when its key is revoked, and when the local token is rotated", async () => {
    const { key, id } = await server.cairn.keys.create({ label: "short", access: "write", projects: [project] });
    const keyed = await signIn({ key });
    await server.cairn.keys.revoke(id);
    expect((await list(both(keyed))).status).toBe(401);
    const local = await signIn({ code: await code() });
    token = TEST_TOKEN.replaceAll("0", "1");
    expect((await list(both(local))).status).toBe(401);
    token = TEST_TOKEN;
  });

  it("is deleted by signing out", async () => {
    const session = await signIn({ code: await code() });
    const { status, headers } = await call("DELETE", "/session", undefined, both(session));
    expect(status).toBe(204);
    expect(headers.getSetCookie()).toEqual([`${session.cookie.split("=")[0]}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict`]);
  });

  it("of another server on the same host is left alone", async () => {
    const [first, second] = [await signIn({ code: await code() }), await signIn({ code: await code() })];
    const cookie = `${first.cookie}; ${second.cookie}`;
    for (const { pageKey } of [first, second]) expect((await list({ cookie, "x-cairn-page-key": pageKey })).status).toBe(200);
  });
});

describe("a page that holds a whole session", () => {
  it.each(["cross-site", "same-site", "none", "something-new"])("cannot use it from %s, not even to read", async (site) => {
    const session = await signIn({ code: await code() });
    for (const origin of [{}, { origin: ALLOWED }, { origin: "https://evil.example" }, { origin: "null" }])
      expect((await list({ ...both(session), "sec-fetch-site": site, ...origin })).status).toBe(403);
    expect((await call("GET", "/v1/stats", undefined, { ...both(session), "sec-fetch-site": site })).status).toBe(403);
  });

  it("cannot use it from another origin in a browser without Sec-Fetch-Site", async () => {
    const session = await signIn({ code: await code() });
    const headers = { ...both(session), host: "127.0.0.1" };
    expect((await list({ ...headers, origin: "http://127.0.0.1:3000" })).status).toBe(403);
    expect((await list({ ...headers, origin: "null" })).status).toBe(403);
    expect((await list({ ...headers, origin: ORIGIN })).status).toBe(200);
  });

  it("of a name that was rebound to this machine has no session: the cookie belongs to the host", async () => {
    const session = await signIn({ code: await code() });
    // The browser sends no cookie of 127.0.0.1 to evil.example, whatever address that name resolves to.
    const headers = { host: "evil.example", origin: "http://evil.example", "sec-fetch-site": "same-origin" };
    expect((await list({ ...headers, "x-cairn-page-key": session.pageKey })).status).toBe(401);
    expect((await call("POST", "/session/code", undefined, headers)).status).toBe(401);
  });
});

describe("signing in", () => {
  it("accepts a code once", async () => {
    const first = await code();
    await signIn({ code: first });
    const { status, body } = await call("POST", "/session", { code: first });
    expect([status, body.error.message]).toEqual([401, expect.stringContaining("Run cairn ui again")]);
  });

  it("refuses a code after a minute, a guessed code, and an old code after sixteen newer ones", () => {
    let now = 0;
    const codes = oneTimeCodes(() => now);
    const late = codes.create();
    now = CODE_MS;
    expect(codes.redeem(late)).toBe(false);
    expect(codes.redeem("")).toBe(false);
    const pushed = codes.create();
    const kept = codes.create();
    for (let index = 0; index < 15; index++) codes.create();
    expect([codes.redeem(pushed), codes.redeem(kept), codes.redeem(kept)]).toEqual([false, true, false]);
  });

  it("gives codes to the local user only", async () => {
    const { key } = await server.cairn.keys.create({ label: "admin", access: "admin", projects: "all" });
    expect((await call("POST", "/session/code", undefined, bearer(key))).status).toBe(403);
    expect((await call("POST", "/session/code")).status).toBe(401);
  });

  it.each(["cross-site", "same-site"])("is refused to a page of another site (%s): it could sign a victim in", async (site) => {
    expect((await call("POST", "/session", { code: await code() }, { "sec-fetch-site": site })).status).toBe(403);
  });

  it("refuses unknown keys, other bodies and large ones", async () => {
    expect((await call("POST", "/session", { key: "cairn_000000000000_wrong" })).status).toBe(401);
    for (const body of [{}, { key: 1 }, { key: "a", code: "b" }, { key: "" }, [], "text", { key: "x".repeat(300) }])
      expect((await call("POST", "/session", body)).status).toBe(400);
    expect((await call("POST", "/session", { key: "x".repeat(10_000) })).status).toBe(413);
  });

  it("is limited like every request without a credential", async () => {
    const limited = await api({ rateLimit: { perSecond: 1, burst: 3 } });
    const statuses: number[] = [];
    for (let index = 0; index < 5; index++)
      statuses.push((await limited.call("POST", "/session", { key: "guess" }, { connection: REMOTE })).status);
    expect(statuses).toEqual([401, 401, 401, 429, 429]);
    await limited.cairn.close();
  });
});

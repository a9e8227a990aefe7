import { describe, expect, it } from "vitest";
import { z } from "zod";
import { CairnError } from "../../src/index.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { type Operation, operation } from "../../src/operations/operation.ts";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";
import { api } from "./api.ts";

const project = "/home/me/project";

function echo(changes: Partial<Operation> = {}): Operation {
  return {
    ...operation({
      name: "echo_find",
      summary: "Returns its input.",
      input: z.strictObject({
        id: z.string(),
        count: z.int().default(1),
        ratio: z.number().optional(),
        deep: z.boolean().optional(),
        tags: z.array(z.string()).optional(),
        sizes: z.array(z.int()).optional(),
        filter: z.record(z.string(), z.string()).optional(),
        either: z.union([z.int(), z.string()]).optional(),
      }),
      output: z.object({ given: z.record(z.string(), z.unknown()) }),
      access: "read",
      annotations: { readOnly: true, destructive: false, idempotent: true },
      limits: { timeoutMs: 1_000 },
      toolset: "core",
      http: { method: "GET", path: "/v1/echo/{id}" },
      render: () => "",
      run: async (_cairn, input) => ({ given: input }),
    }),
    ...changes,
  };
}

describe("the HTTP API", () => {
  it("saves, gets, lists and deletes a checkpoint", async () => {
    const { call } = await api();
    const saved = await call("POST", "/v1/checkpoint/save", { project_path: project, summary: "Parser done", tags: ["parser"] });
    expect(saved.status).toBe(200);
    expect(saved.body).toMatchObject({ project_path: project, summary: "Parser done", tags: ["parser"] });
    const { id } = saved.body;
    const read = await call("POST", "/v1/checkpoint/get", { project_path: project, id });
    expect(read.body).toEqual({ ...saved.body, freshness: { state: "unknown", anchors: [] } });
    expect((await call("POST", "/v1/checkpoint/list", { project_path: project })).body).toMatchObject({ total: 1, checkpoints: [{ id }] });
    expect((await call("POST", "/v1/checkpoint/delete", { project_path: project, id })).body).toMatchObject({ deleted: true });
    const gone = await call("POST", "/v1/checkpoint/get", { project_path: project, id });
    expect(gone.status).toBe(404);
    expect(gone.body.error).toMatchObject({ code: "not_found", name: "NOT_FOUND" });
  });

  it("answers every error in one form, with the request id", async () => {
    const { call } = await api();
    const { status, headers, body } = await call("POST", "/v1/checkpoint/save", { project_path: project, summary: "", surprise: 1 });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: "invalid_input", name: "VALIDATION_ERROR", request_id: headers.get("x-request-id") });
    expect(body.error.message).toMatch(/summary: must not be empty.*unknown field "surprise"/);
    expect(body.error.details.issues).toHaveLength(2);
  });

  it.each([
    ["not JSON", "{", 400],
    ["nothing", "", 400],
    ["a list", "[]", 400],
    ["null", "null", 400],
    ["a number", "1", 400],
    ["broken UTF-8", new Uint8Array([0x22, 0xff, 0xfe, 0x22]), 400],
    ["a NUL character", JSON.stringify({ project_path: project, summary: "a\u0000b" }), 400],
    ["half a surrogate pair", `{"project_path":"${project}","summary":"\\ud800"}`, 400],
    ["a path with ..", JSON.stringify({ project_path: "/a/../b", summary: "x" }), 400],
    ["a field too long", JSON.stringify({ project_path: project, summary: "x".repeat(501) }), 400],
    ["the wrong type", JSON.stringify({ project_path: project, summary: 7 }), 400],
    ["a deep nest", "[".repeat(100_000) + "]".repeat(100_000), 400],
    ["too much", JSON.stringify({ project_path: project, summary: "x".repeat(LIMITS.bodyBytes) }), 413],
  ])("refuses a body that is %s, and stores nothing", async (_name, body, status) => {
    const { call, cairn } = await api();
    const answer = await call("POST", "/v1/checkpoint/save", body);
    expect(answer.status).toBe(status);
    expect(answer.body.error.code).toBe(status === 413 ? "too_large" : "invalid_input");
    expect(await cairn.projects()).toEqual([]);
  });

  it("stops reading a body of unknown length at the limit", async () => {
    const { handle } = await api();
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 65_536;
        controller.enqueue(new Uint8Array(65_536).fill(0x20));
      },
    });
    const request = new Request("http://127.0.0.1/v1/checkpoint/save", {
      method: "POST",
      body: endless,
      headers: { ...bearer(TEST_TOKEN), "content-type": "application/json" },
      duplex: "half",
    });
    const response = await handle(request, { remoteAddress: "127.0.0.1" });
    expect(response.status).toBe(413);
    expect(sent).toBeLessThan(LIMITS.bodyBytes + 10 * 65_536);
  });

  it("goes by the declared length before it reads anything", async () => {
    const { call } = await api();
    const { status } = await call("POST", "/v1/checkpoint/save", "{}", { headers: { "content-length": "100000000" } });
    expect(status).toBe(413);
  });

  it.each([
    ["text/plain", 415],
    ["application/x-www-form-urlencoded", 415],
    ["application/json; charset=latin1", 415],
    ["application/json; charset=utf-8", 200],
    ["application/vnd.cairn+json", 200],
    ["APPLICATION/JSON", 200],
  ])("reads the content type %s: %i", async (type, status) => {
    const { call } = await api();
    const answer = await call("POST", "/v1/checkpoint/list", { project_path: project }, { headers: { "content-type": type } });
    expect(answer.status).toBe(status);
  });

  it("does not read compressed bodies", async () => {
    const { call } = await api();
    expect((await call("POST", "/v1/checkpoint/list", "{}", { headers: { "content-encoding": "gzip" } })).status).toBe(415);
  });

  it("takes a sane request id and makes one otherwise", async () => {
    const { call } = await api();
    const idOf = async (id: string) =>
      (await call("GET", "/health", undefined, { headers: { "x-request-id": id } })).headers.get("x-request-id");
    expect(await idOf("build-17.4:a_b")).toBe("build-17.4:a_b");
    expect(await idOf('x"y<script>')).toMatch(/^[0-9a-f-]{36}$/);
    expect(await idOf("a".repeat(129))).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("answers 404, 405, HEAD and OPTIONS", async () => {
    const { call } = await api();
    expect((await call("GET", "/v1/nothing")).body.error.code).toBe("not_found");
    const wrong = await call("GET", "/v1/checkpoint/save");
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get("allow")).toBe("POST, OPTIONS");
    expect((await call("HEAD", "/v1/checkpoint/save")).status).toBe(405);
    const head = await call("HEAD", "/openapi.json");
    expect(head).toMatchObject({ status: 200, body: "" });
    const options = await call("OPTIONS", "/openapi.json");
    expect(options.status).toBe(204);
    expect(options.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
    expect((await call("OPTIONS", "/v1/nothing")).status).toBe(404);
    expect((await call("POST", "/v1/checkpoint/save/", { project_path: project })).status).toBe(404);
  });

  it("sends headers that keep browsers from guessing, framing and caching", async () => {
    const { call } = await api();
    for (const path of ["/docs", "/v1/nothing"]) {
      const { headers } = await call("GET", path);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("content-security-policy")).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("access-control-allow-origin")).toBeNull();
    }
  });

  it("allows browsers of allowed origins to call, and no others", async () => {
    const { call } = await api({ allowedOrigins: ["http://localhost:5173"] });
    const allowed = await call("OPTIONS", "/v1/checkpoint/save", undefined, { headers: { origin: "http://localhost:5173" } });
    expect(allowed.headers.get("access-control-allow-origin")).toBe("http://localhost:5173");
    expect(allowed.headers.get("access-control-allow-headers")).toContain("authorization");
    expect(allowed.headers.get("vary")).toBe("origin");
    const other = await call("OPTIONS", "/v1/checkpoint/save", undefined, { headers: { origin: "https://evil.example" } });
    expect(other.headers.get("access-control-allow-origin")).toBeNull();
  });

  it("reads GET input from the path and the query, as the schema says", async () => {
    const { call } = await api({ operations: [echo()] });
    const { body } = await call(
      "GET",
      "/v1/echo/a%2Fb?count=3&ratio=-1.5e2&deep=false&tags=x&tags=y%26z&sizes=7&filter=%7B%22k%22%3A%22v%22%7D&either=12",
    );
    expect(body.given).toEqual({
      id: "a/b",
      count: 3,
      ratio: -150,
      deep: false,
      tags: ["x", "y&z"],
      sizes: [7],
      filter: { k: "v" },
      either: 12,
    });
  });

  it.each([
    "count=three",
    "count=",
    "count=0x10",
    "count=1&count=2",
    "deep=yes",
    "filter=%7B",
    "sizes=1.5",
    "other=1",
    "__proto__=1",
    "constructor=1",
    "id=again",
  ])("refuses the query %s", async (query) => {
    const { call } = await api({ operations: [echo()] });
    const { status, body } = await call("GET", `/v1/echo/a?${query}`);
    expect([status, body.error?.code]).toEqual([400, "invalid_input"]);
  });

  it("keeps a broken percent sequence from doing harm", async () => {
    const { call } = await api({ operations: [echo()] });
    expect((await call("GET", "/v1/echo/%E0%A4%A?count=%E0%A4%A")).status).toBe(400);
  });

  it("answers with the operation's own status", async () => {
    const { call } = await api({ operations: [echo({ http: { method: "POST", path: "/v1/echo/{id}/start", status: 202 } })] });
    const { status, body } = await call("POST", "/v1/echo/7/start", { count: 2 });
    expect([status, body.given]).toEqual([202, { id: "7", count: 2 }]);
    expect((await call("POST", "/v1/echo/7/start", { id: "8" })).status).toBe(400);
  });

  it("ends an operation whose time is up with 504", async () => {
    let signal: AbortSignal | undefined;
    const slow = echo({
      limits: { timeoutMs: 20 },
      run: (_cairn, _input, context) => {
        signal = context.signal;
        return new Promise(() => {});
      },
    });
    const { call } = await api({ operations: [slow] });
    const { status, body } = await call("GET", "/v1/echo/a");
    expect([status, body.error.name]).toEqual([504, "TIMEOUT_ERROR"]);
    expect(signal?.aborted).toBe(true);
  });

  it("cancels the operation when the client goes away", async () => {
    const client = new AbortController();
    let signal: AbortSignal | undefined;
    const slow = echo({
      run: (_cairn, _input, context) => {
        signal = context.signal;
        queueMicrotask(() => client.abort("Client connection prematurely closed."));
        return new Promise(() => {});
      },
    });
    const { call } = await api({ operations: [slow] });
    const { status, body } = await call("GET", "/v1/echo/a", undefined, { signal: client.signal });
    expect([status, body.error.code]).toEqual([499, "cancelled"]);
    expect(signal?.aborted).toBe(true);
  });

  it("says nothing of a fault's inside, but logs it", async () => {
    const logged: unknown[] = [];
    const log = { error: (...args: unknown[]) => logged.push(args), warn() {}, info() {}, debug() {} };
    const faulty = echo({ run: async () => Promise.reject(new Error("password=hunter2 at /etc/secret")) });
    const { call } = await api({ operations: [faulty], log });
    const { status, body } = await call("GET", "/v1/echo/a");
    expect([status, body.error.name]).toEqual([500, "INTERNAL_ERROR"]);
    expect(JSON.stringify(body)).not.toMatch(/hunter2|secret/);
    expect(logged).toHaveLength(1);
  });

  it("refuses an answer that does not fit the operation's own schema", async () => {
    const { call } = await api({ operations: [echo({ run: async () => ({ given: 7 }) })] });
    expect((await call("GET", "/v1/echo/a")).status).toBe(500);
  });

  it("passes on how long to wait", async () => {
    const busy = echo({ run: async () => Promise.reject(new CairnError("unavailable", "Busy.", { retryAfterMs: 2_300 })) });
    const { call } = await api({ operations: [busy] });
    const { status, headers } = await call("GET", "/v1/echo/a");
    expect([status, headers.get("retry-after")]).toEqual([503, "3"]);
  });

  it("returns 503 above the limit of requests in flight, and still reports its health", async () => {
    let finish = () => {};
    const gate = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const slow = echo({ run: async () => gate.then(() => ({ given: {} })) });
    const { call } = await api({ operations: [slow], maxConcurrent: 2, maxConcurrentPerCaller: 2 });
    const first = [call("GET", "/v1/echo/a"), call("GET", "/v1/echo/b")];
    const third = await call("GET", "/v1/echo/c");
    expect([third.status, third.headers.get("retry-after")]).toEqual([503, "1"]);
    expect((await call("GET", "/health")).status).toBe(200);
    finish();
    expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200]);
    expect((await call("GET", "/v1/echo/d")).status).toBe(200);
  });

  it("hands whole requests to a mounted handler, with the caller", async () => {
    const seen: unknown[] = [];
    const { call } = await api({
      mount: {
        "/mcp": async (request, { caller }) => {
          seen.push([request.method, await request.text(), caller.access]);
          return Response.json({ ok: true });
        },
      },
    });
    expect((await call("POST", "/mcp", { a: 1 })).body).toEqual({ ok: true });
    expect(seen).toEqual([["POST", '{"a":1}', "admin"]]);
    expect((await call("POST", "/mcp", "{}", { headers: { "content-length": "100000000" } })).status).toBe(413);
    expect((await call("POST", "/mcp", {}, { connection: { remoteAddress: "203.0.113.7" } })).status).toBe(401);
  });

  it("serves a page for people that needs nothing from elsewhere", async () => {
    const { call } = await api();
    const { status, headers, body } = await call("GET", "/docs");
    expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(body).toContain("checkpoint_save");
    expect(body).toContain("curl http://127.0.0.1/v1/checkpoint/save");
    expect(body).not.toMatch(/<script|src=|@import|url\(/);
    expect((await call("GET", "/")).body).toContain("<title>Cairn</title>"); // the console
  });
});

describe("health", () => {
  it("says that it lives and can work", async () => {
    const { call } = await api();
    expect((await call("GET", "/health")).body).toMatchObject({ status: "ok", live: true, ready: true, checks: { storage: { ok: true } } });
  });

  it("reports why it is not ready to callers of all projects", async () => {
    const cairn = {
      ...(await api()).cairn,
      check: async () => Promise.reject(new CairnError("unavailable", "The folder /x cannot be written.")),
    };
    const { call } = await api({ cairn });
    const { status, body } = await call("GET", "/health");
    expect(status).toBe(503);
    expect(body).toMatchObject({
      status: "unavailable",
      live: true,
      ready: false,
      checks: { storage: { ok: false, reason: "The folder /x cannot be written." } },
    });
    expect((await call("GET", "/health/live")).status).toBe(200);
    expect((await call("GET", "/health/ready")).status).toBe(503);
    const stranger = await call("GET", "/health", undefined, { connection: { remoteAddress: "203.0.113.7" } });
    expect([stranger.status, stranger.body.checks]).toEqual([503, undefined]);
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { routeOf } from "../../src/http/routes.ts";
import { operations } from "../../src/operations/list.ts";
import { api, LOCAL, REMOTE } from "./api.ts";

const nasty = fc.constantFrom(
  "",
  "\u0000",
  "\ud800",
  "../..",
  "/a/../b",
  "/a//b",
  "/",
  "__proto__",
  "constructor",
  "%00",
  "'; DROP TABLE checkpoints; --",
  "\u202e",
  "x".repeat(20_000),
);
const value = fc.oneof({ weight: 3, arbitrary: fc.jsonValue() }, fc.string({ unit: "binary" }), nasty, fc.maxSafeInteger(), fc.double());
const fieldName = fc.oneof(
  fc.constantFrom(...new Set(operations.flatMap(({ input }) => Object.keys(input.shape))), "__proto__", "constructor", "toString"),
  fc.string(),
);
const object = fc
  .array(fc.tuple(fieldName, value), { maxLength: 8 })
  .map((pairs) => `{${pairs.map(([name, inner]) => `${JSON.stringify(name)}:${JSON.stringify(inner) ?? "null"}`).join(",")}}`);
/** Nearly right: what a save takes, with some fields replaced. */
const nearlyRight = fc
  .record(
    {
      project_path: fc.constant("/p"),
      summary: fc.string({ unit: "binary" }),
      tags: fc.oneof(value, fc.array(fc.string())),
      context: fc.oneof(value, fc.dictionary(fieldName, fc.string())),
    },
    { requiredKeys: [] },
  )
  .map((input) => JSON.stringify(input));
const body = fc.oneof(object, nearlyRight, fc.json(), fc.string(), fc.uint8Array());

const route = fc.constantFrom(...operations).map(routeOf);
const contentType = fc.oneof(
  { weight: 6, arbitrary: fc.constant("application/json") },
  fc.constantFrom("text/plain", "application/json; charset=utf-16", "multipart/form-data", ";;;"),
);

describe("any request at all", () => {
  it("gets an answer below 500, and an error leaves nothing behind", async () => {
    await fc.assert(
      fc.asyncProperty(route, body, contentType, async ({ method, path }, content, type) => {
        const { call, cairn } = await api();
        const hasBody = method === "POST" || method === "PATCH";
        const query = hasBody ? "" : `?${new URLSearchParams({ [String(content).slice(0, 50)]: String(content).slice(0, 200) })}`;
        const where = path.replace(/\{\w+\}/g, () => encodeURIComponent(String(content).slice(0, 50).toWellFormed() || "x")) + query;
        const answer = await call(method, where, hasBody ? content : undefined, { headers: { "content-type": type } });
        expect(answer.status).toBeLessThan(500);
        if (answer.status < 400) return;
        expect(answer.body.error).toMatchObject({ code: expect.any(String), message: expect.any(String), request_id: expect.any(String) });
        expect(await cairn.projects()).toEqual([]);
        expect(await cairn.keys.list()).toEqual([]);
      }),
      { numRuns: 400 },
    );
  });

  it("that saves returns what was sent", async () => {
    const { call } = await api();
    await fc.assert(
      fc.asyncProperty(nearlyRight, async (content) => {
        const { status, body: saved } = await call("POST", "/v1/checkpoint/save", content);
        expect([200, 400]).toContain(status);
        if (status === 400) return;
        const sent = JSON.parse(content);
        expect(saved.summary).toBe(sent.summary);
        // Other scalars are taken as text.
        expect(Object.entries(saved.context)).toEqual(Object.entries(sent.context ?? {}).map(([name, value]) => [name, String(value)]));
        const again = await call("POST", "/v1/checkpoint/get", { project_path: "/p", id: saved.id });
        const { freshness, ...stored } = again.body;
        expect(stored).toEqual(saved);
        expect(freshness.state).toBe("unknown");
      }),
      { numRuns: 300 },
    );
  });

  it("with odd headers and paths gets an answer below 500", async () => {
    const { handle } = await api();
    const header = fc.string({ unit: fc.constantFrom(..."abcXYZ019 .,;:=/\\\"'<>()[]{}*-_%\u00e9") }).map((text) => text.trim());
    const headers = fc.dictionary(
      fc.constantFrom(
        "authorization",
        "x-api-key",
        "x-request-id",
        "origin",
        "host",
        "traceparent",
        "tracestate",
        "content-length",
        "content-encoding",
        "x-forwarded-for",
        "accept",
      ),
      header,
    );
    const path = fc.oneof(
      fc.webPath(),
      fc.webPath().map((one) => `/v1${one}`),
      fc.constantFrom("/docs/..", "//", "/v1//checkpoint/save", "/%2e%2e/x"),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"),
        path,
        headers,
        fc.constantFrom(LOCAL, REMOTE),
        async (method, where, given, connection) => {
          const response = await handle(new Request(`http://127.0.0.1${where}`, { method, headers: given }), connection);
          expect(response.status).toBeLessThan(500);
          expect(response.headers.get("x-request-id")).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
        },
      ),
      { numRuns: 400 },
    );
  });
});

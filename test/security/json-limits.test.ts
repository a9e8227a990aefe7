import { PassThrough } from "node:stream";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { parseRecordFile } from "../../src/knowledge/record-file.ts";
import { stdioTransport } from "../../src/mcp/stdio-transport.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { assertJsonSize, parseJson } from "../../src/text/untrusted.ts";
import { api } from "../http/api.ts";
import { startHttp } from "../mcp/connections.ts";

const PROJECT = "/home/me/project";
const many = (count: number, item: (index: number) => string) => Array.from({ length: count }, (_, index) => item(index)).join(",");
const MEGABYTES_OF = {
  "nested lists": "[".repeat(4_000_000),
  "nested objects": '{"a":'.repeat(800_000),
  "half a million fields": `{${many(300_000, (index) => `"f${index}":1`)}}`,
  "a million list items": `{"a":[${many(1_000_000, () => "0")}]}`,
  "one field given a million times": `{${many(600_000, () => '"a":1')}}`,
  "empty objects": `[${many(1_000_000, () => "{}")}]`,
};
const REFUSAL = /nested more than 64 levels deep|more than 50000 fields and items/;

/** Counts the texts of over 1 MB that reach the JSON parser. */
function watchParser() {
  const parse = vi.spyOn(JSON, "parse");
  return () => parse.mock.calls.filter(([text]) => String(text).length > 1_000_000).length;
}

afterEach(() => vi.restoreAllMocks());

describe.each(Object.entries(MEGABYTES_OF))("a message of 4 MB made of %s", (_, body) => {
  it("is refused over HTTP before it is parsed", async () => {
    const { call, cairn } = await api();
    const parsed = watchParser();
    const { status, body: answer } = await call("POST", "/v1/checkpoint/save", body);
    expect([status, answer.error.code, answer.error.message]).toEqual([400, "invalid_input", expect.stringMatching(REFUSAL)]);
    expect(parsed()).toBe(0);
    await cairn.close();
  });

  it("is refused by MCP over HTTP before it is parsed", async () => {
    const server = await startHttp();
    const parsed = watchParser();
    const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${body}}`;
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const response = await fetch(server.url, { method: "POST", headers, body: message });
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({ error: expect.objectContaining({ message: expect.stringMatching(REFUSAL) }) }),
    ]);
    expect(parsed()).toBe(0);
    await server.close();
  });

  it("is refused by MCP over stdio before it is parsed, with the id of the request", async () => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const transport = stdioTransport({ input, output });
    const received: JSONRPCMessage[] = [];
    transport.onmessage = (message) => void received.push(message);
    await transport.start();
    const parsed = watchParser();
    input.write(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${body.slice(0, 4_000_000)}}\n`);
    const [answer] = (await output.iterator().next()).value.toString().split("\n");
    expect(parsed()).toBe(0);
    expect(JSON.parse(answer)).toMatchObject({ id: 7, error: { code: -32700, message: expect.stringMatching(REFUSAL) } });
    expect(received).toEqual([]);
    await transport.close();
  });
});

it("applies the limits to brackets in texts, escaped quotes and unterminated texts", () => {
  const brackets = JSON.stringify({ text: `${"[{,".repeat(200_000)}"\\` });
  expect(parseJson(brackets)).toEqual(JSON.parse(brackets));
  expect(() => parseJson(`{"a":"\\\\","b":${"[".repeat(65)}`)).toThrow(REFUSAL);
  expect(() => parseJson(`"${"[".repeat(65)}`)).toThrow(/not valid JSON/);
  expect(() => parseJson(`"\\`)).toThrow(/not valid JSON/);
});

it("refuses exactly what is nested deeper or longer than the limit", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.boolean(), (value, pretty) => {
      const text = JSON.stringify(value, null, pretty ? 2 : 0);
      const { depth, values } = sizeOf(value);
      assertJsonSize(text, { depth, values });
      if (depth > 0) expect(() => assertJsonSize(text, { depth: depth - 1, values })).toThrow(/levels/);
      if (values > 0) expect(() => assertJsonSize(text, { depth, values: values - 1 })).toThrow(/fields and items/);
    }),
  );
});

function sizeOf(value: unknown): { depth: number; values: number } {
  if (typeof value !== "object" || value === null) return { depth: 0, values: 0 };
  const inner = Object.values(value).map(sizeOf);
  return {
    depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    values: 1 + Math.max(0, inner.length - 1) + inner.reduce((sum, { values }) => sum + values, 0),
  };
}

it("takes what operations allow at most: a manifest of 10,000 paths, 100 full checkpoints", () => {
  const context = Object.fromEntries(Array.from({ length: LIMITS.contextPairs }, (_, index) => [`k${index}`, "v"]));
  const checkpoint = { summary: "s", context, tags: Array.from({ length: LIMITS.tags }, () => "t") };
  parseJson(JSON.stringify({ project_path: PROJECT, records: Array.from({ length: LIMITS.transferRecords }, () => checkpoint) }));
  parseJson(JSON.stringify({ project_path: PROJECT, paths: Array.from({ length: LIMITS.codeManifestPaths }, (_, index) => `${index}`) }));
});

it("answers 40,000 unknown fields with an error that fits on a screen", async () => {
  const { call, cairn } = await api();
  const { status, body } = await call("POST", "/v1/checkpoint/save", `{${many(40_000, (index) => `"f${index}":1`)}}`);
  expect(status).toBe(400);
  expect(body.error.message).toContain('unknown field "f0", "f1"');
  expect(body.error.message).toContain("and 39990 more");
  expect(JSON.stringify(body).length).toBeLessThan(2_000);
  await cairn.close();
});

describe("a file to import", () => {
  const parse = (content: string) => () => parseRecordFile(content);
  it.each([
    ["a row nested 100 levels deep", `[{"a":${"[".repeat(100)}${"]".repeat(100)}}]`, /nested more than 64 levels/],
    ["a row of 600,000 fields", `[{${many(600_000, (index) => `"f${index}":1`)}}]`, /more than 500000 fields/],
    ["20,000 lines of JSON", '{"question":"q"}\n'.repeat(20_000), /has 20000 records; the limit is 10000/],
    ["20,000 rows of CSV", `question\n${"q\n".repeat(20_000)}`, /has 20000 records; the limit is 10000/],
    ["a CSV header of 100,000 columns", `${many(100_000, (index) => `c${index}`)}\n`, /has 100000 columns; the limit is 500/],
  ])("is refused for %s", (_, content, problem) => {
    expect(parse(content)).toThrow(problem);
  });
});

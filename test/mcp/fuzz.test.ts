import { PassThrough } from "node:stream";
import { type CallToolResult, Client, InMemoryTransport, ProtocolError } from "@modelcontextprotocol/client";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mcpServerFactory } from "../../src/mcp/server.ts";
import { stdioTransport } from "../../src/mcp/stdio-transport.ts";
import { open } from "../../src/open/open.ts";
import { operations } from "../../src/operations/list.ts";

/** Values near what a tool takes, so that the fuzzing gets past the first check now and then. */
const odd = fc.oneof(
  fc.constantFrom(
    null,
    true,
    -1,
    0,
    1e21,
    2 ** 53,
    "",
    "/",
    "/p",
    "/p/../q",
    "C:\\p",
    "..",
    "\u0000",
    "\ud800",
    "x".repeat(20_000),
    [],
    {},
  ),
  fc.string({ unit: "binary" }),
  fc.jsonValue(),
);
const near = fc.record(
  {
    project_path: fc.oneof(fc.constantFrom("/a", "/b"), odd),
    summary: fc.oneof(fc.string({ minLength: 1, maxLength: 500 }), odd),
    description: fc.oneof(fc.string(), odd),
    context: fc.oneof(fc.dictionary(fc.string(), fc.string()), odd),
    tags: fc.oneof(fc.array(fc.string()), odd),
    id: odd,
    limit: fc.oneof(fc.integer({ min: 1, max: 100 }), odd),
    offset: odd,
    cursor: odd,
    sort_by: odd,
    __proto__: odd,
  },
  { requiredKeys: [] },
);
const args = fc.oneof(near, fc.dictionary(fc.string(), fc.jsonValue()));
const name = fc.oneof(fc.constantFrom(...operations.map((operation) => operation.name)), fc.string());

/** Mostly right, so that some calls succeed. */
const save = fc.record(
  {
    project_path: fc.constantFrom("/a", "/b"),
    summary: fc.oneof(fc.string({ minLength: 1, maxLength: 500 }), odd),
    tags: fc.array(fc.string()),
  },
  { requiredKeys: ["project_path", "summary"] },
);
const call = fc.oneof(fc.tuple(name, args), fc.tuple(fc.constant("checkpoint_save"), save));

describe("whatever arguments a tool is called with", () => {
  let client: Client;
  let cairn: Awaited<ReturnType<typeof open>>;
  beforeAll(async () => {
    cairn = await open({ storage: "memory", embedder: { kind: "none" } });
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    const server = await mcpServerFactory({ cairn, operations })({ era: "legacy" });
    client = new Client({ name: "fuzz", version: "1" });
    await Promise.all([server.connect(theirs), client.connect(ours)]);
    await client.listTools(); // from here on the client holds results against the output schemas
  });
  afterAll(async () => {
    await client.close();
    await cairn.close();
  });

  const stored = async () => {
    let total = 0;
    for (const projectPath of await cairn.projects()) total += (await cairn.checkpoints.list({ projectPath, limit: 1 })).total;
    return total;
  };

  it("the answer is a result or a clear error, and an error stores nothing", async () => {
    let outcomes = 0;
    await fc.assert(
      fc.asyncProperty(call, async ([tool, given]) => {
        const before = await stored();
        let result: CallToolResult;
        try {
          result = await client.callTool({ name: tool, arguments: given as Record<string, unknown> });
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
          expect((error as ProtocolError).code).toBe(-32602);
          expect(await stored()).toBe(before);
          return;
        }
        if (result.isError) {
          const { code } = (result._meta as { "cairn/error": { code: string } })["cairn/error"];
          expect(["VALIDATION_ERROR", "NOT_FOUND"]).toContain(code);
          expect(await stored()).toBe(before);
        } else if (tool === "checkpoint_save") {
          expect(await stored()).toBe(before + 1);
          outcomes++;
        }
      }),
      { numRuns: 2_000 },
    );
    expect(outcomes).toBeGreaterThan(0); // the fuzzing does get through
  });
});

it("answers every line of arbitrary bytes on stdin and continues", async () => {
  const cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  const input = new PassThrough();
  const output = new PassThrough();
  let written = "";
  output.on("data", (chunk) => {
    written += chunk;
  });
  const handle = serveStdio(mcpServerFactory({ cairn, operations }), {
    transport: stdioTransport({ input, output, maxLineBytes: 1_000 }),
  });
  const answers = () =>
    written
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { id?: unknown });
  let round = 0;
  const line = fc.oneof(
    fc.uint8Array({ maxLength: 3_000 }),
    fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value))),
    fc
      .record({
        jsonrpc: fc.constant("2.0"),
        id: odd,
        method: fc.oneof(fc.constantFrom("ping", "tools/list", "tools/call", "initialize"), fc.string()),
        params: odd,
      })
      .map((value) => Buffer.from(JSON.stringify(value))),
  );
  await fc.assert(
    fc.asyncProperty(line, fc.nat(), async (bytes, cut) => {
      const id = `round ${round++}`;
      const whole = Buffer.concat([bytes, Buffer.from(`\n${JSON.stringify({ jsonrpc: "2.0", id, method: "ping" })}\n`)]);
      input.write(whole.subarray(0, cut % whole.length));
      input.write(whole.subarray(cut % whole.length));
      await expect.poll(() => answers().some((answer) => answer.id === id), { interval: 1 }).toBe(true);
      written = "";
    }),
    { numRuns: 500 },
  );
  await handle.close();
  await cairn.close();
});

import { request as httpRequest } from "node:http";
import { type Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serve } from "../../src/http/serve.ts";
import { type McpHttpHandler, mcpHttpHandler } from "../../src/mcp/http.ts";
import { mcpServerFactory } from "../../src/mcp/server.ts";
import { open } from "../../src/open/open.ts";
import { operations } from "../../src/operations/list.ts";
import { type Era, newClient } from "./connections.ts";

/** The product's HTTP server with MCP mounted and real keys. */
let cairn: Awaited<ReturnType<typeof open>>;
let mcp: McpHttpHandler;
let server: Awaited<ReturnType<typeof serve>>;
beforeAll(async () => {
  cairn = await open({ storage: "memory" });
  mcp = mcpHttpHandler(mcpServerFactory({ cairn, operations }));
  server = await serve({
    cairn,
    operations,
    port: 0,
    mount: { "/mcp": (request, { caller }) => mcp.fetch(request, caller) },
  });
});
afterAll(async () => {
  await mcp.close();
  await server.close();
  await cairn.close();
});

async function connect(era: Era, key?: string): Promise<Client> {
  const client = newClient(era);
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {};
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers } }));
  return client;
}

it.each(["2025-11-25", "2026-07-28"] as const)("serves a key its own projects until it is revoked (%s)", async (era) => {
  const { key, id } = await cairn.keys.create({ label: "agent", access: "write", projects: ["/mine"] });
  const client = await connect(era, key);
  const save = (project_path: string) => client.callTool({ name: "checkpoint_save", arguments: { project_path, summary: "Here" } });
  expect((await save("/mine")).structuredContent).toMatchObject({ id: expect.any(String) });
  expect(await save("/theirs")).toMatchObject({ isError: true, _meta: { "cairn/error": { code: "FORBIDDEN" } } });
  await cairn.keys.revoke(id);
  await expect(save("/mine")).rejects.toThrow();
  expect(await cairn.projects()).toEqual(["/mine"]);
  await client.close().catch(() => {}); // its session cannot be ended without a key
});

it.each(["2025-11-25", "2026-07-28"] as const)("lets nobody in without a key, or with a wrong one (%s)", async (era) => {
  await expect(connect(era)).rejects.toThrow();
  await expect(connect(era, "cairn_000000000000_nonsense")).rejects.toThrow();
});

it("may be called by any name with a key, since no web page has one", async () => {
  const { key } = await cairn.keys.create({ label: "agent", access: "read", projects: ["/mine"] });
  const status = (headers: Record<string, string>) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
      const all = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        authorization: `Bearer ${key}`,
        ...headers,
      };
      httpRequest(`${server.url}/mcp`, { method: "POST", headers: all }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on("error", reject)
        .end(body);
    });
  expect(await status({ host: "memory.example" })).toBe(200);
  expect(await status({ host: "memory.example", origin: "https://evil.example" })).toBe(403);
});

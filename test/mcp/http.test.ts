import { readdir } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operations } from "../../src/operations/list.ts";
import { type HttpServer, startHttp } from "./connections.ts";
import { probeOperations } from "./probe-operations.mjs";

const project_path = "/home/someone/project";
const ACCEPT = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};
const listTools = { jsonrpc: "2.0", id: 2, method: "tools/list" };

describe("the HTTP edge", () => {
  let server: HttpServer;
  beforeAll(async () => {
    server = await startHttp({
      allowedOrigins: ["app.example"],
      callers: {
        reader: { access: "read", projects: "all", keyId: "reader" },
        mine: { access: "write", projects: [project_path], keyId: "mine" },
      },
    });
  });
  afterAll(() => server?.close());

  const post = (body: unknown, headers: Record<string, string> = {}) =>
    fetch(server.url, {
      method: "POST",
      headers: { ...ACCEPT, ...headers },
      body: typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
    });
  const stillServes = async () => expect((await post(listTools)).status).toBe(200);

  describe("refuses what a web page could send", () => {
    it.each([
      ["a name that is rebound to this machine", { host: "evil.example", origin: "http://evil.example" }, 403],
      ["a page whose name only looks like this machine", { host: "localhost", origin: "http://localhost.evil.example" }, 403],
      ["a nonsense name", { host: "a b" }, 400],
      ["a foreign page", { host: "localhost", origin: "https://evil.example" }, 403],
      ["a sandboxed page", { host: "localhost", origin: "null" }, 403],
    ])("%s", async (_, headers, status) => {
      expect(await statusOf(server.url, { ...ACCEPT, ...headers }, JSON.stringify(initialize))).toBe(status);
    });

    it.each([
      ["loopback", { host: "localhost:1" }],
      ["a program that uses another name", { host: "cairn.example" }],
      ["a page of this machine", { host: "127.0.0.1", origin: "http://localhost:3000" }],
      ["a configured page", { host: "[::1]:80", origin: "https://app.example" }],
    ])("but not %s", async (_, headers) => {
      expect(await statusOf(server.url, { ...ACCEPT, ...headers }, JSON.stringify(initialize))).toBe(200);
    });
  });

  it.each([
    ["broken JSON", "{nonsense", {}, 400, -32700],
    ["an empty body", "", {}, 400, -32700],
    ["bytes that are not UTF-8", new Uint8Array([0x22, 0xff, 0x22]), {}, 400, -32700],
    ["another content type", "{}", { "content-type": "text/plain" }, 415, -32000],
    ["JSON that is no message", "7", {}, 400, undefined],
    ["a session that does not exist", listTools, { "mcp-session-id": "nowhere" }, 404, -32001],
    ["a protocol version that does not exist", listTools, { "mcp-protocol-version": "1999-01-01" }, 400, undefined],
  ])("answers %s with a clear error", async (_, body, headers, status, code) => {
    const response = await post(body, headers as Record<string, string>);
    expect(response.status).toBe(status);
    const answer = (await response.json()) as { error: { code: number; message: string } };
    expect(answer.error.message).toBeTruthy();
    if (code !== undefined) expect(answer.error.code).toBe(code);
    await stillServes();
  });

  it("refuses a body of 100 MB, declared or streamed", async () => {
    expect(await statusOf(server.url, { ...ACCEPT, "content-length": String(100 * 1024 * 1024) }, "x")).toBe(413);
    const megabyte = new Uint8Array(1024 * 1024).fill(32);
    let sent = 0;
    const body = new ReadableStream({
      pull(controller) {
        if (sent++ < 100) controller.enqueue(megabyte);
        else controller.close();
      },
    });
    const response = await fetch(server.url, { method: "POST", headers: ACCEPT, body, duplex: "half" } as RequestInit).catch(
      () => undefined,
    );
    // The server may hang up before all was sent; then there is no answer to read.
    if (response) expect(response.status).toBe(413);
    expect(sent).toBeLessThan(100);
    await stillServes();
  });

  it("serves a single request without a session, but no session operation", async () => {
    await stillServes();
    expect((await fetch(server.url, { headers: ACCEPT })).status).toBe(405);
    expect((await fetch(server.url, { method: "DELETE" })).status).toBe(405);
    expect((await fetch(server.url, { method: "PUT", body: "{}", headers: ACCEPT })).status).toBe(405);
  });

  it("keeps a session to the caller that began it, until it is deleted", async () => {
    const begun = await post(initialize, { "x-test-caller": "mine" });
    const id = begun.headers.get("mcp-session-id")!;
    await begun.text();
    expect((await post(listTools, { "x-test-caller": "mine", "mcp-session-id": id })).status).toBe(200);
    expect((await post(listTools, { "x-test-caller": "reader", "mcp-session-id": id })).status).toBe(404);
    const end = { method: "DELETE", headers: { "mcp-session-id": id, "x-test-caller": "mine" } };
    expect((await fetch(server.url, end)).status).toBe(200);
    expect((await post(listTools, { "x-test-caller": "mine", "mcp-session-id": id })).status).toBe(404);
  });

  it.each(["2025-11-25", "2026-07-28"] as const)("lets a key do only what it may (%s)", async (era) => {
    const as = (caller: string) => connectAs(server, era, caller);
    const before = await readdir(server.dataDir, { recursive: true });
    const reader = await as("reader");
    const rejected = await reader.callTool({ name: "checkpoint_save", arguments: { project_path, summary: "No" } });
    expect(rejected).toMatchObject({ isError: true, _meta: { "cairn/error": { code: "FORBIDDEN" } } });
    const mine = await as("mine");
    for (const name of ["checkpoint_save", "checkpoint_list", "checkpoint_get", "checkpoint_delete"]) {
      const args = {
        project_path: "/home/someone/else",
        ...(name === "checkpoint_save" && { summary: "No" }),
        ...(/get|delete/.test(name) && { id: "x" }),
      };
      expect(await mine.callTool({ name, arguments: args })).toMatchObject({
        isError: true,
        _meta: { "cairn/error": { code: "FORBIDDEN" } },
      });
    }
    expect(await readdir(server.dataDir, { recursive: true })).toEqual(before);
    await Promise.all([reader.close(), mine.close()]);
  });
});

it("pages the list of tools, and refuses a cursor that it did not give", async () => {
  const server = await startHttp({ pageSize: 2 });
  for (const era of ["2025-11-25", "2026-07-28"] as const) {
    const client = await server.connect(era);
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await client.request({ method: "tools/list", params: cursor ? { cursor } : {} });
      expect(page.tools.length).toBeLessThanOrEqual(2);
      names.push(...page.tools.map(({ name }) => name));
      cursor = page.nextCursor;
    } while (cursor);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toHaveLength(operations.filter(({ toolset }) => toolset === "core").length + probeOperations.length);
    for (const bad of ["nonsense", "", Buffer.from("prompts:2").toString("base64url"), Buffer.from("tools:-1").toString("base64url")])
      await expect(client.request({ method: "tools/list", params: { cursor: bad } })).rejects.toMatchObject({ code: -32602 });
  }
  await server.close();
});

it("offers only the chosen toolsets, and never what is no tool", async () => {
  const operations = (["core", "admin", "none"] as const).map((toolset) => ({ ...probeOperations[0]!, name: `probe_${toolset}`, toolset }));
  for (const [toolsets, expected] of [
    [undefined, ["probe_core"]],
    [
      ["core", "admin", "none"],
      ["probe_core", "probe_admin"],
    ],
  ] as const) {
    const server = await startHttp({ operations, toolsets });
    const client = await server.connect("2026-07-28");
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(expected);
    await expect(client.callTool({ name: "probe_none", arguments: {} })).rejects.toMatchObject({ code: -32602 });
    await server.close();
  }
});

it("ends the session that was idle longest when a caller has too many", async () => {
  const server = await startHttp({ maxSessionsPerKey: 2 });
  const first = await server.connect("2025-11-25");
  const second = await server.connect("2025-11-25");
  await first.listTools();
  const third = await server.connect("2025-11-25");
  await expect(second.listTools()).rejects.toThrow(/no such session/i);
  for (const client of [first, third]) expect((await client.listTools()).tools).not.toHaveLength(0);
  await server.close();
});

it("ends sessions that nobody uses", async () => {
  const server = await startHttp({ idleMs: 0 });
  const begun = await fetch(server.url, { method: "POST", headers: ACCEPT, body: JSON.stringify(initialize) });
  expect(begun.status).toBe(200);
  const headers = { ...ACCEPT, "mcp-session-id": begun.headers.get("mcp-session-id")! };
  expect((await fetch(server.url, { method: "POST", headers, body: JSON.stringify(listTools) })).status).toBe(404);
  await server.close();
});

it("serves the session of another server of a team, in every request", async () => {
  const servers = [await startHttp({ takeOver: true }), await startHttp({ takeOver: true })];
  let requests = 0;
  const roundRobin: typeof fetch = (url, init) => fetch(new URL(servers[requests++ % 2]!.url, url as URL), init);
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "legacy" } });
  const transport = new StreamableHTTPClientTransport(servers[0]!.url, { fetch: roundRobin });
  await client.connect(transport);
  expect(transport.sessionId).toBeDefined();
  for (let call = 0; call < 4; call++) {
    expect((await client.listTools()).tools).not.toHaveLength(0);
    const save = { name: "checkpoint_save", arguments: { project_path, summary: `call ${call}` } };
    expect(await client.callTool(save)).not.toMatchObject({ isError: true });
  }
  await transport.terminateSession();
  await client.close();
  const unknown = { ...ACCEPT, "mcp-session-id": "not made by a server" };
  expect((await fetch(servers[0]!.url, { method: "POST", headers: unknown, body: JSON.stringify(listTools) })).status).toBe(404);
  for (const server of servers) await server.close();
});

async function connectAs(server: HttpServer, era: "2025-11-25" | "2026-07-28", caller: string): Promise<Client> {
  const mode = era === "2025-11-25" ? "legacy" : { pin: era };
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(server.url, { requestInit: { headers: { "x-test-caller": caller } } }));
  return client;
}

/** Sends exactly these headers, Host among them, which `fetch` would not let us choose. */
function statusOf(url: URL, headers: Record<string, string>, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method: "POST", headers }, (response: IncomingMessage) => {
      resolve(response.statusCode!);
      request.destroy();
    });
    request.on("error", reject);
    request.write(body);
    if (!headers["content-length"]) request.end();
  });
}

import { mkdtemp } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve } from "@hono/node-server";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { type McpHttpOptions, mcpHttpHandler } from "../../src/mcp/http.ts";
import { type McpServerOptions, mcpServerFactory } from "../../src/mcp/server.ts";
import { open } from "../../src/open/open.ts";
import { type Caller, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { removeFolder, SLOW_START } from "../support/processes.ts";
import { probeOperations } from "./probe-operations.mjs";

export type Era = "2025-11-25" | "2026-07-28";
export const STDIO_SERVER = join(import.meta.dirname, "stdio-server.mjs");

export interface Connection {
  readonly client: Client;
  readonly dataDir: string;
  close(): Promise<void>;
}

export function newClient(era: Era): Client {
  const mode = era === "2025-11-25" ? "legacy" : { pin: era };
  return new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
}

export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "cairn-mcp-"));
  return { path, remove: () => removeFolder(path) };
}

/** A client of a server that runs as a process of its own. */
export async function connectStdio(era: Era, defaultProject?: string): Promise<Connection> {
  const folder = await temporaryFolder();
  const client = newClient(era);
  const args = [STDIO_SERVER, folder.path, ...(defaultProject ? [defaultProject] : [])];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" }), SLOW_START);
  return {
    client,
    dataDir: folder.path,
    async close() {
      await client.close();
      await folder.remove();
    },
  };
}

export interface HttpServer {
  readonly url: URL;
  readonly dataDir: string;
  connect(era: Era): Promise<Client>;
  close(): Promise<void>;
}

/** A real HTTP server on loopback. The caller of each request is named by its `x-test-caller` header, in place of a key. */
export async function startHttp(
  options: McpHttpOptions & Partial<McpServerOptions> & { callers?: Readonly<Record<string, Caller>> } = {},
): Promise<HttpServer> {
  const folder = await temporaryFolder();
  const cairn = await open({ dataDir: folder.path, embedder: { kind: "none" } });
  const factory = mcpServerFactory({ cairn, operations: [...operations, ...probeOperations], ...options });
  const handler = mcpHttpHandler(factory, options);
  const fetch = (request: Request) => handler.fetch(request, options.callers?.[request.headers.get("x-test-caller") ?? ""] ?? LOCAL_CALLER);
  const server = serve({ fetch, hostname: "127.0.0.1", port: 0 });
  await new Promise((resolve) => server.once("listening", resolve));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  const clients: Client[] = [];
  return {
    url,
    dataDir: folder.path,
    async connect(era) {
      const client = newClient(era);
      await client.connect(new StreamableHTTPClientTransport(url));
      clients.push(client);
      return client;
    },
    async close() {
      await Promise.all(clients.map((client) => client.close()));
      await handler.close();
      await new Promise((resolve) => server.close(resolve));
      await cairn.close();
      await folder.remove();
    },
  };
}

/** The four ways in which a client can be connected, each with a server of its own. */
export const WAYS: readonly { name: string; connect(): Promise<Connection> }[] = (["2025-11-25", "2026-07-28"] as const).flatMap((era) => [
  { name: `stdio, ${era}`, connect: () => connectStdio(era) },
  {
    name: `HTTP, ${era}`,
    async connect() {
      const server = await startHttp();
      return { client: await server.connect(era), dataDir: server.dataDir, close: server.close };
    },
  },
]);

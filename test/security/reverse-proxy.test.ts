import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { type Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type HttpServer, serve } from "../../src/http/serve.ts";
import { type Cairn, open } from "../../src/index.ts";
import { type McpHttpHandler, mcpHttpHandler } from "../../src/mcp/http.ts";
import { mcpServerFactory } from "../../src/mcp/server.ts";
import { operations } from "../../src/operations/list.ts";
import { type Operation, operation } from "../../src/operations/operation.ts";
import { lastingPort } from "../client/processes.ts";
import { type Era, newClient } from "../mcp/connections.ts";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";
import { killProcess, removeFolder } from "../support/processes.ts";

const root = resolve(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "cairn-proxy-"));
const project = "/home/me/project";
const children: ChildProcess[] = [];
const BURST = 20;

/** Reports progress, then waits until the test releases it: a proxy that buffers would deliver neither. */
const gate = { release: () => {} };
const wait: Operation = operation({
  name: "gate_wait",
  summary: "Reports progress and waits.",
  input: z.strictObject({}),
  output: z.object({ waited: z.boolean() }),
  access: "read",
  annotations: { readOnly: true, destructive: false, idempotent: true },
  limits: { timeoutMs: 120_000 },
  toolset: "core",
  http: { method: "GET", path: "/v1/gate/wait" },
  render: () => "",
  mcp: { compact: (output) => output },
  async run(_cairn, _input, { progress }) {
    const released = new Promise<void>((resolve) => {
      gate.release = resolve;
    });
    progress(1, 2, "waiting");
    await released;
    return { waited: true };
  },
});

let cairn: Cairn;
let mcp: McpHttpHandler;
let server: HttpServer;
beforeAll(async () => {
  cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  const all = [...operations, wait];
  mcp = mcpHttpHandler(mcpServerFactory({ cairn, operations: all }));
  server = await serve({
    cairn,
    operations: all,
    port: 0,
    localToken: async () => TEST_TOKEN,
    trustedProxies: ["127.0.0.1"],
    rateLimit: { perSecond: 0.001, burst: BURST },
    mount: { "/mcp": (request, { caller }) => mcp.fetch(request, caller) },
  });
  await cairn.checkpoints.save({ projectPath: project, summary: "secret plan" });
});
afterEach(async () => {
  await Promise.all(children.splice(0).map(killProcess));
});
afterAll(async () => {
  await mcp.close();
  await server.close();
  await cairn.close();
  await removeFolder(folder);
});

/** The only snippet of this language in docs/http.md, with its addresses replaced. */
function documented(language: string, replacements: Readonly<Record<string, string>>): string {
  const found = [...readFileSync(join(root, "docs/http.md"), "utf8").matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].filter(
    ([, name]) => name === language,
  );
  expect(found).toHaveLength(1);
  let text = found[0]![2]!;
  for (const [from, to] of Object.entries(replacements)) {
    expect(text).toContain(from);
    text = text.replaceAll(from, to);
  }
  return text;
}

async function programPath(name: string): Promise<string> {
  try {
    return (await promisify(execFile)(join(root, "scripts/proxies.sh"), ["path", name])).stdout.trim();
  } catch (error) {
    throw new Error(`These tests need nginx and Caddy, and scripts/proxies.sh failed:\n${(error as { stderr?: string }).stderr ?? error}`);
  }
}

async function start(program: string, args: readonly string[], url: string, env: Record<string, string>): Promise<string> {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"], env: { PATH: process.env.PATH!, ...env } });
  children.push(child);
  let said = "";
  child.stderr!.on("data", (chunk) => (said += chunk));
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}: ${said}`);
    if (
      await fetch(`${url}/health/live`, { headers: bearer(TEST_TOKEN) }).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return url;
    await sleep(50);
  }
}

async function nginx(locations: string): Promise<string> {
  const [program, port] = [await programPath("nginx"), await lastingPort()];
  const home = mkdtempSync(join(folder, "nginx-"));
  mkdirSync(join(home, "temp"));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${home}/temp/${name};`);
  const config = `daemon off; master_process off; pid ${home}/pid; error_log stderr;
events {}
http { access_log off; ${temporary.join(" ")}
server { listen 127.0.0.1:${port};
${locations}
} }`;
  writeFileSync(join(home, "nginx.conf"), config);
  return start(program, ["-p", home, "-e", "stderr", "-c", join(home, "nginx.conf")], `http://127.0.0.1:${port}`, {});
}

async function caddy(site: (address: string) => string): Promise<string> {
  const [program, port] = [await programPath("caddy"), await lastingPort()];
  const home = mkdtempSync(join(folder, "caddy-"));
  const url = `http://127.0.0.1:${port}`;
  writeFileSync(join(home, "Caddyfile"), `{\n\tadmin off\n}\n${site(url)}`);
  const env = { HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home };
  return start(program, ["run", "--adapter", "caddyfile", "--config", join(home, "Caddyfile")], url, env);
}

const upstream = () => `127.0.0.1:${server.port}`;
const PROXIES: readonly { name: string; isDocumented: boolean; start(): Promise<string> }[] = [
  { name: "nginx with nothing but proxy_pass", isDocumented: false, start: () => nginx(`location / { proxy_pass http://${upstream()}; }`) },
  { name: "nginx as documented", isDocumented: true, start: () => nginx(documented("nginx", { "127.0.0.1:7483": upstream() })) },
  {
    name: "Caddy with nothing but reverse_proxy",
    isDocumented: false,
    start: () => caddy((url) => `${url} {\n\treverse_proxy ${upstream()}\n}\n`),
  },
  {
    name: "Caddy as documented",
    isDocumented: true,
    start: () => caddy((url) => documented("caddyfile", { "memory.example.org": url, "127.0.0.1:7483": upstream() })),
  },
];

/** One of several client addresses of this machine, so that the floods of one test do not limit the next. */
let client = 1;
function send(
  url: string,
  method: string,
  path: string,
  body: unknown,
  headers: Record<string, string>,
  localAddress: string,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? "" : JSON.stringify(body);
    const all = { ...(text && { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) }), ...headers };
    httpRequest(url + path, { method, headers: all, localAddress }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode!));
    })
      .on("error", reject)
      .end(text);
  });
}

describe.each(PROXIES)("behind $name", ({ start }) => {
  it("refuses an anonymous request that lists keys, reads checkpoints or creates an admin key", async () => {
    const url = await start();
    const address = `127.0.1.${client++}`;
    const attempts: readonly [string, string, unknown][] = [
      ["GET", "/v1/key/list", undefined],
      ["POST", "/v1/checkpoint/list", { project_path: project }],
      ["POST", "/v1/checkpoint/search_all", { query: "secret" }],
      ["POST", "/v1/key/create", { label: "mine", access: "admin", all_projects: true }],
      ["POST", "/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" }],
      ["GET", "/metrics", undefined],
    ];
    for (const [method, path, body] of attempts)
      for (const headers of [{}, { "x-forwarded-for": "127.0.0.1" }, { authorization: "Bearer guess" }] as Record<string, string>[])
        expect([path, await send(url, method, path, body, headers, address)]).toEqual([path, 401]);
    expect(await cairn.keys.list()).toEqual([]);
  });

  it("serves a caller with a key or the local token", async () => {
    const url = await start();
    const { key } = await cairn.keys.create({ label: "k", access: "write", projects: [project] });
    for (const credential of [key, TEST_TOKEN])
      expect(await send(url, "POST", "/v1/checkpoint/list", { project_path: project }, bearer(credential), "127.0.0.1")).toBe(200);
    for (const { id } of await cairn.keys.list()) await cairn.keys.revoke(id);
  });
});

describe.each(PROXIES.filter(({ isDocumented }) => isDocumented))("behind $name", ({ start }) => {
  it.each(["2025-11-25", "2026-07-28"] as const)("delivers MCP events while the call still runs (%s)", async (era) => {
    const connected = await connect(await start(), era);
    const progress: unknown[] = [];
    const call = connected.callTool({ name: "gate_wait", arguments: {} }, { onprogress: (event) => void progress.push(event) });
    await expect.poll(() => progress.length).toBe(1);
    gate.release();
    expect((await call).structuredContent).toEqual({ waited: true });
    await connected.close();
  });

  it("limits each client by its own address, whatever it puts into X-Forwarded-For", async () => {
    const url = await start();
    const [flooding, other] = [`127.0.2.${client++}`, `127.0.2.${client++}`];
    const statuses = [];
    for (let n = 0; n <= BURST; n++)
      statuses.push(await send(url, "GET", "/nothing", undefined, { "x-forwarded-for": `198.51.100.${n}` }, flooding));
    expect(statuses).toEqual([...new Array(BURST).fill(404), 429]);
    expect(await send(url, "GET", "/nothing", undefined, {}, other)).toBe(404);
  });
});

async function connect(url: string, era: Era): Promise<Client> {
  const connected = newClient(era);
  await connected.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers: bearer(TEST_TOKEN) } }));
  return connected;
}

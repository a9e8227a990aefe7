import { request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { type HttpServer, type ServeOptions, serve } from "../../src/http/serve.ts";
import { type Cairn, open } from "../../src/index.ts";
import { operations } from "../../src/operations/list.ts";
import { type CallContext, type Operation, operation } from "../../src/operations/operation.ts";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";

const project = "/home/me/project";
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(options: Partial<ServeOptions> = {}): Promise<HttpServer & { readonly cairn: Cairn }> {
  const cairn = options.cairn ?? (await open({ storage: "memory", embedder: { kind: "none" } }));
  const server = await serve({ port: 0, localToken: async () => TEST_TOKEN, ...options, cairn });
  closing.push(
    () => server.close(),
    () => cairn.close(),
  );
  return { ...server, cairn };
}

/** An operation that waits until the test lets it end. */
function gated() {
  const state = { running: 0, most: 0, cancelled: 0, open: () => {} };
  const gate = new Promise<void>((resolve) => {
    state.open = resolve;
  });
  const wait: Operation = operation({
    name: "gate_wait",
    summary: "Waits.",
    input: z.strictObject({}),
    output: z.object({ waited: z.boolean() }),
    access: "read",
    annotations: { readOnly: true, destructive: false, idempotent: true },
    limits: { timeoutMs: 60_000 },
    toolset: "none",
    http: { method: "GET", path: "/v1/gate/wait" },
    render: () => "",
    async run(_cairn, _input, { signal }: CallContext) {
      state.running++;
      state.most = Math.max(state.most, state.running);
      signal.addEventListener("abort", () => state.cancelled++);
      await gate;
      state.running--;
      return { waited: true };
    },
  });
  return { state, wait };
}

const authorized = bearer(TEST_TOKEN);
const health = async (url: string) => (await fetch(`${url}/health`)).status;
const post = (url: string, path: string, body: unknown) =>
  fetch(url + path, { method: "POST", body: JSON.stringify(body), headers: { ...authorized, "content-type": "application/json" } });

/** Sends raw text and returns the answer until the other side closes. */
function raw(port: number, text: string): { readonly socket: Socket; readonly answer: Promise<string> } {
  const socket = connect(port, "127.0.0.1");
  socket.write(text);
  const answer = new Promise<string>((resolve) => {
    let got = "";
    socket.on("data", (data) => {
      got += data;
    });
    socket.on("error", () => resolve(got));
    socket.on("close", () => resolve(got));
  });
  return { socket, answer };
}

describe("the server", () => {
  it("serves on loopback, with metrics, and ends", async () => {
    const server = await start();
    expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
    expect((await post(server.url, "/v1/checkpoint/save", { project_path: project, summary: "x" })).status).toBe(200);
    await fetch(`${server.url}/nothing`);
    const metrics = await fetch(`${server.url}/metrics`, { headers: authorized });
    expect(metrics.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = await metrics.text();
    expect(text).toMatch(/^http_refused_total\{type="not_found"\} 1$/m);
    for (const name of ["checkpoint_latency_bucket", "checkpoint_error_rate", "process_cpu_seconds_total", "process_resident_memory_bytes"])
      expect(text).toMatch(new RegExp(`^${name}[ {]`, "m"));
    await server.close();
    await expect(fetch(`${server.url}/health`)).rejects.toThrow();
  });

  it("says clearly that the port is in use", async () => {
    const server = await start();
    await expect(start({ port: server.port })).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(new RegExp(`Port ${server.port} on 127.0.0.1 is in use`)),
    });
    expect(await health(server.url)).toBe(200);
  });

  it("says clearly that this machine does not have the address", async () => {
    await expect(start({ host: "192.0.2.1" })).rejects.toThrow(/no address 192\.0\.2\.1/);
  });

  it("answers 413 to a body of 100 MB, keeps little of it, and lives", async () => {
    const server = await start();
    const before = process.memoryUsage().rss;
    const chunk = Buffer.alloc(1024 * 1024, 0x20);
    for (const headers of [{ "content-length": String(100 * chunk.length) }, { "transfer-encoding": "chunked" }]) {
      const status = await new Promise<number | string>((resolve) => {
        const request = httpRequest(`${server.url}/v1/checkpoint/save`, {
          method: "POST",
          headers: { ...authorized, "content-type": "application/json", ...headers },
        });
        request.on("response", (response) => {
          response.resume();
          resolve(response.statusCode!);
        });
        request.on("error", (error: NodeJS.ErrnoException) => resolve(error.code!));
        let sent = 0;
        const send = () => {
          while (sent < 100 && !request.destroyed) {
            sent++;
            if (!request.write(chunk)) return void request.once("drain", send);
          }
          request.end();
        };
        send();
      });
      expect(status).toBe(413);
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(80 * 1024 * 1024);
    expect(await health(server.url)).toBe(200);
  });

  it("cancels the operation when its client hangs up", async () => {
    const { state, wait } = gated();
    const server = await start({ operations: [wait] });
    const client = new AbortController();
    const call = fetch(`${server.url}/v1/gate/wait`, { headers: authorized, signal: client.signal });
    await expect.poll(() => state.running).toBe(1);
    client.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => state.cancelled).toBe(1);
    expect(await health(server.url)).toBe(200);
    state.open();
  });

  it.each([
    ["its headers", "POST /v1/checkpoint/save HTTP/1.1\r\nHost: localhost\r\nX-Slow: "],
    [
      "its body",
      `POST /v1/checkpoint/save HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TEST_TOKEN}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    ],
  ])("hangs up on a client that is slow with %s, and serves the others meanwhile", async (_part, text) => {
    const server = await start({ requestTimeoutMs: 1_000 });
    const slow = raw(server.port, text);
    const drip = setInterval(() => slow.socket.writable && slow.socket.write(" "), 50);
    expect(await health(server.url)).toBe(200);
    expect(await slow.answer).toMatch(/^HTTP\/1\.1 408 |^$/);
    clearInterval(drip);
    expect(await health(server.url)).toBe(200);
  });

  it.each([
    ["garbage", "\u0016\u0003\u0001 hello\r\n\r\n"],
    ["no host", "GET /health HTTP/1.1\r\n\r\n"],
    ["huge headers", `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${"a".repeat(100_000)}\r\n\r\n`],
    ["two lengths", "POST /v1/checkpoint/list HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"],
    ["length and chunks", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"],
    ["a bad target", "GET http://[/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"],
    ["a path out of the root", "GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"],
  ])("refuses %s and lives", async (_name, text) => {
    const server = await start();
    expect(await raw(server.port, text).answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(await health(server.url)).toBe(200);
  });

  it("never runs more requests at once than it may", async () => {
    const { state, wait } = gated();
    const server = await start({ operations: [wait], maxConcurrent: 8, maxConcurrentPerCaller: 8 });
    const calls = Array.from({ length: 40 }, () => fetch(`${server.url}/v1/gate/wait`, { headers: authorized }));
    const rejected: Response[] = [];
    for (const call of calls) void call.then((response) => response.status === 503 && rejected.push(response));
    await expect.poll(() => rejected.length).toBe(32);
    expect(await health(server.url)).toBe(200);
    state.open();
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(8);
    expect(state.most).toBe(8);
    expect(rejected.every(({ headers }) => headers.get("retry-after") === "1")).toBe(true);
  });

  it("lets requests in progress end before it closes, and takes no new ones", async () => {
    const { state, wait } = gated();
    const server = await start({ operations: [...operations, wait] });
    const call = fetch(`${server.url}/v1/gate/wait`, { headers: authorized });
    await expect.poll(() => state.running).toBe(1);
    let closed = false;
    const closing = server.close().then(() => {
      closed = true;
    });
    await expect(fetch(`${server.url}/health`)).rejects.toThrow();
    expect(closed).toBe(false);
    state.open();
    expect(await (await call).json()).toEqual({ waited: true });
    await closing;
    expect(closed).toBe(true);
  });

  it("does not wait for ever: what is not done in time is cancelled", async () => {
    const { state, wait } = gated();
    const server = await start({ operations: [wait], drainMs: 100 });
    const call = fetch(`${server.url}/v1/gate/wait`, { headers: authorized }).catch(() => "cut");
    await expect.poll(() => state.running).toBe(1);
    await server.close();
    expect(await call).toBe("cut");
    await expect.poll(() => state.cancelled).toBe(1);
    state.open();
    await sleep(0);
  });
});

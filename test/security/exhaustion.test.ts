import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { Caller } from "../../src/operations/invoke.ts";
import { operation } from "../../src/operations/operation.ts";
import { type Api, api, REMOTE } from "../http/api.ts";
import { type HttpServer, startHttp } from "../mcp/connections.ts";

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};

describe("a key that opens MCP sessions without limit", () => {
  let server: HttpServer;
  afterEach(() => server?.close());

  const callers: Record<string, Caller> = Object.fromEntries(
    ["greedy", "modest", "third"].map((keyId) => [keyId, { access: "read", projects: "all", keyId }]),
  );
  const send = (caller: string, body: unknown, session?: string) =>
    fetch(server.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "x-test-caller": caller,
        ...(session && { "mcp-session-id": session }),
      },
      body: JSON.stringify(body),
    });
  const begin = async (caller: string): Promise<string> => {
    const response = await send(caller, INITIALIZE);
    await response.text();
    return response.headers.get("mcp-session-id")!;
  };
  const isAlive = async (caller: string, session: string) => {
    const response = await send(caller, { jsonrpc: "2.0", id: 2, method: "tools/list" }, session);
    await response.text();
    return response.status === 200;
  };

  it("ends only its own sessions, the longest idle first", async () => {
    server = await startHttp({ callers, maxSessionsPerKey: 3 });
    const modest = await begin("modest");
    const local = await begin("");
    const greedy: string[] = [];
    for (let count = 0; count < 10; count++) greedy.push(await begin("greedy"));
    expect([await isAlive("modest", modest), await isAlive("", local)]).toEqual([true, true]);
    const alive = await Promise.all(greedy.map((session) => isAlive("greedy", session)));
    expect(alive).toEqual([...Array(7).fill(false), true, true, true]);
  });

  it("cannot pass a hundred calls off as one in a batch", async () => {
    server = await startHttp({ callers });
    const call = (id: number) => ({ jsonrpc: "2.0", id, method: "tools/list" });
    const response = await send(
      "greedy",
      Array.from({ length: 100 }, (_, id) => call(id)),
    );
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { code: -32600, message: "Batches are not supported; send one message per request." },
    });
  });

  it("loses sessions to others once the server has reached its limit", async () => {
    server = await startHttp({ callers, maxSessionsPerKey: 4, maxSessions: 5 });
    const greedy = [await begin("greedy"), await begin("greedy"), await begin("greedy"), await begin("greedy")];
    const modest = await begin("modest");
    const third = await begin("third");
    expect([await isAlive("modest", modest), await isAlive("third", third)]).toEqual([true, true]);
    expect(await Promise.all(greedy.map((session) => isAlive("greedy", session)))).toEqual([false, true, true, true]);
  });
});

describe("a key that keeps calls and streams open", () => {
  let server: Api;
  afterEach(() => server?.cairn.close());

  const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` }, connection: REMOTE });
  const keyOf = async (label: string) => (await server.cairn.keys.create({ label, access: "read", projects: "all" })).key;

  it("cannot use up the requests of all others by long calls", async () => {
    let resolve = () => {};
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    const wait = operation({
      name: "gate_wait",
      summary: "Waits.",
      input: z.strictObject({}),
      output: z.object({}),
      access: "read",
      annotations: { readOnly: true, destructive: false, idempotent: true },
      limits: { timeoutMs: 60_000 },
      toolset: "none",
      http: { method: "GET", path: "/v1/gate" },
      render: () => "",
      run: async () => promise.then(() => ({})),
    });
    server = await api({ operations: [wait], maxConcurrent: 8 });
    const [greedy, modest] = [await keyOf("greedy"), await keyOf("modest")];
    const held = [1, 2].map(() => server.call("GET", "/v1/gate", undefined, bearer(greedy)));
    const refusals = await Promise.all([3, 4, 5, 6, 7, 8].map(() => server.call("GET", "/v1/gate", undefined, bearer(greedy))));
    expect(refusals.map(({ status }) => status)).toEqual(Array(6).fill(429));
    expect(refusals[0]!.headers.get("retry-after")).toBe("1");
    expect(refusals[0]!.body.error.message).toContain("2 calls in flight");
    const other = server.call("GET", "/v1/gate", undefined, bearer(modest));
    resolve();
    expect((await Promise.all([...held, other])).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await server.call("GET", "/v1/gate", undefined, bearer(greedy))).status).toBe(200);
  });

  it("cannot hold every connection by event streams, and gets its own back when it closes some", async () => {
    const stream = async () => new Response(new ReadableStream(), { headers: { "content-type": "text/event-stream" } });
    server = await api({ mount: { "/mcp": stream }, maxStreamsPerCaller: 4 });
    const [greedy, modest] = [await keyOf("greedy"), await keyOf("modest")];
    const open = (key: string, method: string) =>
      server.handle(new Request("http://127.0.0.1/mcp", { method, headers: bearer(key).headers }), REMOTE);
    const listening = [await open(greedy, "GET"), await open(greedy, "GET")];
    expect(listening.map(({ status }) => status)).toEqual([200, 200]);
    expect((await open(greedy, "GET")).status).toBe(429);
    // Calls that are answered by a stream have the other half.
    expect([(await open(greedy, "POST")).status, (await open(greedy, "POST")).status]).toEqual([200, 200]);
    expect((await open(greedy, "POST")).status).toBe(429);
    expect((await open(modest, "GET")).status).toBe(200);
    await listening[0]!.body!.cancel();
    expect((await open(greedy, "POST")).status).toBe(200);
    // Plain operations are no streams.
    expect((await server.call("POST", "/v1/checkpoint/list", { project_path: "/p" }, bearer(greedy))).status).toBe(200);
  });

  it("frees a stream that ended or failed", async () => {
    const bodies: ReadableStreamDefaultController[] = [];
    const stream = async () =>
      new Response(new ReadableStream({ start: (controller) => void bodies.push(controller) }), {
        headers: { "content-type": "text/event-stream" },
      });
    server = await api({ mount: { "/mcp": stream }, maxStreamsPerCaller: 2 });
    const key = await keyOf("greedy");
    const post = () => server.handle(new Request("http://127.0.0.1/mcp", { method: "POST", headers: bearer(key).headers }), REMOTE);
    const first = await post();
    const second = await post();
    expect((await post()).status).toBe(429);
    bodies[0]!.enqueue(new TextEncoder().encode("data: x\n\n"));
    bodies[0]!.close();
    expect(await first.text()).toBe("data: x\n\n");
    bodies[1]!.error(new Error("broken"));
    await expect(second.text()).rejects.toThrow();
    expect([(await post()).status, (await post()).status, (await post()).status]).toEqual([200, 200, 429]);
  });
});

it("a key that sends code without limit leaves half of the index queue to others", async () => {
  const { cairn, call } = await api();
  const create = async (label: string) => (await cairn.keys.create({ label, access: "write", projects: "all" })).key;
  const [greedy, modest] = [await create("greedy"), await create("modest")];
  const send = (key: string, project: string) =>
    call(
      "POST",
      "/index",
      { project_path: project, files: [{ path: "a.txt", content: "text" }] },
      { headers: { authorization: `Bearer ${key}` } },
    );
  const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => send(greedy, `project-${index}`)));
  const refusals = answers.filter(({ status }) => status === 503);
  expect(answers.filter(({ status }) => status === 202).length).toBeGreaterThanOrEqual(16);
  expect(refusals.length).toBeGreaterThan(0);
  expect(refusals[0]!.body.error.message).toContain("queued batches");
  expect((await send(modest, "other")).status).toBe(202);
  await cairn.close();
});

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { open } from "../../src/open/open.ts";
import { isAlive } from "../support/processes.ts";
import { connectStdio, STDIO_SERVER, temporaryFolder } from "./connections.ts";
import { attach, type RawProcess, startRaw } from "./raw-process.ts";

const project_path = "/home/someone/project";
const save = (id: unknown, summary: string) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name: "checkpoint_save", arguments: { project_path, summary } },
});

describe("the stdio server", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let server: RawProcess;
  beforeEach(async () => {
    folder = await temporaryFolder();
    server = startRaw(folder.path);
    await server.initialize();
  });
  afterEach(async () => {
    server.child.kill("SIGKILL");
    await server.exited();
    await folder.remove();
  });

  const stillServes = async () => {
    server.send({ jsonrpc: "2.0", id: "alive", method: "ping" });
    expect(await server.next()).toEqual({ jsonrpc: "2.0", id: "alive", result: {} });
  };

  it.each([
    ["broken JSON", "{nonsense\n", -32700],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0xff, 0xfe, 0x7d, 0x0a]), -32700],
    ["a batch", '[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600],
    ["a number", "7\n", -32600],
    ["another protocol", '{"hello":"world"}\n', -32600],
    ["an id that is no id", '{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}\n', -32600],
  ])("answers %s with an error and continues", async (_, line, code) => {
    await server.write(line);
    expect(await server.next()).toMatchObject({ jsonrpc: "2.0", error: { code, message: expect.any(String) } });
    await stillServes();
  });

  it("names the request in the error where it can be read", async () => {
    server.send({ id: 5, method: "ping" });
    expect(await server.next()).toMatchObject({ id: 5, error: { code: -32600 } });
    server.send({ jsonrpc: "2.0", id: 6, method: "no/such/method" });
    expect(await server.next()).toMatchObject({ id: 6, error: { code: -32601 } });
    server.send({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { arguments: {} } });
    expect(await server.next()).toMatchObject({ id: 7, error: { code: -32602 } });
    await stillServes();
  });

  it.each([
    ["at its start", (text: string) => `{"jsonrpc":"2.0","id":42,"method":"tools/call","params":"${text}"}\n`],
    ["at its end", (text: string) => `{"method":"tools/call","params":{"id":1,"text":"${text}"},"jsonrpc":"2.0","id":42}\n`],
  ])("refuses a line of 100 MB with its id %s, without holding it", async (_, line) => {
    await server.write(line("x".repeat(100 * 1024 * 1024)));
    expect(await server.next()).toMatchObject({ id: 42, error: { code: -32600, message: expect.stringContaining("longer than") } });
    await stillServes();
    if (process.platform === "linux") {
      const peakKb = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, "utf8"))?.[1]);
      expect(peakKb).toBeLessThan(300 * 1024);
    }
  });

  it("reads messages cut at any byte", async () => {
    const bytes = Buffer.from(`${JSON.stringify(save(1, "Grüße 🗿"))}\r\n`);
    for (const byte of bytes) await server.write(Buffer.from([byte]));
    expect(await server.next()).toMatchObject({ id: 1, result: { content: [{ text: expect.stringContaining("Grüße 🗿") }] } });
  });

  it("keeps everything but the protocol off stdout", async () => {
    server.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "probe_print", arguments: {} } });
    expect(await server.next()).toMatchObject({ id: 1, result: { structuredContent: { printed: true } } });
    expect(server.lines.every((line) => JSON.parse(line).jsonrpc === "2.0")).toBe(true);
    expect(server.stderr()).toMatch(/this line must not reach the protocol\n.*nor this one/s);
  });

  it("answers what it has read, closes the database and ends when its input ends", async () => {
    for (let index = 0; index < 20; index++) server.send(save(index, `Number ${index}`));
    server.child.stdin!.end();
    expect(await server.exited()).toBe(0);
    expect(server.stderr()).toMatch(/closed/);
    expect(server.lines.slice(1).map((line) => JSON.parse(line).result.structuredContent.id as string)).toHaveLength(20);
    const cairn = await open({ dataDir: folder.path, embedder: { kind: "none" } });
    expect(await cairn.checkpoints.list({ projectPath: project_path })).toMatchObject({ total: 20 });
    await cairn.close();
  });

  it("does not wait for work that never ends once its input has ended", async () => {
    server.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "probe_count", arguments: { steps: 1000 } } });
    server.child.stdin!.end();
    expect(await server.exited()).toBe(0);
  });

  it("ends when nobody reads its output any more", async () => {
    server.child.stdout!.destroy();
    server.send(save(1, "To nobody"));
    expect(await server.exited()).toBe(0);
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("closes in order on %s", async (signal) => {
    server.child.kill(signal);
    expect(await server.exited()).toBe(0);
    expect(server.stderr()).toMatch(/closed/);
  });

  it("answers what it has read before it ends on a signal, and ends at once on the second", async () => {
    for (let index = 0; index < 20; index++) server.send(save(index, `Number ${index}`));
    expect((await server.next()).id).toBeTypeOf("number"); // answers may overtake each other
    server.send({ jsonrpc: "2.0", id: "long", method: "tools/call", params: { name: "probe_count", arguments: { steps: 1000 } } });
    server.send({ jsonrpc: "2.0", id: "last", method: "ping" });
    const answered = () => server.lines.filter((line) => /"id":(\d|"last")/.test(line)).length;
    await expect.poll(answered).toBe(21);
    server.child.kill("SIGTERM");
    server.child.kill("SIGTERM");
    expect(await server.exited()).toBe(0);
    expect(server.lines.filter((line) => /"id":\d/.test(line))).toHaveLength(20);
    expect(server.stderr()).not.toMatch(/Error/);
  });

  it("serves a client that sends more calls than it reads answers", async () => {
    const calls = 2_000;
    for (let id = 0; id < calls; id++) server.send({ jsonrpc: "2.0", id, method: "tools/list" });
    const ids = new Set<unknown>();
    for (let taken = 0; taken < calls; taken++) ids.add((await server.next()).id);
    expect(ids.size).toBe(calls);
  });
});

it("ends with its parent even if its input stays open", async () => {
  const folder = await temporaryFolder();
  const hello = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "holder", version: "1" } },
  });
  // The wrapper stands for npx or a shell. A third process holds the pipe to the server and outlives the wrapper.
  const holder = `process.stdout.write(${JSON.stringify(`${hello}\n`)}); setTimeout(() => {}, 600_000)`;
  const wrapper = `const { spawn } = require("node:child_process");
    const holder = spawn(process.execPath, ["-e", ${JSON.stringify(holder)}], { stdio: ["ignore", "pipe", "ignore"] });
    const server = spawn(process.execPath, ${JSON.stringify([STDIO_SERVER, folder.path])}, { stdio: [holder.stdout, "inherit", "ignore"] });
    console.error("pids " + holder.pid + " " + server.pid);`;
  const raw = attach(spawn(process.execPath, ["-e", wrapper], { stdio: "pipe" }));
  expect(await raw.next()).toMatchObject({ id: 1, result: {} });
  await expect.poll(() => raw.stderr()).toMatch(/pids \d+ \d+\n/);
  const [holderPid, serverPid] = raw.stderr().match(/\d+/g)!.map(Number) as [number, number];
  try {
    expect(isAlive(serverPid)).toBe(true);
    raw.child.kill("SIGKILL");
    await expect.poll(() => isAlive(serverPid)).toBe(false);
    expect(isAlive(holderPid)).toBe(true);
  } finally {
    process.kill(holderPid, "SIGKILL");
  }
  await folder.remove();
});

it("takes the default project where a call names none, and only there", async () => {
  const { client, close } = await connectStdio("2026-07-28", project_path);
  const { tools } = await client.listTools();
  const schema = tools.find(({ name }) => name === "checkpoint_save")?.inputSchema;
  expect(schema?.required).toEqual(["summary"]);
  expect(schema?.properties?.project_path).toEqual({ type: "string" });
  expect(client.getInstructions()).toContain(project_path); // named once, not in every tool
  const saved = await client.callTool({ name: "checkpoint_save", arguments: { summary: "Here", detail: "full" } });
  expect(saved.structuredContent).toMatchObject({ project_path });
  const other = join(project_path, "other");
  const elsewhere = await client.callTool({ name: "checkpoint_list", arguments: { project_path: other } });
  expect(elsewhere.structuredContent).toMatchObject({ total: 0 });
  await close();
});

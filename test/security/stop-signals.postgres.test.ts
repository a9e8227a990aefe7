import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { createConnection, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { builtCommand } from "../cli/stage.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { killProcess, removeFolder } from "../support/processes.ts";

/** A process that does not stop fails its test by this limit; one that does ends within its grace period of 15 s. */
const TIMEOUT = { timeout: 280_000 };

let command: string;
let database: TestDatabase;
const children: ChildProcess[] = [];
const folders: string[] = [];
beforeAll(async () => {
  command = builtCommand();
  database = await testDatabase();
});
afterEach(() => Promise.all(children.splice(0).map(killProcess)));
afterAll(async () => {
  await Promise.all(folders.map(removeFolder));
  await database.drop();
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "cairn-stop-"));
  folders.push(path);
  mkdirSync(join(path, "project", ".git"), { recursive: true });
  return path;
}

interface Started {
  readonly child: ChildProcess;
  readonly exit: Promise<number | NodeJS.Signals>;
  output(): string;
}

function start(home: string, args: readonly string[], env: Record<string, string> = {}): Started {
  const child = spawn(process.execPath, [command, ...args], {
    cwd: join(home, "project"),
    env: { PATH: process.env.PATH, HOME: home, CAIRN_DATA_DIR: join(home, "data"), CAIRN_EMBEDDER_KIND: "none", ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  children.push(child);
  let output = "";
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (data) => (output += data));
  child.stdin!.on("error", () => {});
  const exit = new Promise<number | NodeJS.Signals>((resolve) => child.once("close", (code, signal) => resolve(signal ?? code!)));
  return { child, exit, output: () => output };
}

async function serving(started: Started): Promise<string> {
  await expect.poll(started.output).toMatch(/"url":"http/);
  return /"url":"([^"]+)"/.exec(started.output())![1]!;
}

/** The headers of an admin key, made before the server starts. */
async function headersOf(home: string, storage = "sqlite"): Promise<Record<string, string>> {
  const cairn = await open({ dataDir: join(home, "data"), storage, embedder: [] });
  const { key } = await cairn.keys.create({ label: "test", access: "admin", projects: "all" });
  await cairn.close();
  return { authorization: `Bearer ${key}`, "content-type": "application/json" };
}

function save(url: string, headers: Record<string, string>, project: string, summary: string): Promise<Response> {
  const body = JSON.stringify({ project_path: project, summary });
  return fetch(`${url}/v1/checkpoint/save`, { method: "POST", headers, body });
}

async function summaries(home: string, project: string, storage = "sqlite"): Promise<string[]> {
  const cairn = await open({ dataDir: join(home, "data"), storage, embedder: [] });
  const { checkpoints } = await cairn.checkpoints.list({ projectPath: project });
  await cairn.close();
  return checkpoints.map(({ summary }) => summary);
}

/** Takes the write lock of a project's file, as another process would. */
async function lockProject(home: string, project: string): Promise<{ readonly path: string; release(): void }> {
  const { DatabaseSync } = await loadEngine();
  const path = join(home, "data", "projects", `${projectDatabaseName(project)}.db`);
  const connection = new DatabaseSync(path);
  connection.exec("BEGIN IMMEDIATE");
  return { path, release: () => connection.close() };
}

function hasOpen({ pid }: ChildProcess, path: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === path);
  } catch {
    return false; // closed at this moment
  }
}

/** A server that accepts connections and never answers; or passes everything on until it is frozen. */
async function silentServer(upstream?: number): Promise<{ port: number; connections(): number; freeze(): void; close(): void }> {
  const sockets = new Set<Socket>();
  let frozen = upstream === undefined;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    if (frozen) return;
    const other = createConnection(upstream!, "127.0.0.1");
    sockets.add(other);
    for (const [from, to] of [
      [socket, other],
      [other, socket],
    ] as const) {
      from.on("data", (data) => frozen || to.write(data));
      from.on("close", () => frozen || to.destroy());
      from.on("error", () => {});
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as { port: number }).port,
    connections: () => sockets.size,
    freeze() {
      frozen = true;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

describe("a process that is stuck", TIMEOUT, () => {
  it("stops serving on SIGTERM while another process holds the database, and loses nothing that it acknowledged", async () => {
    const home = folder();
    const headers = await headersOf(home);
    const server = start(home, ["serve", "--port", "0", "--json"]);
    const url = await serving(server);
    expect((await save(url, headers, "/p", "Acknowledged")).status).toBe(200);
    const lock = await lockProject(home, "/p");
    const stuck = save(url, headers, "/p", "Not acknowledged").then(
      ({ status }) => status,
      () => "cut off",
    );
    await expect.poll(async () => (await fetch(`${url}/health`)).status).toBe(200); // the save came first
    server.child.kill("SIGTERM");
    expect(typeof (await server.exit)).toBe("number");
    expect([503, "cut off"]).toContain(await stuck);
    lock.release();
    expect(await summaries(home, "/p")).toEqual(["Acknowledged"]);
  });

  it("stops serving on SIGTERM while PostgreSQL accepts and does not answer", async () => {
    const home = folder();
    const target = new URL(database.url);
    const proxy = await silentServer(Number(target.port));
    target.port = String(proxy.port);
    const headers = await headersOf(home, database.url);
    const server = start(home, ["serve", "--port", "0", "--json"], { CAIRN_STORAGE: target.href });
    const url = await serving(server);
    expect((await save(url, headers, "/p", "Acknowledged")).status).toBe(200);
    proxy.freeze();
    const stuck = save(url, headers, "/p", "Not acknowledged").then(
      ({ status }) => status,
      () => "cut off",
    );
    server.child.kill("SIGTERM");
    expect(typeof (await server.exit)).toBe("number");
    expect([503, "cut off"]).toContain(await stuck);
    proxy.close();
    expect(await summaries(home, "/p", database.url)).toEqual(["Acknowledged"]);
  });

  it("ends `cairn mcp` by SIGTERM, SIGINT and the end of its input while the embedding provider does not answer", async () => {
    for (const stop of ["SIGTERM", "SIGINT", "end of input"] as const) {
      const home = folder();
      const provider = await silentServer();
      const mcp = start(home, ["mcp"], {
        CAIRN_EMBEDDER_KIND: "openai",
        CAIRN_EMBEDDER_BASE_URL: `http://127.0.0.1:${provider.port}/v1`,
        CAIRN_EMBEDDER_API_KEY: "none",
      });
      const send = (message: object) => mcp.child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
      const clientInfo = { name: "test", version: "1" };
      send({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } });
      await expect.poll(mcp.output).toContain('"id":1');
      send({ method: "notifications/initialized" });
      send({ id: 2, method: "tools/call", params: { name: "checkpoint_save", arguments: { summary: "Waits for the provider" } } });
      await expect.poll(provider.connections).toBeGreaterThan(0);
      if (stop === "end of input") mcp.child.stdin!.end();
      else mcp.child.kill(stop);
      expect(typeof (await mcp.exit), stop).toBe("number");
      const acknowledged = mcp.output().includes('"id":2') && !mcp.output().includes('"isError":true');
      expect(await summaries(home, join(home, "project"))).toHaveLength(acknowledged ? 1 : 0);
      provider.close();
    }
  });

  it("ends commands on SIGTERM while a server that they need does not answer", async () => {
    for (const args of [
      ["checkpoint", "list"],
      ["checkpoint", "save", "x"],
      ["code", "index", "--wait"],
      ["doctor"],
      ["migrate", "--to"],
    ]) {
      const home = folder();
      writeFileSync(join(home, "project", "a.ts"), "export const a = 1;\n");
      const silent = await silentServer();
      const url = `postgres://cairn@127.0.0.1:${silent.port}/none`;
      if (args[0] === "migrate") {
        const cairn = await open({ dataDir: join(home, "data"), embedder: [] });
        await cairn.checkpoints.save({ projectPath: join(home, "project"), summary: "Here" });
        await cairn.close();
      }
      const stuck = args[0] === "migrate" ? start(home, [...args, url]) : start(home, args, { CAIRN_STORAGE: url });
      await expect.poll(silent.connections, { message: args.join(" ") }).toBeGreaterThan(0);
      stuck.child.kill("SIGTERM");
      expect(await stuck.exit, args.join(" ")).toBe(130);
      silent.close();
      if (args[0] === "migrate") expect(await summaries(home, join(home, "project"))).toEqual(["Here"]);
    }
  });

  it("ends commands on SIGTERM while another process holds the database", async () => {
    for (const args of [
      ["checkpoint", "save", "x"],
      ["code", "index", "--wait"],
      ["migrate", "--to", database.url],
    ]) {
      const home = folder();
      const project = join(home, "project");
      writeFileSync(join(project, "a.ts"), "export const a = 1;\n");
      const cairn = await open({ dataDir: join(home, "data"), embedder: [] });
      await cairn.checkpoints.save({ projectPath: project, summary: "Here" });
      await cairn.close();
      const lock = await lockProject(home, project);
      const stuck = start(home, args);
      await expect.poll(() => hasOpen(stuck.child, lock.path), { message: args.join(" ") }).toBe(true);
      stuck.child.kill("SIGTERM");
      expect(await stuck.exit, args.join(" ")).toBe(130);
      lock.release();
      expect(await summaries(home, project), args.join(" ")).toEqual(["Here"]);
    }
  });

  it("ends at once on a second signal", async () => {
    const home = folder();
    const silent = await silentServer();
    const stuck = start(home, ["checkpoint", "list"], { CAIRN_STORAGE: `postgres://cairn@127.0.0.1:${silent.port}/none` });
    await expect.poll(silent.connections).toBeGreaterThan(0);
    stuck.child.kill("SIGTERM");
    stuck.child.kill("SIGTERM");
    expect(await stuck.exit).toBe(130);
    expect(stuck.output()).not.toContain("still waiting"); // the grace period did not pass
    silent.close();
  });
});

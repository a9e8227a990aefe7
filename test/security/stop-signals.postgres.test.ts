import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { builtCommand } from "../cli/stage.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { killed, removeFolder } from "../support/processes.ts";

/** A process that does not stop fails its test by this limit; one that does ends within its grace period of 15 s. */
const TIMEOUT = { timeout: 120_000 };

let command: string;
let database: TestDatabase;
const children: ChildProcess[] = [];
const folders: string[] = [];
beforeAll(async () => {
  command = builtCommand();
  database = await testDatabase();
});
afterEach(() => Promise.all(children.splice(0).map(killed)));
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

const saveVia = (url: string, project: string, summary: string) =>
  fetch(`${url}/v1/checkpoint/save`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ project_path: project, summary }),
  });

/** A server that accepts connections and never answers; or passes everything on until it is frozen. */
async function silentServer(upstream?: number): Promise<{ port: number; connections(): number; freeze(): void; close(): void }> {
  const sockets = new Set<Socket>();
  let frozen = upstream === undefined;
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    if (frozen) return;
    const other = spawnTo(upstream!);
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

function spawnTo(port: number): Socket {
  const { connect } = process.getBuiltinModule("node:net");
  return connect(port, "127.0.0.1");
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A server process and the function that saves one checkpoint through it. */
export interface WritingServer {
  readonly child: ChildProcess;
  /** Resolves with the id once the save was acknowledged; rejects when the server dies first. */
  save(summary: string): Promise<string>;
}

export interface ServerOptions {
  readonly home: string;
  readonly project: string;
  readonly env?: Readonly<Record<string, string>>;
}

const main = join(import.meta.dirname, "../../dist/bundle/main.cjs");

function start(args: readonly string[], { home, project, env }: ServerOptions, stdin: "pipe" | "ignore"): ChildProcess {
  return spawn(process.execPath, [main, ...args], {
    cwd: project,
    env: { PATH: process.env.PATH, HOME: home, CAIRN_EMBEDDER_KIND: "none", CAIRN_LOG_LEVEL: "silent", ...env },
    stdio: [stdin, "pipe", "inherit"],
  });
}

/** Starts `cairn serve` and saves through its HTTP API with the given key. */
export async function serveOverHttp(key: string, options: ServerOptions): Promise<WritingServer> {
  const limits = { CAIRN_HTTP_RATE_LIMIT_PER_SECOND: "100000", CAIRN_HTTP_RATE_LIMIT_BURST: "100000" };
  const child = start(["serve", "--port", "0", "--json"], { ...options, env: { ...limits, ...options.env } }, "ignore");
  const [line] = await once(createInterface(child.stdout!), "line");
  const { url } = JSON.parse(line);
  return {
    child,
    async save(summary) {
      const response = await fetch(`${url}/v1/checkpoint/save`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: JSON.stringify({ project_path: options.project, summary }),
      });
      const body = (await response.json()) as { id?: string };
      if (!response.ok || !body.id) throw new Error(`${response.status} ${JSON.stringify(body)}`);
      return body.id;
    },
  };
}

/** Starts `cairn mcp` and saves by tool calls over stdio. */
export async function serveOverStdio(options: ServerOptions): Promise<WritingServer> {
  const child = start(["mcp", "--project", options.project], options, "pipe");
  const waiting = new Map<number, (answer: Record<string, unknown> | undefined) => void>();
  createInterface({ input: child.stdout! }).on("line", (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  child.once("close", () => {
    for (const resolve of waiting.values()) resolve(undefined);
  });
  child.stdin!.on("error", () => {}); // the process may be dead before the write
  let next = 1;
  const request = (method: string, params: unknown) =>
    new Promise<Record<string, unknown> | undefined>((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve(undefined);
      const id = next++;
      waiting.set(id, resolve);
      child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  const clientInfo = { name: "test", version: "1" };
  if (!(await request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo })))
    throw new Error("cairn mcp ended before it answered initialize.");
  child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
  return {
    child,
    async save(summary) {
      const answer = await request("tools/call", { name: "checkpoint_save", arguments: { summary } });
      const id = (answer?.result as { structuredContent?: { id?: string } } | undefined)?.structuredContent?.id;
      if (!id) throw new Error(`no id in ${JSON.stringify(answer)}`);
      return id;
    },
  };
}

export interface Writers {
  readonly acknowledged: readonly string[];
  /** Resolves when all of them have stopped: their server died or `stop` was called. Rejects if a save failed before. */
  readonly done: Promise<void>;
  reached(saves: number): Promise<void>;
  stop(): void;
}

/** Saves continuously, with `each` concurrent writers per server, until the servers die. */
export function writeUntilDeath(servers: readonly WritingServer[], each: number): Writers {
  const acknowledged: string[] = [];
  const waiting: { readonly saves: number; readonly resolve: () => void }[] = [];
  let stopped = false;
  const write = async ({ child, save }: WritingServer) => {
    while (!stopped)
      try {
        acknowledged.push(await save(`Save ${acknowledged.length}`));
        for (const { saves, resolve } of waiting) if (acknowledged.length >= saves) resolve();
      } catch (error) {
        if (child.killed || stopped) return;
        throw error;
      }
  };
  const done = Promise.all(servers.flatMap((server) => Array.from({ length: each }, () => write(server)))).then(() => {});
  return {
    acknowledged,
    done,
    reached: (saves) => Promise.race([new Promise<void>((resolve) => waiting.push({ saves, resolve })), done]),
    stop: () => {
      stopped = true;
    },
  };
}

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { STDIO_SERVER } from "./connections.ts";

type Answer = { id?: unknown; result?: unknown; error?: { code: number; message: string } };

/** A server process spoken to by hand, for everything that a well-behaved client cannot send. */
export interface RawProcess {
  readonly child: ChildProcess;
  readonly lines: string[];
  stderr(): string;
  send(message: unknown): void;
  write(bytes: string | Buffer): Promise<void>;
  /** The next answer that was not yet taken. */
  next(): Promise<Answer>;
  initialize(): Promise<void>;
  /** Its exit code, once it has ended and everything it said was read. */
  exited(): Promise<number | null>;
}

export function startRaw(dataDir: string): RawProcess {
  return attach(spawn(process.execPath, [STDIO_SERVER, dataDir], { stdio: "pipe" }));
}

export function attach(child: ChildProcess): RawProcess {
  const lines: string[] = [];
  const waiting: ((answer: Answer) => void)[] = [];
  const unread: Answer[] = [];
  let errors = "";
  child.stderr?.on("data", (chunk) => {
    errors += chunk;
  });
  child.stdin?.on("error", () => {}); // the server may go before we stop writing
  createInterface({ input: child.stdout! }).on("line", (line) => {
    lines.push(line);
    const answer = JSON.parse(line) as Answer;
    const taker = waiting.shift();
    if (taker) taker(answer);
    else unread.push(answer);
  });
  // Not when it ends, but when all it has said was read.
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const raw: RawProcess = {
    child,
    lines,
    stderr: () => errors,
    send: (message) => void child.stdin!.write(`${JSON.stringify(message)}\n`),
    write: (bytes) => new Promise((resolve) => child.stdin!.write(bytes, () => resolve())),
    next() {
      const answer = unread.shift();
      return answer ? Promise.resolve(answer) : new Promise((resolve) => waiting.push(resolve));
    },
    async initialize() {
      const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
      raw.send({ jsonrpc: "2.0", id: "init", method: "initialize", params });
      await raw.next();
      raw.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    },
    async exited() {
      await closed;
      return child.exitCode;
    },
  };
  return raw;
}

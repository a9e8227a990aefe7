import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { killProcess } from "../support/processes.ts";

const MAIN = join(import.meta.dirname, "../../dist/bundle/main.cjs");
const LOOP_DELAY = join(import.meta.dirname, "loop-delay.mjs");

export interface Folders {
  readonly dataDir: string;
  readonly stateDir: string;
  readonly home: string;
}

export interface AttackedServer {
  readonly port: number;
  /** Returns the log of the server. */
  readonly log: () => string;
  readonly isRunning: () => boolean;
  /** Blocks of the event loop, where they are measured. */
  readonly blocks: () => Block[];
  stop(): Promise<void>;
}

/** A time in which the server's event loop did not turn, although the process was not waiting for a processor. */
export interface Block {
  /** Milliseconds since the epoch. */
  readonly endedAt: number;
  readonly blockedMs: number;
}

/** Starts `cairn serve` as a child process, with rate limits that let an attack through. */
export async function startServer({ dataDir, stateDir, home }: Folders, { measureLoop = false } = {}): Promise<AttackedServer> {
  const blocksFile = join(home, "blocks.jsonl");
  const child = spawn(process.execPath, [...(measureLoop ? ["--import", LOOP_DELAY] : []), MAIN, "serve", "--port", "0", "--json"], {
    cwd: home,
    env: {
      PATH: process.env.PATH,
      HOME: home,
      CAIRN_DATA_DIR: dataDir,
      CAIRN_STATE_DIR: stateDir,
      CAIRN_EMBEDDER_KIND: "none",
      CAIRN_HTTP_RATE_LIMIT_PER_SECOND: "1000000",
      CAIRN_HTTP_RATE_LIMIT_BURST: "1000000",
      CAIRN_MCP_TOOLSETS: "core,code,knowledge,runs,systems,admin",
      CAIRN_LOG_LEVEL: "info", // the log is part of what an attack reaches
      CAIRN_TEST_BLOCKS_FILE: blocksFile,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-200_000);
  });
  const url = await addressOf(child, () => log);
  return {
    port: Number(new URL(url).port),
    log: () => log,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    blocks: () => (existsSync(blocksFile) ? readBlocks(blocksFile) : []),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      const timer = setTimeout(() => void killProcess(child), 60_000);
      await ended;
      clearTimeout(timer);
    },
  };
}

function readBlocks(path: string): Block[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

function addressOf(child: ChildProcess, log: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = "";
    child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (output.includes("\n")) resolve(JSON.parse(output.slice(0, output.indexOf("\n"))).url);
    });
    child.once("exit", () => reject(new Error(`The server ended before it listened:\n${log()}`)));
  });
}

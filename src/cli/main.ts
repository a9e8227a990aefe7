#!/usr/bin/env node
import { join } from "node:path";
import { cacheModules, loadBundle } from "./load-bundle.ts";

/** The entry point. It must not import syntax that an old Node cannot parse, statically. */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`cairn needs Node 20.19 or newer; this is ${process.versions.node}. Please upgrade Node: https://nodejs.org\n`);
  process.exit(1);
}

// An agent's server lives for hours and mostly waits. V8 would let its young generation grow to some 30 MB and keep it.
if (process.argv.includes("mcp")) process.getBuiltinModule("node:v8").setFlagsFromString("--semi-space-growth-factor=1");

let interrupted: AbortController | undefined;
const interruption = () => {
  interrupted ??= new AbortController();
  return interrupted;
};
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    // The first signal lets the command end within the grace period; the second one ends it at once.
    if (interruption().signal.aborted) process.exit(130);
    interruption().abort();
    void import("../scheduling/force-exit.ts").then(({ forceExitAfterGrace }) => forceExitAfterGrace());
  });

cacheModules();
const { runCli, openFilesProblem } = loadBundle(join(import.meta.dirname, "../bundle/start.cjs")) as typeof import("./start.ts");

// Loading the modules of a command opens more files at once than a very low limit allows.
const problem = openFilesProblem();
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}

/** Ends the process quietly when the reader of the output stops early: `cairn checkpoint list | head -1`. */
function untilClosed(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  if (stream.listenerCount("error") > 0) return stream;
  return stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
}

void runCli(process.argv.slice(2), {
  // Node creates streams and signals on first use, and help needs few of them.
  get stdin() {
    return process.stdin;
  },
  get stdout() {
    return untilClosed(process.stdout);
  },
  get stderr() {
    return untilClosed(process.stderr);
  },
  env: process.env,
  cwd: process.cwd(),
  get home() {
    return process.getBuiltinModule("node:os").homedir();
  },
  now: () => new Date(),
  get signal() {
    return interruption().signal;
  },
}).then((exitCode) => {
  process.exitCode = exitCode;
});

#!/usr/bin/env node
import module from "node:module";
import process from "node:process";

/** The entry point. It must not import syntax that an old Node cannot parse, statically. */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`cairn needs Node 20.19 or newer; this is ${process.versions.node}. Please upgrade Node: https://nodejs.org\n`);
  process.exit(1);
}

// Loading the modules of a command opens more files at once than a very low limit allows.
const { openFilesProblem } = await import("../files/open-files.ts");
const problem = openFilesProblem();
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}

// Node 22 and newer can cache compiled code for the next start.
(module as { enableCompileCache?: () => unknown }).enableCompileCache?.();

// The reader of the output may stop early: `cairn checkpoint list | head -1`.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });

const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    // The first signal lets the command end within the grace period; the second one ends it at once.
    if (interrupted.signal.aborted) process.exit(130);
    interrupted.abort();
    void import("../scheduling/force-exit.ts").then(({ forceExitAfterGrace }) => forceExitAfterGrace());
  });

const { runCli } = await import("./run.ts");
const { homedir } = await import("node:os");
process.exitCode = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  home: homedir(),
  now: () => new Date(),
  signal: interrupted.signal,
});

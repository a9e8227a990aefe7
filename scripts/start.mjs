#!/usr/bin/env node
// npm start [-- --once]: builds, runs the guided tour and serves on loopback until stopped.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const build = spawnSync(process.execPath, [join(root, "scripts", "build.mjs")], { encoding: "utf8" });
if (build.status !== 0) {
  process.stderr.write(`The build failed.\n${build.stdout}${build.stderr}`);
  process.exit(1);
}

// Runs in this process, so that no child process is left when it is stopped.
const main = join(root, "dist", "bundle", "main.cjs");
process.argv = [process.execPath, main, "tour", ...process.argv.slice(2)];
await import(`file://${main}`);

#!/usr/bin/env node
// Builds dist/ with plain tsc, the vector kernel, the grammars and the models. Each step is skipped when its result is current.
import { spawnSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");

run(process.execPath, [join(root, "scripts", "build-kernel.mjs")]);
run(process.execPath, [tsc, "-p", "tsconfig.build.json"]);
chmodSync(join(root, "dist", "cli", "main.js"), 0o755); // the command `cairn` is this file
run(process.execPath, ["scripts/build-cli.mjs"]);
run(process.execPath, ["scripts/build-grammars.mjs"]);
run(process.execPath, ["scripts/build-models.mjs"]);

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

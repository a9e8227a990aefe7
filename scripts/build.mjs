#!/usr/bin/env node
// Builds dist/ with plain tsc, the console, the WebAssembly kernels, SQLite, the grammars, the vocabulary filter and the models. Each step is skipped when its result is current.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { KERNELS } from "./build-kernel.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");

/** Folders of dist/ that other steps build. */
const BUILT = ["bundle", "console", "kernel", "sqlite", "grammars", "models", "tokens"];

run(process.execPath, [tsc, "-p", "tsconfig.build.json"]);
removeStale(join(root, "dist"), join(root, "src"));
mkdirSync(join(root, "dist", "kernel"), { recursive: true });
for (const [source, built] of Object.entries(KERNELS)) copyFileSync(join(root, `${source}.wasm`), join(root, "dist", built));
run(process.execPath, ["scripts/build-sqlite.mjs"]);
run(process.execPath, ["scripts/build-tokens.mjs"]);
run(process.execPath, ["scripts/build-cli.mjs"]); // runs a command, which needs the three before
run(process.execPath, ["scripts/build-console.mjs"]);
run(process.execPath, ["scripts/build-grammars.mjs"]);
run(process.execPath, ["scripts/build-models.mjs"]);

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

/** Removes compiled files whose source was removed or renamed, and source maps: the package must not contain them. */
function removeStale(target, source) {
  for (const entry of readdirSync(target, { withFileTypes: true })) {
    const path = join(target, entry.name);
    const compiled = /^(.*?)(\.d\.ts|\.js|\.js\.map)$/.exec(entry.name);
    if (entry.isDirectory()) {
      if (existsSync(join(source, entry.name))) removeStale(path, join(source, entry.name));
      else if (!BUILT.includes(entry.name)) rmSync(path, { recursive: true });
    } else if (compiled && (compiled[2] === ".js.map" || !existsSync(join(source, `${compiled[1]}.ts`)))) rmSync(path);
  }
}

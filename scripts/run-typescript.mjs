// Compiles bench/ and examples/ for a Node without TypeScript support. Only their own files are compiled, into .cache/run,
// where `src` is a link to dist/: they run against the published code.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Builds dist/, compiles, and returns the path of the compiled file. Writes nothing to stdout. */
export function compileForNode(source) {
  node([join(root, "scripts", "build.mjs")]);
  const out = join(root, ".cache", "run");
  mkdirSync(out, { recursive: true });
  if (!existsSync(join(out, "src"))) symlinkSync(join(root, "dist"), join(out, "src"), "junction");
  const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
  node([tsc, "-p", join(root, "tsconfig.run.json")]);
  return join(out, source.replace(/\.ts$/, ".js"));
}

function node(args) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: ["ignore", 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
}

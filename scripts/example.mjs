#!/usr/bin/env node
// npm run example -- <name>: runs examples/<name>.ts against the build.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compileForNode, root } from "./run-typescript.mjs";

const [name = ""] = process.argv.slice(2);
if (!/^[\w-]+$/.test(name) || !existsSync(join(root, "examples", `${name}.ts`))) {
  const names = readdirSync(join(root, "examples")).flatMap((file) => (file.endsWith(".ts") ? [file.slice(0, -3)] : []));
  process.stderr.write(`Usage: npm run example -- <name>\nExamples: ${names.join(", ")}\n`);
  process.exit(2);
}
await import(pathToFileURL(compileForNode(`examples/${name}.ts`)).href);

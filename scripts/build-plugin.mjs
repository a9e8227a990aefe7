#!/usr/bin/env node
// Writes the hooks of the Claude Code plugin: the ones that cairn init writes. Part of npm run docs.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const file = join(root, "plugins/cairn/hooks/hooks.json");
const { withHooks } = await import(pathToFileURL(join(root, "dist/cli/init/entries.js")).href);
const { hooks } = withHooks({}, { command: "npx", args: ["-y", "cairn-memory"] });
const { description } = JSON.parse(readFileSync(file, "utf8"));
writeFileSync(file, `${JSON.stringify({ description, hooks }, null, 2)}\n`);

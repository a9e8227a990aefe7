#!/usr/bin/env node
// npm run --silent bench -- <name> [--json]
import { spawn } from "node:child_process";
import { compileForNode, root } from "./run-typescript.mjs";

const main = compileForNode("bench/main.ts");
const child = spawn(process.execPath, ["--enable-source-maps", main, ...process.argv.slice(2)], { cwd: root, stdio: "inherit" });
process.on("SIGINT", () => {}); // the terminal sends the signal to the child too, which decides when to end
child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));

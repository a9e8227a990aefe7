import { spawn, spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type Benchmark, root } from "./frame.ts";

const RUNTIME = ["onnxruntime-node", "onnxruntime-common"];

/** Installs the packed package as a user would: its size, the number of packages, and the time until npx answers `initialize`. */
export default {
  summary: "size of an installation from the packed tarball, and npx with an empty cache until the first answer",
  async run(bench) {
    const tarball = pack(bench.scratch());
    const folder = bench.scratch();
    writeFileSync(join(folder, "package.json"), "{}");
    npm(["install", "--no-audit", "--no-fund", tarball], folder);
    const modules = join(folder, "node_modules");
    bench.record({ name: "installed_mb", value: diskMb(modules), unit: "MB" });
    bench.record({ name: "packages", value: packages(modules).length, unit: "packages" });
    for (const name of RUNTIME) rmSync(join(modules, name), { recursive: true });
    bench.record({ name: "installed_mb_without_runtime", value: diskMb(modules), unit: "MB" });
    bench.record({ name: "tarball_mb", value: lstatSync(tarball).size / 2 ** 20, unit: "MB" });
    const cpuBefore = childrenCpuMs();
    bench.record({ name: "first_initialize_ms", value: await initialize(bench, tarball), unit: "ms" });
    if (cpuBefore !== undefined)
      bench.record({ name: "first_initialize_cpu_ms", value: childrenCpuMs()! - cpuBefore, unit: "ms of processor time" });
  },
} satisfies Benchmark;

/** Packs this checkout and returns the path of the tarball. */
function pack(folder: string): string {
  npm(["pack", "--ignore-scripts", "--pack-destination", folder], root);
  return join(folder, readdirSync(folder).find((name) => name.endsWith(".tgz"))!);
}

function npm(args: readonly string[], cwd: string): void {
  const { status } = spawnSync("npm", args, { cwd, stdio: ["ignore", 2, 2], shell: process.platform === "win32" });
  if (status !== 0) throw new Error(`npm ${args[0]} ended with ${status}.`);
}

/** Returns the disk space of a folder, as `du` counts it. */
function diskMb(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return entries.reduce((sum, entry) => sum + lstatSync(join(folder, entry)).blocks * 512, 0) / 2 ** 20;
}

function packages(modules: string): string[] {
  return readdirSync(modules, { recursive: true, encoding: "utf8" }).filter((path) =>
    /^(?:.*[\\/]node_modules[\\/])?(?:@[^\\/]+[\\/])?[^\\/@.][^\\/]*[\\/]package\.json$/.test(path),
  );
}

/** Starts `npx` with an empty cache and measures until the MCP server has answered `initialize`. */
async function initialize(bench: Bench, tarball: string): Promise<number> {
  const home = bench.scratch();
  mkdirSync(join(home, "project"));
  const env = { ...process.env, npm_config_cache: join(home, "npm"), CAIRN_DATA_DIR: join(home, "data") };
  const startedAt = performance.now();
  const child = spawn("npx", ["-y", "--package", tarball, "cairn", "mcp"], {
    cwd: join(home, "project"),
    env,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  try {
    child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
    for await (const line of child.stdout) if (String(line).includes('"serverInfo"')) return performance.now() - startedAt;
    throw new Error("The MCP server ended without an answer.");
  } finally {
    child.stdin.end();
    await exited;
  }
}

/** Returns the processor time of ended child processes, where the system reports it. Other load on the machine does not affect it. */
function childrenCpuMs(): number | undefined {
  if (process.platform !== "linux") return undefined;
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  const ticksPerSecond = 100;
  return ((Number(fields[13]) + Number(fields[14])) * 1_000) / ticksPerSecond;
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bench", version: "1" } },
};

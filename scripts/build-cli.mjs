// Writes the command table and the bundle of the command line to dist/. Skipped when dist/ has not changed since.
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { startModules } from "./cli/start-modules.mjs";

const dist = resolve(import.meta.dirname, "../dist");
const bundle = join(dist, "bundle");
/** Replaces `bundle` when it is complete: commands may run meanwhile. */
const draft = join(dist, "bundle.new");
const table = join(dist, "cli", "command-table.json");
const LOADER = join(dist, "cli", "load-bundle.js");
const buildInfo = join(dist, ".tsbuildinfo");

/** What a command on SQLite imports, besides the modules of help. */
const CORE = [
  "cli/run-command.js",
  "cli/operation-command.js",
  "cli/watch.js",
  "checkpoints/operations.js",
  "operations/invoke.js",
  "open/open-from-config.js",
  "open/open.js",
  "stores/sqlite/storage.js",
  "stores/sqlite/runs/store.js",
  "stores/sqlite/systems/storage.js",
];
/** Modules of Node that few commands use. Each takes about 0.6 ms to load. */
const DEFERRED_MODULES = [
  "child_process",
  "events",
  "fs/promises",
  "module",
  "net",
  "perf_hooks",
  "timers/promises",
  "util",
  "v8",
  "vm",
  "zlib",
];
/** What a command on SQLite imports and `checkpoint list` does not use. */
const DEFERRED_FILE = "rest";
const BUNDLED_PACKAGES = /^(zod|@opentelemetry\/api)(\/|$)/;

if (!isCurrent()) {
  rmSync(draft, { recursive: true, force: true });
  const { commands } = await import(pathToFileURL(join(dist, "cli", "commands.js")).href);
  writeFileSync(table, JSON.stringify(commands));
  await writeBundle();
}

/** tsc rewrites its build information whenever it writes a file. */
function isCurrent() {
  const entry = join(bundle, "main.cjs");
  return existsSync(table) && existsSync(entry) && statSync(entry).mtimeMs > statSync(buildInfo).mtimeMs;
}

/** Bundles the compiled files of the command line. Packages stay outside, except for the two that every command loads. */
async function writeBundle() {
  const start = importedBy(["cli/start.js", "cli/help.js"]);
  const needed = await startModules(dist, CORE);
  const core = importedBy(CORE);
  const groups = [
    { name: "help", priority: 3, test: (id) => start.has(id) },
    { name: "core", priority: 2, test: (id) => (core.has(id) && needed.has(id)) || id.includes("node_modules") },
    { name: DEFERRED_FILE, priority: 1, test: (id) => core.has(id) },
  ];
  await write("start", { groups, includeDependenciesRecursively: false });
  for (const file of readdirSync(draft)) wrap(join(draft, file));
  await write("main", false); // one file, because Node itself loads it
  chmodSync(join(draft, "main.cjs"), 0o755); // the command `cairn` is this file
  chmodSync(join(dist, "cli", "main.js"), 0o755); // npx keeps the path of an earlier checkout
  rmSync(bundle, { recursive: true, force: true });
  renameSync(draft, bundle);
}

/** Makes a file a function that `src/cli/load-bundle.ts` calls, in ASCII, which V8 stores and reads fastest. */
function wrap(file) {
  const source = readFileSync(file, "utf8").replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  writeFileSync(file, `(function (exports, require, module, __filename, __dirname, importModule) {${source}\n})`);
}

async function write(entry, codeSplitting) {
  const { rolldown } = await import("rolldown");
  const build = await rolldown({
    input: { [entry]: join(dist, "cli", `${entry}.js`) },
    platform: "node",
    external: (id) => id.endsWith("/commands.js") || (!/^[./]/.test(id) && !BUNDLED_PACKAGES.test(id)),
    preserveEntrySignatures: "allow-extension",
    plugins: [{ name: "import-module", transform: callImportModule, ...(codeSplitting && { renderChunk: deferAll }) }],
    checks: { ineffectiveDynamicImport: false },
  });
  const names = { entryFileNames: "[name].cjs", chunkFileNames: "[name]-[hash].cjs" };
  await build.write({ dir: draft, format: "cjs", ...names, minify: true, comments: false, codeSplitting });
}

/** Replaces `import()` of what stays outside the bundle with `importModule()`, which the loader provides: cached code cannot import. */
async function callImportModule(code, id) {
  if (id === LOADER || !code.includes("import(")) return null;
  const { Visitor } = await import("rolldown/utils");
  const found = [];
  new Visitor({
    ImportExpression({ start, source }) {
      if (!(source.type === "Literal" && String(source.value).startsWith("."))) found.push(start);
    },
  }).visit(this.parse(code));
  let result = code;
  for (const start of found.reverse()) result = `${result.slice(0, start)}importModule${result.slice(start + "import".length)}`;
  return { code: result };
}

function deferAll(code) {
  return readClock(deferModules(deferFile(code)));
}

/** Replaces `let node_net = require("node:net")` with a property that loads the module on first use. */
function deferModules(code) {
  return DEFERRED_MODULES.reduce((result, name) => {
    const id = `node_${name.replace("/", "_")}`;
    return defer(result, id, `let ${id} = require("node:${name}");`);
  }, code);
}

/** Does the same for the file with the modules that `checkpoint list` does not use. */
function deferFile(code) {
  const id = `require_${DEFERRED_FILE}`;
  const [declaration] = code.match(new RegExp(`const ${id} = require\\("[^"]+"\\);`)) ?? [];
  return declaration ? defer(code, id, declaration) : code;
}

function defer(code, id, declaration) {
  if (!code.includes(declaration)) return code;
  const required = declaration.slice(declaration.indexOf("require("));
  const load = `{ const value = ${required} Object.defineProperty(this, "module", { value }); return value; }`;
  const rest = code.replace(declaration, "").replace(new RegExp(`\\b${id}\\b`, "g"), `deferred_${id}.module`);
  return `const deferred_${id} = { get module() ${load} };\n${rest}`;
}

/** Replaces `performance.now()`, because Node loads ten modules for the global `performance`. The clock of `process.hrtime` is the same. */
function readClock(code) {
  if (!code.includes("performance.now()")) return code;
  const clock = "function bundledClock() { return Number(process.hrtime.bigint()) / 1e6; }";
  return `${clock}\n${code.replaceAll("performance.now()", "bundledClock()")}`;
}

/** Returns the files that these files of dist/ import, directly or not. Dynamic imports do not count. */
function importedBy(entries) {
  const found = new Set();
  const pending = entries.map((entry) => join(dist, entry));
  while (pending.length > 0) {
    const file = pending.pop();
    if (found.has(file)) continue;
    found.add(file);
    for (const [, path] of readFileSync(file, "utf8").matchAll(/^(?:import|export)[^;]*?from "(\.[^"]+)"/gm))
      pending.push(resolve(dirname(file), path));
  }
  return found;
}

// Writes the command table and the bundle of the command line to dist/. Skipped when dist/ has not changed since.
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const dist = resolve(import.meta.dirname, "../dist");
const bundle = join(dist, "bundle");
const table = join(dist, "cli", "command-table.json");
const LOADER = join(dist, "cli", "load-bundle.js");
const buildInfo = join(dist, ".tsbuildinfo");

/** What a command on SQLite loads, besides the modules of help. */
const CORE = [
  "cli/run-command.js",
  "cli/operation-command.js",
  "cli/watch.js",
  "checkpoints/operations.js",
  "checkpoints/upkeep-operations.js",
  "operations/invoke.js",
  "open/open-from-config.js",
  "open/open.js",
  "stores/sqlite/storage.js",
  "stores/sqlite/runs/store.js",
  "stores/sqlite/systems/storage.js",
];
const BUNDLED_PACKAGES = /^(zod|@opentelemetry\/api)(\/|$)/;

if (!isCurrent()) {
  rmSync(bundle, { recursive: true, force: true });
  const { commands } = await import(pathToFileURL(join(dist, "cli", "commands.js")).href);
  writeFileSync(table, JSON.stringify(commands));
  await writeBundle();
}

/** tsc rewrites its build information whenever it writes a file. */
function isCurrent() {
  const entry = join(bundle, "start.cjs");
  return existsSync(table) && existsSync(entry) && statSync(entry).mtimeMs > statSync(buildInfo).mtimeMs;
}

/** Bundles the compiled files of the command line. Packages stay outside, except for the two that every command loads. */
async function writeBundle() {
  const { rolldown } = await import("rolldown");
  const start = importedBy(["cli/start.js", "cli/help.js"]);
  const core = importedBy(CORE);
  const build = await rolldown({
    input: { start: join(dist, "cli", "start.js"), load: LOADER },
    platform: "node",
    external: (id) => id.endsWith("/commands.js") || (!/^[./]/.test(id) && !BUNDLED_PACKAGES.test(id)),
    plugins: [{ name: "import-module", transform: callImportModule }],
    checks: { ineffectiveDynamicImport: false },
  });
  const groups = [
    { name: "help", priority: 2, test: (id) => start.has(id) },
    { name: "core", priority: 1, test: (id) => core.has(id) || id.includes("node_modules") },
  ];
  const names = { entryFileNames: "[name].cjs", chunkFileNames: "[name]-[hash].cjs" };
  await build.write({ dir: bundle, format: "cjs", ...names, minify: true, comments: false, codeSplitting: { groups } });
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

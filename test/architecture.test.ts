import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { describe, expect, it } from "vitest";

/** The folders (or single files) of src/ that each folder may import from, besides itself. Anything not listed is a violation. */
const CAPABILITIES = ["checkpoints", "code", "events", "freshness", "knowledge", "review", "runs", "systems"];
/** Files of operations/ are listed one by one: capabilities build on operation(), and the list builds on the capabilities. */
const SCHEMAS = ["operations/schemas.ts", "operations/search-schemas.ts", "operations/write-schemas.ts"];
const OPERATION = ["operations/operation.ts", ...SCHEMAS, "operations/describe-issue.ts", "operations/database-selection.ts"];
const EDGE = ["operations/operation.ts", "operations/wire.ts", "operations/cairn.ts", ...SCHEMAS, "operations/zod-schema.ts"];
const MAY_IMPORT: Record<string, readonly string[]> = {
  model: [],
  files: ["model"],
  ports: ["model"],
  text: ["model", "files/built-file.ts"], // the vocabulary filter is a constant in a file
  scheduling: ["model", "files"],
  telemetry: ["model", "ports", "text"],
  recall: ["model", "ports", "text", "scheduling", ...OPERATION],
  freshness: ["model", "ports", "text", "scheduling", ...OPERATION],
  checkpoints: ["model", "ports", "text", "scheduling", "recall", "freshness", ...OPERATION],
  code: ["model", "ports", "text", "scheduling", "recall", "files/built-file.ts", ...OPERATION],
  knowledge: ["model", "ports", "text", "scheduling", "recall", "freshness", ...OPERATION],
  review: ["model", "checkpoints", "knowledge", "freshness", ...OPERATION],
  runs: ["model", "ports", "text", "scheduling", ...OPERATION],
  systems: ["model", "ports", "text", "scheduling", ...OPERATION],
  events: ["model", "ports"],
  admin: ["model", "ports", "text", "scheduling", "recall", ...OPERATION],
  migrate: ["model", "ports", "text", "scheduling", ...OPERATION],
  "stores/rows": ["model", "ports", "text"],
  "stores/memory": ["model", "ports", "text", "scheduling", "stores/rows"],
  "stores/file": ["model", "ports", "text", "scheduling", "files", "stores/rows"],
  "stores/sqlite": ["model", "ports", "text", "scheduling", "files", "stores/rows"],
  "stores/postgres": ["model", "ports", "text", "scheduling", "stores/rows"],
  "vectors/qdrant": ["model", "ports", "scheduling"],
  embedders: ["model", "ports", "text", "scheduling", "files"],
  config: ["model", "files", "text", "operations/wire.ts", "operations/zod-schema.ts"],
  "operations/operation.ts": ["model", "operations/wire.ts", "operations/cairn.ts"],
  "operations/wire.ts": ["model", "text", "operations/zod-schema.ts"],
  "operations/zod-schema.ts": [],
  "operations/schemas.ts": ["model", "text"],
  "operations/search-schemas.ts": [],
  "operations/write-schemas.ts": ["model", "operations/schemas.ts"],
  "operations/describe-issue.ts": ["model", "text"],
  "operations/database-selection.ts": ["model", "text", ...SCHEMAS],
  "operations/cairn.ts": ["model", ...CAPABILITIES, "recall", "admin", "migrate", "client"],
  "operations/list.ts": ["model", "operations/operation.ts", ...CAPABILITIES, "recall", "admin", "migrate"],
  "operations/invoke.ts": ["model", "ports", "text", "scheduling", "telemetry", ...OPERATION, ...EDGE],
  "operations/validate-library.ts": ["model", "text", "checkpoints", "knowledge", "review", "runs", ...OPERATION, ...EDGE],
  open: ["*"],
  "systems.ts": ["model", "ports", "systems", "open", "stores/memory"],
  "runs.ts": ["model", "ports", "text", "runs", "open", "stores/memory"],
  "index.ts": ["*"],
  client: [
    "model",
    "ports",
    "files",
    "text",
    "scheduling",
    "code",
    "freshness",
    "knowledge", // the files that it imports
    "admin",
    "config",
    "open",
    "stores/file",
    "http",
    "operations/list.ts",
    ...EDGE,
  ],
  mcp: [
    "model",
    "ports",
    "text",
    "scheduling",
    "operations/list.ts",
    "operations/invoke.ts",
    "operations/validate-library.ts",
    "config",
    "telemetry",
    ...EDGE,
  ],
  http: [
    "events",
    "model",
    "ports",
    "text",
    "scheduling",
    "files",
    "operations/list.ts",
    "operations/invoke.ts",
    "operations/validate-library.ts",
    "config",
    "telemetry",
    "mcp",
    ...EDGE,
  ],
  cli: ["*"],
  testing: ["model", "ports", "text", "stores/memory"],
  adapters: ["model", "ports", "text", "runs", "migrate", "stores/sqlite", "stores/postgres"],
};

const src = resolve(import.meta.dirname, "../src");
const consoleFolder = resolve(import.meta.dirname, "../console");

describe("the architecture", () => {
  const files = sourceFiles(src);

  it("is checked on the whole source tree", () => {
    expect(files.length).toBeGreaterThan(20);
    expect(files.map((file) => relative(src, file))).toContain(join("stores", "sqlite", "driver", "driver.ts"));
    expect(files.flatMap(importsOf).length).toBeGreaterThan(50);
  });

  it("detects a wrong import", () => {
    expect(violation(join(src, "model", "errors.ts"), join(src, "http", "app.ts"))).toMatch(/model .*must not import.* http/);
    expect(
      violation(join(src, "stores", "sqlite", "driver", "driver.ts"), join(src, "stores", "postgres", "driver", "driver.ts")),
    ).toBeDefined();
    expect(violation(join(src, "http", "app.ts"), join(src, "operations", "list.ts"))).toBeUndefined();
  });

  it("keeps the direction of imports", () => {
    const violations = files.flatMap((file) => importsOf(file).map((target) => violation(file, target)));
    expect(violations.filter(Boolean)).toEqual([]);
  });

  it("keeps text/ pure: of packages only the stemmers, of Node only what computes, of files only the vocabulary filter", () => {
    const packages = files
      .filter((file) => folder(file) === "text" && !file.endsWith("estimate-tokens.ts"))
      .flatMap((file) => [...readFileSync(file, "utf8").matchAll(/from "([^."][^"]*)"/g)].map(([, name]) => name));
    expect([...new Set(packages)].sort()).toEqual(["node:module", "node:net", "node:util", "node:zlib"]);
  });

  it("lists every folder", () => {
    expect([...new Set(files.map((file) => folder(file)))].filter((name) => !(name in MAY_IMPORT))).toEqual([]);
  });

  it("lets the console import its own files and three packages, because it runs in a browser", () => {
    const browserFiles = sourceFiles(consoleFolder);
    const outside = browserFiles.flatMap(importsOf).filter((target) => !target.startsWith(consoleFolder + sep));
    expect(outside).toEqual([]);
    const packages = browserFiles.flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/from "([^."][^"]*)"/g)].map(([, name]) => name),
    );
    expect([...new Set(packages)].sort()).toEqual(["@dagrejs/dagre", "@preact/signals", "preact", "preact/hooks"]);
    const layers = ["generated", "api", "state", "parts", "pages", "shell", "main.tsx"];
    const layerOf = (file: string) => layers.indexOf(relative(consoleFolder, file).split(sep)[0]!);
    const upwards = browserFiles.flatMap((file) =>
      importsOf(file)
        .filter((target) => target.startsWith(consoleFolder) && layerOf(target) > layerOf(file))
        .map((target) => `${relative(consoleFolder, file)} imports ${relative(consoleFolder, target)}`),
    );
    expect(upwards).toEqual([]);
  });

  it.each([
    ["src", src],
    ["console", consoleFolder],
  ])("keeps files of %s small: median at most 80 lines, 90 % at most 220, none over 400", (_, root) => {
    const own = sourceFiles(root).filter((file) => !file.includes(`${sep}generated${sep}`));
    const sizes = own.map((file) => ({ file: relative(root, file), lines: readFileSync(file, "utf8").split("\n").length - 1 }));
    sizes.sort((a, b) => a.lines - b.lines);
    const quantile = (share: number) => sizes[Math.ceil(share * sizes.length) - 1]!.lines;
    expect(quantile(0.5)).toBeLessThanOrEqual(80);
    expect(quantile(0.9)).toBeLessThanOrEqual(220);
    expect(sizes.filter(({ lines }) => lines > 400)).toEqual([]);
  });
});

function violation(file: string, target: string): string | undefined {
  const from = folder(file);
  const to = folder(target);
  const allowed = MAY_IMPORT[from] ?? [];
  const targetPath = relative(src, target).split(sep).join("/");
  if (from === to || ["*", to, targetPath].some((name) => allowed.includes(name))) return undefined;
  return `${from} (${relative(src, file)}) must not import from ${to} (${relative(src, target)})`;
}

/** Returns a file's folder (two levels for stores and vectors), or the file itself at the root and in operations/. */
function folder(file: string): string {
  const parts = relative(src, file).split(sep);
  if (parts.length === 1) return parts[0]!;
  return ["stores", "vectors", "operations"].includes(parts[0]!) ? `${parts[0]}/${parts[1]}` : parts[0]!;
}

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sourceFiles(path);
    return /\.tsx?$/.test(path) ? [path] : [];
  });
}

/** Static and dynamic imports of files in the tree; those of packages do not count. */
function importsOf(file: string): string[] {
  const code = readFileSync(file, "utf8");
  const found = code.matchAll(/(?:from\s+|import\s*\(\s*|import\s+|new URL\(\s*)["'](\.[^"']+\.tsx?)["']/g);
  return [...found].map((match) => resolve(dirname(file), match[1]!));
}

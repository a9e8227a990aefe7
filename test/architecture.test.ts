import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { describe, expect, it } from "vitest";

/** Which rooms each room of src/ may import from, itself aside. What is not listed must be absent. */
const CAPABILITIES = ["checkpoints", "code", "knowledge", "runs", "systems"];
const ROOT_FILES = ["operation.ts", "wire.ts", "cairn.ts"];
const MAY_IMPORT: Record<string, readonly string[]> = {
  model: [],
  files: ["model"],
  ports: ["model"],
  text: ["model"],
  telemetry: ["model", "ports", "text"],
  recall: ["model", "ports", "text", "operation.ts"],
  checkpoints: ["model", "ports", "text", "recall", "operation.ts"],
  code: ["model", "ports", "text", "recall", "operation.ts"],
  knowledge: ["model", "ports", "text", "recall", "operation.ts"],
  runs: ["model", "ports", "text", "operation.ts"],
  systems: ["model", "ports", "text", "operation.ts"],
  admin: ["model", "ports", "text", "recall", "operation.ts"],
  migrate: ["model", "ports", "text", "operation.ts"],
  "stores/memory": ["model", "ports", "text"],
  "stores/file": ["model", "ports", "text", "files"],
  "stores/sqlite": ["model", "ports", "text", "files"],
  "stores/postgres": ["model", "ports", "text"],
  "vectors/qdrant": ["model", "ports"],
  embedders: ["model", "ports", "text"],
  config: ["model", "files", "text", "wire.ts"],
  "operation.ts": ["model", "wire.ts", "cairn.ts"],
  "wire.ts": ["model"],
  "cairn.ts": ["model", ...CAPABILITIES, "recall", "admin", "migrate", "local"],
  "operations.ts": ["model", "operation.ts", ...CAPABILITIES, "recall", "admin", "migrate"],
  "invoke.ts": ["model", "ports", "text", "telemetry", ...ROOT_FILES],
  "checked.ts": ["model", "text", "checkpoints", "knowledge", "runs", "wire.ts"],
  "open.ts": ["*"],
  "open-migrations.ts": ["*"],
  "open-embedders.ts": ["model", "ports", "text", "embedders"],
  "open-run-store.ts": ["model", "ports", "text", "migrate", "stores/memory", "stores/file", "stores/sqlite", "stores/postgres"],
  "open-system-storage.ts": ["model", "ports", "text", "migrate", "stores/memory", "stores/sqlite", "stores/postgres"],
  "systems.ts": ["model", "ports", "systems", "open-system-storage.ts", "stores/memory"],
  "runs.ts": ["model", "ports", "text", "runs", "open-run-store.ts", "stores/memory"],
  "index.ts": ["*"],
  local: ["model", "ports", "files", "text", "code", "stores/file", "operation.ts", "cairn.ts"],
  client: ["model", "ports", "text", "code", "local", "http", ...ROOT_FILES],
  mcp: ["model", "ports", "text", "operations.ts", "invoke.ts", "config", "telemetry", ...ROOT_FILES],
  http: ["model", "ports", "text", "operations.ts", "invoke.ts", "config", "telemetry", "mcp", ...ROOT_FILES],
  cli: ["*"],
  testing: ["model", "ports", "text"],
  langgraph: ["model", "ports", "text", "runs", "migrate", "stores/sqlite", "stores/postgres"],
};

const src = resolve(import.meta.dirname, "../src");

describe("the architecture", () => {
  const files = sourceFiles(src);

  it("is checked on the whole source tree", () => {
    expect(files.length).toBeGreaterThan(20);
    expect(files.map((file) => relative(src, file))).toContain(join("stores", "sqlite", "driver.ts"));
    expect(files.flatMap(importsOf).length).toBeGreaterThan(50);
  });

  it("sees a wrong import when there is one", () => {
    expect(violation(join(src, "model", "errors.ts"), join(src, "http", "app.ts"))).toMatch(/model .*must not import.* http/);
    expect(violation(join(src, "stores", "sqlite", "driver.ts"), join(src, "stores", "postgres", "driver.ts"))).toBeDefined();
    expect(violation(join(src, "http", "app.ts"), join(src, "operations.ts"))).toBeUndefined();
  });

  it("keeps the direction of imports", () => {
    const violations = files.flatMap((file) => importsOf(file).map((target) => violation(file, target)));
    expect(violations.filter(Boolean)).toEqual([]);
  });

  it("names every room", () => {
    expect([...new Set(files.map((file) => room(file)))].filter((name) => !(name in MAY_IMPORT))).toEqual([]);
  });
});

function violation(file: string, target: string): string | undefined {
  const from = room(file);
  const to = room(target);
  const allowed = MAY_IMPORT[from] ?? [];
  if (from === to || allowed.includes("*") || allowed.includes(to)) return undefined;
  return `${from} (${relative(src, file)}) must not import from ${to} (${relative(src, target)})`;
}

/** A file's room: its folder (two levels for stores and vectors), or the file itself at the root. */
function room(file: string): string {
  const parts = relative(src, file).split(sep);
  if (parts.length === 1) return parts[0]!;
  return parts[0] === "stores" || parts[0] === "vectors" ? `${parts[0]}/${parts[1]}` : parts[0]!;
}

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sourceFiles(path);
    return path.endsWith(".ts") ? [path] : [];
  });
}

/** Static and dynamic imports of files in the tree; those of packages do not count. */
function importsOf(file: string): string[] {
  const code = readFileSync(file, "utf8");
  const found = code.matchAll(/(?:from\s+|import\s*\(\s*|import\s+|new URL\(\s*)["'](\.[^"']+\.ts)["']/g);
  return [...found].map((match) => resolve(dirname(file), match[1]!));
}

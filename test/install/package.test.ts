import { spawnSync } from "node:child_process";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const own = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  packages: Record<string, { dev?: boolean; devOptional?: boolean; peer?: boolean; optional?: boolean; hasInstallScript?: boolean }>;
};
const [packed] = JSON.parse(
  spawnSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 }).stdout,
) as { unpackedSize: number; files: { path: string }[] }[];
const files = packed!.files.map(({ path }) => path);

/** The packages that a user gets, next to this one. */
const installed = Object.entries(packages).filter(([path, { dev, devOptional, peer }]) => path && !dev && !devOptional && !peer);

describe("the package", () => {
  it("contains the command, the docs and the licences", () => {
    const wanted = [
      "dist/bundle/main.cjs",
      "dist/index.d.ts",
      "README.md",
      "docs/cli.md",
      "docs/mcp.md",
      "CHANGELOG.md",
      "LICENSE",
      "NOTICE",
    ];
    for (const file of [...wanted, "dist/sqlite/LICENSE"]) expect(files).toContain(file);
  });

  it("contains no source maps, build state, tests or sources", () => {
    expect(files.filter((path) => /\.map$|tsbuildinfo|\.tmp$|\.new$/.test(path) || /^(test|src|bench)\//.test(path))).toEqual([]);
    const mapped = files.filter((path) => /\.m?js$/.test(path) && readFileSync(join(root, path), "utf8").includes("sourceMappingURL="));
    expect(mapped).toEqual([]);
  });

  it("contains SQLite for every platform, and every grammar compressed", () => {
    const binaries = files.filter((path) => path.endsWith(".node")).map((path) => path.split("/")[3]);
    expect([...new Set(binaries)].sort()).toEqual(["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "win32-arm64", "win32-x64"]);
    expect(files.filter((path) => path.startsWith("dist/grammars/") && !path.endsWith(".wasm.br"))).toEqual([]);
  });

  it("runs no script when it is installed, and neither does a dependency", () => {
    for (const script of ["preinstall", "install", "postinstall", "prepare"]) expect(own.scripts[script]).toBeUndefined();
    expect(installed.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path)).toEqual([]);
  });

  it("installs at most 45 packages, and at most 240 MB with and 140 MB without the MiniLM runtime", () => {
    const runtime = /onnxruntime/;
    const mb = (entries: typeof installed) =>
      entries.reduce((sum, [path]) => sum + folderBytes(join(root, path)), packed!.unpackedSize) / 2 ** 20;
    expect(installed.length + 1).toBeLessThanOrEqual(45);
    expect(mb(installed)).toBeLessThanOrEqual(240);
    expect(mb(installed.filter(([path]) => !runtime.test(path)))).toBeLessThanOrEqual(140);
  });

  it("has only the MiniLM runtime as an optional dependency, and the OpenTelemetry SDK as optional peers", () => {
    expect(Object.keys(own.optionalDependencies)).toEqual(["onnxruntime-node"]);
    for (const name of Object.keys(own.peerDependencies)) expect(own.peerDependenciesMeta[name], name).toEqual({ optional: true });
    expect(Object.keys(own.dependencies).filter((name) => name.startsWith("@opentelemetry/"))).toEqual(["@opentelemetry/api"]);
  });
});

function folderBytes(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + lstatSync(join(entry.parentPath, entry.name)).size, 0);
}

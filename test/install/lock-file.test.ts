import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly os?: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
}

const root = resolve(import.meta.dirname, "../..");
const { packages } = JSON.parse(readFileSync(resolve(root, "package-lock.json"), "utf8")) as {
  packages: Readonly<Record<string, LockedPackage>>;
};

/** Finds a dependency as Node would: next to the package, then in each folder above it. */
function find(from: string, name: string): LockedPackage | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    const found = packages[`${folder === "" ? "" : `${folder}/`}node_modules/${name}`];
    if (found || folder === "") return found;
  }
}

describe("the lock file", () => {
  it("contains every dependency and every optional platform package", () => {
    const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
      Object.keys({ ...dependencies, ...optionalDependencies })
        .filter((name) => !find(path, name))
        .map((name) => `${path || "cairn-memory"} needs ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it("contains the binaries of its tools for Linux, macOS and Windows", () => {
    const systems = (prefix: string) =>
      new Set(Object.entries(packages).flatMap(([path, { os = [] }]) => (path.includes(prefix) ? os : [])));
    for (const tool of ["@biomejs/cli-", "@typescript/typescript-", "@rolldown/binding-", "@oxc-parser/binding-", "lightningcss-"])
      expect([...systems(tool)], tool).toEqual(expect.arrayContaining(["linux", "darwin", "win32"]));
  });

  it("pins every package by checksum and names no registry", () => {
    const locked = Object.entries(packages).filter(([path]) => path !== "");
    expect(locked.filter(([, { integrity }]) => !integrity).map(([path]) => path)).toEqual([]);
    expect(locked.filter(([, { resolved }]) => resolved).map(([path]) => path)).toEqual([]);
  });

  it("matches package.json", () => {
    const own = JSON.parse(readFileSync(resolve(root, "package.json"), "utf8")) as Record<string, unknown>;
    const locked = packages[""] as Record<string, unknown>;
    for (const kind of ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"])
      expect(locked[kind], kind).toEqual(own[kind]);
  });
});

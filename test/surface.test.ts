import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "..");
const { exports: entries } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly exports: Record<string, string | { readonly types: string; readonly default: string }>;
};

/** Maps each public entry of package.json to its source file. */
const SOURCES = Object.entries(entries).flatMap(([entry, target]) =>
  typeof target === "string" ? [] : [{ entry, source: target.default.replace(/^\.\/dist\/(.*)\.js$/, "src/$1.ts") }],
);

describe("the public surface", () => {
  it("has exactly these entries", () => {
    expect(SOURCES.map(({ entry }) => entry)).toEqual([".", "./http", "./testing", "./runs", "./systems", "./langgraph"]);
  });

  it.each(SOURCES)("exports exactly the names of test/surface.txt from $entry", async ({ entry, source }) => {
    const { values, types } = exportsOf(readFileSync(join(root, source), "utf8"));
    expect(Object.keys(await import(join(root, source))).sort()).toEqual(values);
    const pinned = readFileSync(join(root, "test/surface.txt"), "utf8")
      .split("\n\n")
      .find((section) => section.startsWith(`${entry}\n`));
    expect([entry, ...values, ...types.map((name) => `type ${name}`)]).toEqual(pinned?.trim().split("\n"));
  });
});

/** Returns the names that an entry exports: entries are lists of exports, and never `export *`. */
function exportsOf(code: string): { readonly values: readonly string[]; readonly types: readonly string[] } {
  expect(code).not.toMatch(/export \*/);
  const values: string[] = [];
  const types: string[] = [];
  for (const [, onlyTypes, list] of code.matchAll(/^export (type )?\{([^}]*)\}/gm))
    for (const item of list!
      .split(",")
      .map((part) => part.trim())
      .filter(Boolean)) {
      const isType = onlyTypes !== undefined || item.startsWith("type ");
      (isType ? types : values).push(item.replace(/^type /, "").replace(/^.* as /, ""));
    }
  for (const [, kind, name] of code.matchAll(/^export (?:async )?(interface|type|function|const|class) (\w+)/gm))
    (kind === "interface" || kind === "type" ? types : values).push(name!);
  return { values: values.sort(), types: types.sort() };
}

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

interface TracedCall {
  readonly count: number;
  readonly files: readonly string[];
  readonly passes: { readonly input?: number; readonly output?: number };
}

/**
 * Source files that each call touches at most. A change that adds one to the path says why, here.
 */
const CEILINGS: Readonly<Record<string, number>> = { save: 30, "code search": 38, "index one file": 38, "index job": 66, "run step": 23 };

const root = resolve(import.meta.dirname, "..");

describe("the path of a warm call", () => {
  const { stdout } = spawnSync(process.execPath, ["scripts/trace-call.mjs", "--json"], { cwd: root, encoding: "utf8" });
  const calls = JSON.parse(stdout) as Record<string, TracedCall>;

  it.each(Object.entries(CEILINGS))("of %s touches at most %i source files", (name, ceiling) => {
    const { count, files } = calls[name]!;
    expect(count, files.join("\n")).toBeLessThanOrEqual(ceiling);
  });

  it("validates the input and the output of a call once", () => {
    for (const { passes } of [calls.save!, calls["code search"]!, calls["index job"]!]) expect(passes).toEqual({ input: 1, output: 1 });
  });
});

it("has no proxies in the source", () => {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  expect(files.filter((file) => readFileSync(join(root, "src", file), "utf8").includes("new Proxy"))).toEqual([]);
});

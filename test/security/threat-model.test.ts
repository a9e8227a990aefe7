import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { SETTINGS } from "../../src/config/settings.ts";

const root = join(import.meta.dirname, "../..");
const text = readFileSync(join(root, "SECURITY.md"), "utf8");
const code = [...text.matchAll(/`([^`]+)`/g)].map(([, quoted]) => quoted!);

describe("SECURITY.md", () => {
  it("links only to pages that exist", () => {
    const links = [...text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, target]) => target!);
    expect(links.length).toBeGreaterThan(3);
    expect(links.filter((link) => !/^https?:/.test(link) && !existsSync(join(root, link)))).toEqual([]);
  });

  it("names only settings that exist", () => {
    const sections = new Set(SETTINGS.map(({ key }) => key.split(".")[0]));
    const named = code.filter(
      (quoted) => /^[a-z]+(\.[a-z_]+)+$/.test(quoted) && sections.has(quoted.split(".")[0]) && !quoted.endsWith(".json"),
    );
    expect(named.length).toBeGreaterThan(2);
    const keys = SETTINGS.map(({ key }) => key);
    expect(named.filter((name) => !keys.includes(name))).toEqual([]);
  });

  it("names only npm scripts and commands that exist", () => {
    const scripts = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).scripts as Record<string, string>;
    const run = code.flatMap((quoted) => /^npm run (\S+)/.exec(quoted)?.[1] ?? []);
    expect(run.filter((script) => !(script in scripts))).toEqual([]);
    const named = code
      .filter((quoted) => /^cairn [a-z]+/.test(quoted))
      .map((quoted) =>
        quoted
          .split(" ")
          .slice(1)
          .filter((word) => !word.startsWith("-")),
      );
    expect(named.length).toBeGreaterThan(2);
    const known = commands.map(({ path }) => path.join(" "));
    expect(named.map((words) => words.join(" ")).filter((name) => !known.includes(name))).toEqual([]);
  });
});

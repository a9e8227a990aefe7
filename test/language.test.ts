import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "..");

function findBarred(args: readonly string[], input = ""): string {
  return spawnSync(process.execPath, ["scripts/language.mjs", ...args], { cwd: root, encoding: "utf8", input }).stdout;
}

describe("the language of the repository", () => {
  it.each([
    ["The caller is told whether it worked.", "told"],
    ["It gives way to whoever waits.", "gives way"],
    ["Records are ranked by meaning.", "by meaning"],
  ])("reports a barred expression with its replacement: %s", (text, found) => {
    expect(findBarred(["-"], text)).toContain(`stdin:1: «${found}» →`);
  });

  it("accepts plain technical English", () => {
    expect(findBarred(["-"], "The indexer yields to calls in flight. Hybrid search fuses the keyword and the semantic ranking.")).toBe(
      "0 barred words and phrases\n",
    );
  });

  it("has no barred words and phrases in docs, comments, messages and test names", () => {
    expect(findBarred(["."])).toBe("0 barred words and phrases\n");
  });
});

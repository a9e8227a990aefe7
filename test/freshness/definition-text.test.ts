import { createHash } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { compareDefinition, definitionHash } from "../../src/freshness/definition-text.ts";
import type { Anchor } from "../../src/model/anchor.ts";

const SOURCE = ["const a = 1;", "function run() {", "  return a;", "}", "run();"];

describe("compareDefinition", () => {
  it("finds the definition at another line", () => {
    expect(compareDefinition(["// moved", ...SOURCE], anchor("run", SOURCE, 2, 4))).toBe("fresh");
  });

  it("reports changed for another text and gone for a missing name", () => {
    expect(compareDefinition(SOURCE, { ...anchor("run", SOURCE, 2, 4), hash: "0".repeat(64) })).toBe("changed");
    expect(compareDefinition(["const a = 1;"], anchor("run", SOURCE, 2, 4))).toBe("gone");
  });

  it("hashes a definition of any length once", () => {
    const long = Array.from({ length: 60_000 }, (_, line) => (line === 0 ? "class Big {" : `  field${line} = ${line};`));
    expect(compareDefinition(long, anchor("Big", long, 1, long.length))).toBe("fresh");
  });

  it("stops before it hashes a long definition for each of many lines with its name", () => {
    const lines = Array.from({ length: 20_000 }, (_, line) => `use(big, ${line});`);
    const update = vi.spyOn(createHash("sha256").constructor.prototype, "update");
    try {
      expect(compareDefinition(lines, { ...anchor("big", lines, 1, 10_000), hash: "0".repeat(64) })).toBe("unknown");
      expect(update.mock.calls.length).toBeLessThanOrEqual(6); // one of them by the anchor itself
    } finally {
      update.mockRestore();
    }
  });
});

function anchor(value: string, lines: readonly string[], from: number, to: number): Anchor {
  return { kind: "symbol", value, path: "a.ts", hash: definitionHash(lines, from, to), lines: to - from + 1 };
}

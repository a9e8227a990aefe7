import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { globMatcher } from "../../src/text/glob.ts";
import { packPositions, unpackPositions } from "../../src/text/index-text.ts";

describe("packed positions", () => {
  it("come back as they went in, by line and column", () => {
    const position = fc.record({ line: fc.integer({ min: 1, max: 3_000_000 }), column: fc.integer({ min: 1, max: 3_000_000 }) });
    fc.assert(
      fc.property(fc.array(position), (positions) => {
        const sorted = [...positions].sort((a, b) => a.line - b.line || a.column - b.column);
        expect(unpackPositions(packPositions(positions))).toEqual(sorted);
      }),
    );
  });
});

describe("globs", () => {
  it.each([
    ["*.ts", "src/deep/a.ts", true],
    ["*.ts", "a.tsx", false],
    ["src/*.ts", "src/a.ts", true],
    ["src/*.ts", "src/deep/a.ts", false],
    ["src/**/*.ts", "src/a.ts", true],
    ["src/**/*.ts", "src/x/y/a.ts", true],
    ["src", "src/x/y.ts", true],
    ["src/", "lib/src/x.ts", true],
    ["./src/x", "src/x/y.ts", true],
    ["**/test/**", "a/test/b.ts", true],
    ["a?.ts", "ab.ts", true],
    ["a?.ts", "a/.ts", false],
    ["*.{ts,py}", "x/b.py", true],
    ["*.{ts,py}", "x/b.go", false],
    ["!*.ts", "a.ts", false],
    ["!*.ts", "a.py", true],
    ["a+b(c).ts", "a+b(c).ts", true],
    ["a.ts", "axts", false],
    ["[x].ts", "[x].ts", true],
    ["{src,lib}/{a,b{1,2}}.{ts,js}", "lib/b2.js", true],
    ["{src,lib}/{a,b{1,2}}.{ts,js}", "lib/b3.js", false],
    ["a{,.min}.js", "a.js", true],
    ["src/**", "src/a/b.ts", true],
    ["x**y.ts", "x/1/2/y.ts", true],
    ["?.ts", "ü.ts", true],
    ["?.ts", "😀.ts", true],
    ["**?**?**?**?**?!", "a/b/c/d/e!", true],
  ])("%s and %s: %s", (glob, path, fits) => {
    expect(globMatcher(glob)(path)).toBe(fits);
  });

  it("are refused when they say nothing or are not closed", () => {
    for (const glob of ["", "!", "/", "{a,b"]) expect(() => globMatcher(glob)).toThrowError(/glob/);
  });
});

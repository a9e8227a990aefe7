import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatAnchor, readAnchor, storedAnchor } from "../../src/freshness/anchor-text.ts";
import { recogniseAnchors } from "../../src/freshness/recognise.ts";
import { ANCHOR_KINDS } from "../../src/model/anchor.ts";
import { LIMITS } from "../../src/model/limits.ts";

const found = (text: string, context?: Record<string, string>) =>
  recogniseAnchors({ texts: [text], context }).map(({ kind, value }) => `${kind} ${value}`);

describe("recogniseAnchors", () => {
  it.each([
    ["Fixed src/a.ts and ./lib/b.py.", ["file src/a.ts", "file lib/b.py"]],
    ["see src/a.ts:12:3 and (docs/x.md#L4)", ["file src/a.ts", "file docs/x.md"]],
    ["README.md, Makefile and package.json", ["file README.md", "file Makefile", "file package.json"]],
    ["`src/with space.ts` is no path", ["file src/with", "file space.ts"]],
    ["the call parseConfig(input) fails", ["symbol parseConfig"]],
    ["HttpServer.listen and read_file", ["file HttpServer.listen", "symbol read_file"]],
    ["use `parse` here", ["symbol parse"]],
    ["`Parser.parse()` in src/a.ts#Lexer", ["symbol parse", "file Parser.parse", "file src/a.ts", "symbol Lexer"]],
    ["since 1a2b3c4 and 2b1e1fd0d0f3ac8a1c1f0b7b7f0f3b6a7d9e0c11", ["commit 1a2b3c4", "commit 2b1e1fd0d0f3ac8a1c1f0b7b7f0f3b6a7d9e0c11"]],
    ["merged branch feature/login today", ["branch feature/login", "file feature/login"]],
    ["https://example.com/src/a.ts and 1.2.3 and 1234567", []],
    ["Plain prose without any code in it.", []],
  ])("finds the anchors of %j", (text, expected) => {
    expect(found(text)).toEqual(expected);
  });

  it("takes the branch from the context and anchors from its values", () => {
    expect(found("", { branch: "main", failing: "test/a.test.ts" })).toEqual(["branch main", "file test/a.test.ts"]);
  });

  it("returns each anchor once, and no more than the limit", () => {
    expect(found("a.ts a.ts a.ts")).toEqual(["file a.ts"]);
    expect(found(Array.from({ length: 500 }, (_, index) => `f${index}.ts`).join(" "))).toHaveLength(LIMITS.anchorCandidates);
  });

  it("handles any text, and finds a path between any words", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (before, after) => {
        expect(Array.isArray(found(before + after))).toBe(true);
        expect(found(`${before.replaceAll("`", "")} src/a.ts ${after}`)).toContain("file src/a.ts");
      }),
    );
  });
});

describe("anchors as text", () => {
  it.each([
    ["src/a.ts", { kind: "file", value: "src/a.ts" }],
    ["src/a.ts#parse", { kind: "symbol", value: "parse", path: "src/a.ts" }],
    ["parse", { kind: "symbol", value: "parse" }],
    ["parse()", { kind: "symbol", value: "parse" }],
    ["branch:main", { kind: "branch", value: "main" }],
    ["1a2b3c4d", { kind: "commit", value: "1a2b3c4d" }],
    ["file:a%20b.ts hash:00", { kind: "file", value: "a b.ts", hash: "00" }],
    ["head:1a2b3c4 branch:main", { kind: "head", value: "1a2b3c4", branch: "main" }],
  ])("reads %j", (text, expected) => {
    expect(readAnchor(text)).toEqual(expected);
  });

  it("reads what it wrote", () => {
    const text = fc.string({ minLength: 1 }).filter((value) => value.isWellFormed());
    const anchor = fc.record(
      {
        kind: fc.constantFrom(...ANCHOR_KINDS),
        value: text,
        path: text,
        hash: text,
        content: text,
        lines: fc.nat(),
        generation: fc.nat(),
        branch: text,
        optional: fc.constant(true),
      },
      { requiredKeys: ["kind", "value"] },
    );
    fc.assert(fc.property(anchor, (one) => void expect(readAnchor(formatAnchor(one))).toEqual(one)));
  });

  it("stores no field that only matters while an anchor is resolved", () => {
    expect(storedAnchor({ kind: "file", value: "a", optional: true, hash: undefined })).toEqual({ kind: "file", value: "a" });
  });
});

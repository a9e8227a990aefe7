import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { requiredLiterals, requiredWords } from "../../../src/code/structure/required-literals.ts";

const texts = (pattern: string) => requiredLiterals(pattern).map(({ text }) => text);

describe("the literals that every match contains", () => {
  it.each([
    ["retry", ["retry"]],
    ["retry\\(job\\)", ["retry(job)"]],
    ["a?bc", ["bc"]],
    ["ab*c", ["a", "c"]],
    ["ab+c", ["ab", "c"]],
    ["ab{2,3}c", ["ab", "c"]],
    ["ab{0,3}c", ["a", "c"]],
    ["foo{bar}", ["foo{bar}"]],
    ["(foo|bar) baz", [" baz"]],
    ["(?:foo)? baz", [" baz"]],
    ["foo|bar", []],
    ["[abc]x", ["x"]],
    ["[]a]x[^]]y", ["x", "y"]],
    ["([)]|x)y", ["y"]],
    ["\\w+ = new \\d", [" = new "]],
    ["(?i)foo", []],
    ["\\Qa.b\\E", []],
    ["\\p{L}foo", []],
    ["😀?foo", ["foo"]],
    ["foo(", ["foo"]],
  ])("are found in %s", (pattern, expected) => {
    expect(texts(pattern)).toEqual(expected);
  });

  it("are in every text that a pattern matches", () => {
    const piece = fc.constantFrom("ab", "c", "\\(", "[xy]", "(d|e)", "f?", "g*", "h+", "i{1,2}", ".", "\\w", "^", "$", " ");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), fc.array(fc.constantFrom(..."abcdefghixy( "), { maxLength: 30 }), (pieces, chars) => {
        const pattern = pieces.join("");
        const match = new RegExp(pattern).exec(chars.join(""));
        if (match) for (const text of texts(pattern)) expect(match[0]).toContain(text);
      }),
    );
  });
});

describe("the words that a match needs", () => {
  it.each([
    ["call\\(first_arg, Second\\)", ["first_arg", "Second"]],
    ["retry", []],
    ["\\bretry\\b", []],
    ["^import foo$", ["import", "foo"]],
    ["x (éfoo) bar.", []],
    ["(x) to be\\.", []],
  ])("of %s are whole words", (pattern, expected) => {
    expect(requiredWords(requiredLiterals(pattern))).toEqual(expected);
  });
});

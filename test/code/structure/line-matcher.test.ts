import { describe, expect, it } from "vitest";
import { lineMatcher } from "../../../src/code/structure/line-matcher.ts";

describe("the line matcher", () => {
  it("finds a regular expression, a text, and both without regard to case", () => {
    expect(lineMatcher("b+c", {}).find("aabbc")).toBe(2);
    expect(lineMatcher("b+c", { fixed: true }).find("a b+c")).toBe(2);
    expect(lineMatcher("B+C", { fixed: true, ignoreCase: true }).find("a b+c")).toBe(2);
    expect(lineMatcher("TASK", { ignoreCase: true }).find("a taſk")).toBe(2);
    expect(lineMatcher("TASK", { ignoreCase: true }).mayMatch("a taſk")).toBe(true);
    expect(lineMatcher("x", {}).find("aaa")).toBe(-1);
  });

  it("skips texts without a literal of the pattern", () => {
    const matcher = lineMatcher("foo\\(\\w+\\)", {});
    expect([matcher.mayMatch("a foo(b)"), matcher.mayMatch("a bar(b)")]).toEqual([true, false]);
  });

  it.each(["(a", "a{1001}", "(a{0,1000}){0,1000}", "((a{100}){100}){100}", "(a)\\1", "a(?=b)", "(".repeat(1000)])(
    "refuses the pattern %s with a reason",
    (pattern) => {
      expect(() => lineMatcher(pattern, {})).toThrow(/^pattern: .*(RE2|repetitions)/);
    },
  );

  it("bounds the steps for a line: the larger the pattern, the shorter the part that is searched", () => {
    const small = lineMatcher("a+b", {});
    const large = lineMatcher("[a-z]{1,400}x", {});
    expect(small.lineChars).toBeGreaterThan(10_000);
    expect(large.lineChars).toBeLessThan(1_000);
    expect(() => lineMatcher("(?:a?){900}a{900}", {})).toThrow("repetitions");
    // Patterns that take exponential time with backtracking.
    for (const pattern of ["(a+)+$", "(a|a)*b", "(a*)*c", "(.*)(.*)(.*)(.*)(.*)z"]) {
      const matcher = lineMatcher(pattern, {});
      expect(matcher.find(`${"a".repeat(5_000)}!`), pattern).toBe(-1);
    }
  });
});

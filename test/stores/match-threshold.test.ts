import fc from "fast-check";
import { expect, it } from "vitest";
import { estimateThreshold, thresholdQuery, type WeightedTerm } from "../../src/stores/postgres/projects/match-threshold.ts";

const term = (lexeme: string, weight: number, share = 0.1): WeightedTerm => ({ lexeme, weight, share });

it("requires the terms that a threshold needs", () => {
  const terms = [term("rare", 6), term("medium", 3), term("common", 1)];
  expect(thresholdQuery(terms, 0)).toBe("rare|medium|common");
  expect(thresholdQuery(terms, 3.5)).toBe("rare|medium&(common)");
  expect(thresholdQuery(terms, 7)).toBe("rare&(medium|common)");
  expect(thresholdQuery(terms, 10)).toBe("rare&(medium&(common))");
  expect(thresholdQuery(terms, 11)).toBeUndefined();
});

const weights = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 7 }).map((all) => all.sort((a, b) => b - a));

it("matches exactly the sets of terms whose weights reach the threshold", () => {
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 127 }), (all, threshold, chosen) => {
      const terms = all.map((weight, index) => term(`t${index}`, weight));
      const present = new Set(terms.filter((_, index) => chosen & (1 << index)).map(({ lexeme }) => lexeme));
      const sum = all.reduce((total, weight, index) => total + (chosen & (1 << index) ? weight : 0), 0);
      const query = thresholdQuery(terms, threshold);
      expect(query !== undefined && matches(query, present)).toBe(sum >= threshold);
    }),
  );
});

it("matches every set that reaches the threshold when the query has many terms", () => {
  const terms = Array.from({ length: 40 }, (_, index) => term(`t${index}`, 40 - index));
  const query = thresholdQuery(terms, 300)!;
  expect(query.length).toBeLessThan(60_000);
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 0, max: 39 }), { minLength: 8, maxLength: 40 }), (chosen) => {
      fc.pre(chosen.reduce((sum, index) => sum + terms[index]!.weight, 0) >= 300);
      expect(matches(query, new Set(chosen.map((index) => `t${index}`)))).toBe(true);
    }),
  );
});

it("estimates the threshold that as many records reach as are wanted", () => {
  const terms = [term("rare", 6, 0.001), term("medium", 3, 0.05), term("common", 1, 0.5)];
  expect(estimateThreshold(terms, 100_000, 60)).toBeGreaterThan(estimateThreshold(terms, 100_000, 4_000));
  expect(estimateThreshold(terms, 100_000, 4_000)).toBeGreaterThan(1);
  expect(estimateThreshold(terms, 100_000, 90_000)).toBe(0);
});

/** Evaluates a tsquery of `&`, `|` and parentheses for a record with these terms. */
function matches(query: string, present: ReadonlySet<string>): boolean {
  const tokens = query.match(/t\d+|[a-z]+|[&|()]/g)!;
  let at = 0;
  const either = (): boolean => {
    let value = both();
    while (tokens[at] === "|") {
      at++;
      value = both() || value;
    }
    return value;
  };
  const both = (): boolean => {
    let value = one();
    while (tokens[at] === "&") {
      at++;
      value = one() && value;
    }
    return value;
  };
  const one = (): boolean => {
    if (tokens[at] !== "(") return present.has(tokens[at++]!);
    at++;
    const value = either();
    at++;
    return value;
  };
  return either();
}

import { expect, it } from "vitest";
import { matchTable } from "../../src/cli/tour/match-table.ts";

it("names the quality of each match in words", () => {
  const hits = [0.5, 0.25, 0.05].map((score, index) => ({ score, text: `hit ${index}` }));
  expect(matchTable(hits)).toBe("1. good match  hit 0\n2. weak match  hit 1\n3. no match    hit 2");
  expect(matchTable([])).toBe("");
});

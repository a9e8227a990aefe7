import { describe, expect, it } from "vitest";
import type { KeywordRanked } from "../../src/ports/recall-store.ts";
import { semanticWeight } from "../../src/recall/fuse.ts";

const ranked = (scores: readonly number[], matched?: number): KeywordRanked[] =>
  scores.map((score, index) => ({ id: String(index), score, ...(index === 0 && { matched }) }));

describe("semanticWeight", () => {
  it.each([
    ["the whole maximum when the ten best keyword matches are equal", "where is it", ranked([2, 2, 2], 1), undefined, 0.9],
    ["less the further the best keyword match is ahead of the tenth", "where is it", ranked([4, 3, 1], 1), undefined, 0.9 - 0.3 * 0.75],
    [
      "less only by the share of the query's terms that the best match has",
      "where is it",
      ranked([4, 3, 1], 0.5),
      undefined,
      0.9 - 0.3 * 0.75 * 0.5,
    ],
    ["least for a single keyword match with all terms", "where is it", ranked([4], 1), undefined, 0.6],
    ["as for a full match where the share of terms is unknown", "where is it", ranked([4]), undefined, 0.6],
    ["the whole maximum when no keyword matches", "where is it", [], undefined, 0.9],
    ["from the maximum of the caller", "where is it", ranked([2, 2], 1), 0.7, 0.7],
    ["ignoring matches after the tenth", "where is it", ranked([2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1], 1), undefined, 0.9],
  ] as const)("returns %s", (_, query, keyword, max, expected) => {
    expect(semanticWeight(query, keyword, max)).toBeCloseTo(expected, 10);
  });

  it.each(["HTTPAdapter", "a.b", "_private", "snake_case", "camelCase", "Namespace::name", " JobQueue "])(
    "returns at most 0.3 for the bare symbol %j",
    (query) => expect(semanticWeight(query, ranked([2, 2], 1))).toBeCloseTo(0.3, 10),
  );

  it.each(["parser", "two words", "What", "http adapter", "a-b"])("takes %j as prose", (query) =>
    expect(semanticWeight(query, ranked([2, 2], 1))).toBeCloseTo(0.9, 10),
  );
});

import { describe, expect, it } from "vitest";
import { type Candidate, fuse } from "../../src/recall/fuse.ts";

type Row = readonly [name: string, weight: number, candidates: readonly Candidate[], scores: readonly (readonly [string, number])[]];

const TABLE: readonly Row[] = [
  ["returns nothing for no candidates", 0.5, [], []],
  [
    "scales cosines between the worst and the best candidate, and keyword scores to the best",
    0.6,
    [
      { id: "a", cosine: 0.9, keyword: 2 },
      { id: "b", cosine: 0.5, keyword: 4 },
      { id: "c", cosine: 0.7 },
    ],
    [
      ["a", 0.6 + 0.4 * 0.5],
      ["b", 0.4],
      ["c", 0.6 * 0.5],
    ],
  ],
  [
    "ranks by cosine alone when no keyword matches, whatever the weight",
    0.3,
    [
      { id: "a", cosine: 0.2 },
      { id: "b", cosine: 0.8 },
    ],
    [
      ["b", 1],
      ["a", 0],
    ],
  ],
  [
    "ranks by keyword alone when there are no cosines, whatever the weight",
    0.9,
    [
      { id: "a", keyword: 1 },
      { id: "b", keyword: 4 },
    ],
    [
      ["b", 1],
      ["a", 0.25],
    ],
  ],
  [
    "gives equal cosines the full semantic share, and breaks ties by id",
    0.5,
    [
      { id: "b", cosine: 0.4, keyword: 1 },
      { id: "a", cosine: 0.4, keyword: 1 },
    ],
    [
      ["a", 1],
      ["b", 1],
    ],
  ],
  [
    "ranks a candidate without a vector by its keyword score alone",
    0.9,
    [
      { id: "far", cosine: 0.1, keyword: 1 },
      { id: "near", cosine: 0.9 },
      { id: "new", keyword: 2 },
    ],
    [
      ["new", 1],
      ["near", 0.9],
      ["far", 0.1 * 0.5],
    ],
  ],
  [
    "does not lift a candidate without a vector above its keyword score",
    0.5,
    [
      { id: "both", cosine: 0.9, keyword: 4 },
      { id: "new", keyword: 1 },
      { id: "far", cosine: 0.1 },
    ],
    [
      ["both", 1],
      ["new", 0.25],
      ["far", 0],
    ],
  ],
];

describe("fuse", () => {
  it.each(TABLE)("%s", (_, weight, candidates, scores) => {
    const fused = fuse(candidates, weight);
    expect(fused.map(({ id }) => id)).toEqual(scores.map(([id]) => id));
    for (const [index, [, score]] of scores.entries()) expect(fused[index]!.score).toBeCloseTo(score, 10);
  });
});

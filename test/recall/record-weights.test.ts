import { describe, expect, it } from "vitest";
import type { KeywordRanked } from "../../src/ports/recall-store.ts";
import {
  asksForRecent,
  codeShare,
  judgeMatch,
  keywordLead,
  neighbourShare,
  recencyWeight,
  recordWeight,
  secondOpinion,
  shortness,
  wantsSecondOpinion,
} from "../../src/recall/fuse.ts";

const ranked = (scores: readonly number[], matched?: number): KeywordRanked[] =>
  scores.map((score, index) => ({ id: String(index), score, ...(index === 0 && { matched }) }));

describe("the semantic weight of records", () => {
  it.each([
    ["0.55 for prose that the model reads", { coverage: 1, codeShare: 0.01, keywordLead: 0 }, 0.55],
    ["0.9 for functions", { coverage: 1, codeShare: 0.13, keywordLead: 0 }, 0.9],
    ["between both for records with some code", { coverage: 1, codeShare: 0.075, keywordLead: 0 }, 0.725],
    ["0.3 of it for prose in an unknown language", { coverage: 0, codeShare: 0, keywordLead: 0 }, 0.165],
    ["less for a language that is read in pieces", { coverage: 0.475, codeShare: 0, keywordLead: 0 }, 0.55 * 0.65],
    ["less only by half of that for functions", { coverage: 0, codeShare: 0.2, keywordLead: 0 }, 0.9 * 0.65],
    ["a tenth less where one keyword match stands out", { coverage: 1, codeShare: 0, keywordLead: 1 }, 0.495],
    ["the same for functions where one stands out", { coverage: 1, codeShare: 0.13, keywordLead: 1 }, 0.9],
    ["0.9 where the best keyword match has few of the terms", { coverage: 1, codeShare: 0, keywordLead: 0, matched: 0.3 }, 0.9],
    ["between both where it has some of them", { coverage: 1, codeShare: 0, keywordLead: 0, matched: 0.4 }, 0.725],
    ["for an unknown language no more than 0.3 of it", { coverage: 0, codeShare: 0, keywordLead: 0, matched: 0 }, 0.27],
  ])("is %s", (_, signals, expected) => {
    expect(recordWeight({ matched: 1, ...signals })).toBeCloseTo(expected, 10);
  });
});

describe("the second opinion", () => {
  it("adds points to functions by their place between the least and the most similar one, and none to prose", () => {
    expect(secondOpinion([0.2, 0.6, 0.4], 0.13)).toEqual([0, 0.2, expect.closeTo(0.1, 10)]);
    expect(secondOpinion([0.2, 0.6], 0.075)).toEqual([0, expect.closeTo(0.1, 10)]);
    expect(secondOpinion([0.2, 0.6], 0.01)).toEqual([0, 0]);
    expect(secondOpinion([0.5, 0.5], 0.13)).toEqual([0, 0]);
    expect(secondOpinion([], 0.13)).toEqual([]);
    expect([wantsSecondOpinion(0.01), wantsSecondOpinion(0.05)]).toEqual([false, true]);
  });
});

describe("the signals", () => {
  it.each([
    ["no keyword match", [], 0],
    ["ten equal matches", ranked([2, 2, 2], 1), 0],
    ["a match that is ahead", ranked([4, 3, 1], 1), 0.75],
    ["a match that is ahead with half of the words", ranked([4, 3, 1], 0.5), 0.375],
    ["a single match", ranked([4], 1), 1],
  ])("measure the lead of %s", (_, keyword, expected) => {
    expect(keywordLead(keyword)).toBeCloseTo(expected, 10);
  });

  it.each([
    ["", 0],
    ["Two plain words.", 0],
    ["f(x);", 3 / 5],
  ])("measure the code punctuation of %j", (text, expected) => {
    expect(codeShare(text)).toBeCloseTo(expected, 10);
  });

  it("find more code punctuation in a function than in prose about it", () => {
    expect(codeShare("def get(name):\n    return values[name] if name in values else None")).toBeGreaterThan(0.07);
    expect(codeShare("Returns the value of a name (or None), as get does for a missing key.")).toBeLessThan(0.07);
  });

  it.each([
    ["Hi!", 0.4 * (11 / 12)],
    ["one two three four five six", 0.2],
    ["one two three four five six seven eight nine ten eleven twelve", 0],
    ["每次请求后关闭数据库连接每次请求后关闭数据库连接", 0],
  ])("demote %j by its length", (text, expected) => {
    expect(shortness(text)).toBeCloseTo(expected, 10);
  });

  it.each([
    ["much where chance explains none", { observed: 0.2, candidates: 40, records: 100_000 }, 0, 0.3],
    ["less where many records are candidates", { observed: 0.4, candidates: 201, records: 1_000 }, 0, 0.3 * 0.64],
    ["much where the best have neighbours more often than by chance", { observed: 0.8, candidates: 201, records: 1_000 }, 0, 0.3],
    ["nothing where every record is a candidate", { observed: 1, candidates: 40, records: 39 }, 0, 0],
    ["nothing without keys", { observed: 0, candidates: 40, records: 0 }, 0, 0],
    ["half as much for records with some code", { observed: 0.2, candidates: 40, records: 100_000 }, 0.075, 0.15],
    ["nothing for functions", { observed: 0.2, candidates: 40, records: 100_000 }, 0.13, 0],
  ])("raise neighbours %s", (_, adjacency, share, expected) => {
    expect(neighbourShare(adjacency, share)).toBeCloseTo(expected, 3);
  });

  it.each([
    ["where was I?", true],
    ["what is unfinished", true],
    ["Where did we leave off yesterday, what's next", true],
    ["wo waren wir stehen geblieben", true],
    ["на чём мы остановились", true],
    ["what was I working on", true],
    ["where was the JWT key rotated", false],
    ["how does the parser continue after an error", false],
    ["the next page of a list", false],
  ])("recognise that %j asks for the state of the work: %s", (query, expected) => {
    expect(asksForRecent(query)).toBe(expected);
  });
});

describe("the weight of recency", () => {
  it.each([
    ["where was I, and what is unfinished?", 10],
    ["what is left to do on the parser", 0.6],
    ["how does the parser work", 0],
  ])("for %j is %d", (query, expected) => {
    expect(recencyWeight(query)).toBe(expected);
  });
});

describe("the match quality", () => {
  it.each([
    ["high", { cosine: 0.62, coverage: 1, matched: 0.75 }],
    ["high", { cosine: 0.3, coverage: 0.1, matched: 0.7 }], // another language: the keywords decide
    ["high", { cosine: 0.7, coverage: 1, matched: 0 }], // another wording: the meaning decides
    ["medium", { cosine: 0.4, coverage: 1, matched: 0.2 }],
    ["low", { cosine: 0.25, coverage: 1, matched: 0.25 }],
    ["none", { cosine: 0.19, coverage: 0, matched: 0 }],
    ["none", { cosine: 0.33, coverage: 0, matched: 0 }],
    ["none", { cosine: 0.18, coverage: 1, matched: 0.15 }],
    ["none", {}],
    ["high", { matched: 1 }],
    ["high", { cosine: 0.6 }],
    ["none", { cosine: 0.74, model: "text-embedding-ada-002" }],
  ] as const)("is %s for %j", (expected, evidence) => {
    expect(judgeMatch({ coverage: 1, ...evidence })).toBe(expected);
  });
});

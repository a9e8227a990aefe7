import ranks from "gpt-tokenizer/bpeRanks/o200k_base";
import { describe, expect, it } from "vitest";
import { vocabulary } from "../../src/text/estimate-tokens.ts";

const isToken = (piece: string) => vocabulary().has(piece);
const tokens = ranks.filter((token): token is string => typeof token === "string");
const words = (pattern: RegExp) => tokens.slice(0, 130_000).filter((token) => pattern.test(token));

describe("the filter of the vocabulary", () => {
  it.each([
    ["English", /^ ?[a-z]{2,15}$/],
    ["Russian", /^ ?[а-яё]{2,15}$/u],
    ["Chinese", /^[\u4e00-\u9fff]{2,4}$/],
    ["marks", /^ ?[{}()[\];:=<>+*/&|!-]{2,15}$/],
  ])("has every token of %s", (_, pattern) => {
    const listed = words(pattern);
    expect(listed.length).toBeGreaterThan(500);
    expect(listed.filter((token) => !isToken(token))).toEqual([]);
  });

  it("takes few other pieces for tokens", () => {
    const known = new Set(tokens);
    const falsePositives = (pieces: readonly string[]) => {
      const unknown = pieces.filter((piece) => !known.has(piece));
      return unknown.filter(isToken).length / unknown.length;
    };
    expect(falsePositives(words(/^ [a-z]{4,12}$/).map((word) => `${word}q`))).toBeLessThan(1 / 12);
    expect(falsePositives(words(/^ [а-яё]{4,12}$/u).map((word) => `${word}ъ`))).toBeLessThan(1 / 100);
  });

  it("splits from the start into the longest tokens", () => {
    const piece = " checkpointing";
    expect(vocabulary().longest(piece, 0, piece.length)).toBe(" checkpoint".length);
    expect(vocabulary().longest("ж", 0, 1)).toBe(1);
  });
});

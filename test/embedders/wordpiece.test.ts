import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { wordPiece } from "../../src/embedders/local/wordpiece.ts";
import { builtFile } from "../../src/files/built-file.ts";

const file = JSON.parse(readFileSync(builtFile("models/minilm/tokenizer.json"), "utf8"));
const tokenizer = wordPiece(file);
const names = Object.entries(file.model.vocab as Record<string, number>).reduce<string[]>((list, [name, id]) => {
  list[id] = name;
  return list;
}, []);
const tokens = (text: string): string =>
  tokenizer
    .pieces(text, 1000)
    .map((id) => names[id])
    .join(" ");

describe("the WordPiece tokenizer", () => {
  it("gives the ids BERT uncased is known by", () => {
    expect(tokenizer.encode("hello world", 256)).toEqual([101, 7592, 2088, 102]);
    expect(tokenizer.encode("Hello, my dog is cute", 256)).toEqual([101, 7592, 1010, 2026, 3899, 2003, 10140, 102]);
    expect(tokenizer.encode("", 256)).toEqual([101, 102]);
  });

  it.each([
    ["embeddings", "em ##bed ##ding ##s"],
    ["unaffable", "una ##ffa ##ble"],
    ["snake_case camelCase a.b()", "snake _ case camel ##case a . b ( )"],
    ["Crème brûlée, naïve Ångström", "cr ##eme br ##ule ##e , naive ang ##strom"],
    ["ΟΔΟΣ", "ο ##δ ##ο ##σ"],
    ["北京 is 中", "北 京 is 中"],
    ["don't—stop…", "don ' t — stop …"],
    ["price: 5€ = $6 + 7£", "price : 5 ##€ = $ 6 + 7 ##£"],
    ["a\u0000b\u200bc\ufffdd", "abc ##d"],
    ["tab\tnew\nline\u00a0nbsp\u3000wide", "tab new line n ##bs ##p wide"],
    ["x".repeat(101), "[UNK]"],
    ["\u{1f600} ok", "[UNK] ok"],
    ["keep [MASK] and [SEP]", "keep [MASK] and [SEP]"],
    ["[mask]", "[ mask ]"],
  ])("splits %j as the reference does", (text, expected) => {
    expect(tokens(text)).toBe(expected);
  });

  it("reads a long text as the sequence of its words", () => {
    const words = Array.from({ length: 3_000 }, (_, index) => ["Über", `word${index}`, "x(y)", "naïve"][index % 4]!);
    const expected = words.flatMap((word) => tokenizer.pieces(word, 100));
    expect(tokenizer.pieces(words.join(" "), 100_000)).toEqual(expected);
    expect(tokenizer.pieces("unspaced".repeat(500), 1_000)).toEqual(tokenizer.pieces("x".repeat(4_000), 1_000)); // too long for a word
  });

  it("frames and cuts at the maximum length", () => {
    const ids = tokenizer.encode("word ".repeat(1000), 256);
    expect(ids).toHaveLength(256);
    expect([ids[0], ids[255]]).toEqual([101, 102]);
  });

  it("never throws, never exceeds its limit and only gives known ids, whatever the text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.integer({ min: 2, max: 64 }), (text, maxLength) => {
        const ids = tokenizer.encode(text, maxLength);
        expect(ids.length).toBeLessThanOrEqual(maxLength);
        expect(ids.every((id) => names[id] !== undefined)).toBe(true);
      }),
    );
  });

  it("takes every word of the vocabulary as one token and gives words back unchanged", () => {
    const words = names.filter((name) => /^[a-z]+$/.test(name));
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 20 }), (chosen) => {
        expect(tokens(chosen.join(" "))).toBe(chosen.join(" "));
        expect(tokens(chosen.join(" ").toUpperCase())).toBe(chosen.join(" "));
      }),
    );
  });

  it("joins pieces back to the word they came from", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]{1,40}$/), (word) => {
        const pieces = tokens(word);
        if (pieces !== "[UNK]") expect(pieces.replaceAll(" ##", "")).toBe(word);
      }),
    );
  });

  it("treats a text the same however often and after whatever it is asked", () => {
    const fresh = wordPiece(file);
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), (text) => {
        expect(tokenizer.pieces(text, 500)).toEqual(fresh.pieces(text, 500));
      }),
    );
  });
});

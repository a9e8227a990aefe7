import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countPieces, PART_CHARS, PIECES_MAX, WHOLE_CHARS } from "../../src/model/stored-record.ts";
import { pieceText, splitPieces } from "../../src/text/pieces.ts";

const sentence = (topic: string) => `The part about ${topic} has a few words more than its name. `;
const paragraph = (topic: string, chars = PART_CHARS) =>
  sentence(topic)
    .repeat(Math.floor(chars / sentence(topic).length))
    .trim();

describe("splitPieces", () => {
  it("leaves a text of ordinary length whole", () => {
    const text = "a".repeat(WHOLE_CHARS);
    expect(splitPieces(text)).toEqual([text]);
    expect(countPieces(text)).toBe(1);
  });

  it("returns the whole text first, then its paragraphs", () => {
    const paragraphs = ["apples", "boats", "clouds", "drums"].map((topic) => paragraph(topic, PART_CHARS * 0.97));
    const text = paragraphs.join("\n\n");
    expect(splitPieces(text)).toEqual([text, ...paragraphs]);
  });

  it("divides a paragraph after a sentence, and text without sentences after a word", () => {
    const [, ...sentences] = splitPieces(paragraph("apples", 3_000));
    for (const part of sentences) expect(part).toMatch(/^The part .* name\.$/s);
    const [, ...words] = splitPieces("lorem ".repeat(500));
    for (const part of words) expect(part).toMatch(/^(lorem )*lorem$/);
  });

  it("divides Chinese text after a sentence", () => {
    const [, ...parts] = splitPieces("我们修复了登录错误并重新运行了所有测试。".repeat(100));
    for (const part of parts) expect(part.endsWith("。")).toBe(true);
  });

  it("never cuts a character in two", () => {
    for (const part of splitPieces(`x${"🧭".repeat(2_000)}`)) expect(part.isWellFormed()).toBe(true);
  });

  it("embeds the beginning instead of a blank part", () => {
    const text = `summary${" ".repeat(3_000)}end`;
    for (const part of splitPieces(text)) expect(part.trim()).not.toBe("");
  });

  it("has at most the limit of pieces, of about equal length", () => {
    const text = paragraph("everything", 10_500);
    const [, ...parts] = splitPieces(text);
    expect(parts).toHaveLength(PIECES_MAX - 1);
    const lengths = parts.map(({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThan(2 * Math.min(...lengths));
  });

  it("covers every text with as many pieces as its length says", () => {
    const texts = fc
      .array(fc.oneof(fc.string({ unit: "grapheme", maxLength: 400 }), fc.constantFrom("\n\n", ". ", " ", "\n \n", "。")), {
        maxLength: 60,
      })
      .map((units) => units.join(""));
    fc.assert(
      fc.property(texts, (text) => {
        const pieces = splitPieces(text);
        expect(pieces).toHaveLength(countPieces(text));
        expect(pieces.map((_, piece) => pieceText(text, piece))).toEqual(pieces);
        if (pieces.length === 1) return;
        // A blank part repeats the beginning.
        const letters = (value: string) => value.replace(/\s/g, "");
        if (!/\s{200}/.test(text)) expect(letters(pieces.slice(1).join(""))).toBe(letters(text));
      }),
      { numRuns: 300 },
    );
  });
});

import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { frameOf, modelTokenizer } from "../../src/embedders/local/onnx/tokenizer.ts";
import { wordPiece } from "../../src/embedders/local/wordpiece.ts";
import { builtFile } from "../../src/files/built-file.ts";

const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"));
const fixture = (name: string) => readJson(`${import.meta.dirname}/../fixtures/tokenizers/${name}.json`);
/** Ids that the `tokenizers` library of Hugging Face 0.23 returns for these files. */
const reference = fixture("reference") as Record<string, Record<string, number[]>>;
const cases = Object.entries(reference).flatMap(([name, texts]) =>
  Object.entries(texts).map(([text, ids]): [string, string, number[]] => [name, text, ids]),
);

describe("the tokenizer of a model folder", () => {
  it.each(cases)("with %s splits %j as the reference does", (name, text, ids) => {
    expect(modelTokenizer(fixture(name)).encode(text, 1_000)).toEqual(ids);
  });

  it("splits WordPiece as MiniLM's own tokenizer does, special tokens included", () => {
    const file = readJson(builtFile("models/minilm/tokenizer.json"));
    const [general, own] = [modelTokenizer(file), wordPiece(file)];
    fc.assert(
      fc.property(fc.string({ maxLength: 80 }), (text) => {
        expect(general.encode(text, 64)).toEqual(own.encode(text, 64));
      }),
    );
  });

  it("cuts a long text and keeps the special tokens at both ends", () => {
    const ids = modelTokenizer(fixture("unigram")).encode("word ".repeat(1_000), 16);
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([16, 0, 2]);
  });

  it("rejects a tokenizer.json of an unknown kind with its reason", () => {
    const file = { ...fixture("unigram"), model: { type: "WordLevel" } };
    expect(() => modelTokenizer(file)).toThrow(/WordLevel/);
  });
});

describe("the special tokens around a text", () => {
  it.each([
    [[101, 5, 6, 102], [5, 6], [101], [102]],
    [[5, 6], [5, 6], [], []],
    [[0, 2], [], [], [0, 2]],
    [[1, 5], [5], [1], []],
  ])("of %j with the text %j are found", (framed, plain, before, after) => {
    expect(frameOf(framed, plain)).toEqual({ before, after });
  });

  it("are not guessed when the tokens of the text changed", () => {
    expect(() => frameOf([1, 9, 2], [5])).toThrow(/post-processor/);
  });
});

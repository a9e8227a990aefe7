import { describe, expect, it } from "vitest";
import { chooseOutput, pool } from "../../src/embedders/local/onnx/pooling.ts";

const vectors = { data: Float32Array.of(3, 4, 9, 1, 0, 9), tokens: 2, width: 3 };

describe("pooling", () => {
  it("takes the mean of the tokens at unit length", () => {
    const [x, y] = pool(vectors, "mean", 2);
    expect([x, y]).toEqual([expect.closeTo(Math.SQRT1_2), expect.closeTo(Math.SQRT1_2)]);
  });

  it("takes the first token for cls, and the first values for a shorter vector", () => {
    expect([...pool(vectors, "cls", 2)]).toEqual([expect.closeTo(0.6), expect.closeTo(0.8)]);
    expect(pool(vectors, "cls", 3)).toHaveLength(3);
  });
});

describe("the output of a model", () => {
  it.each([
    [["last_hidden_state", "pooler_output"], undefined, "last_hidden_state"],
    [["token_embeddings", "sentence_embedding"], undefined, "sentence_embedding"],
    [["token_embeddings", "sentence_embedding"], "mean" as const, "token_embeddings"],
    [["embedding"], undefined, "embedding"],
    [[], undefined, undefined],
  ])("of %j with pooling %s is %s", (names, pooling, expected) => {
    expect(chooseOutput(names, pooling)).toBe(expected);
  });
});

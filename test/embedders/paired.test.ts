import { expect, it } from "vitest";
import { pairedEmbedder } from "../../src/embedders/local/paired.ts";
import type { Embedder } from "../../src/ports/embedder.ts";
import { testEmbedder } from "../support/embedders.ts";

const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, index) => sum + value * b[index]!, 0);

it("two models as one: the cosine is the mean of both, and words inside of names are passed to the model for prose", async () => {
  const reported: string[] = [];
  const one = testEmbedder({ model: "one", dimension: 64 });
  const deep: Embedder = {
    ...one,
    embed(texts, options) {
      reported.push(...texts);
      return one.embed(texts, options);
    },
  };
  const quick = testEmbedder({ model: "two", dimension: 32 });
  const both = pairedEmbedder(deep, quick);
  expect(both).toMatchObject({ model: "one+two", dimension: 96 });
  const texts = ["open the file", "open the door"];
  const [a, b] = (await both.embed(texts)) as [Float32Array, Float32Array];
  const [a1, b1, a2, b2] = [...(await one.embed(texts)), ...(await quick.embed(texts))] as [
    Float32Array,
    Float32Array,
    Float32Array,
    Float32Array,
  ];
  expect(dot(a, a)).toBeCloseTo(1, 5);
  expect(dot(a, b)).toBeCloseTo((dot(a1, b1) + dot(a2, b2)) / 2, 5);
  await both.embed(["parseJSONFile of my_own_reader"]);
  expect(reported.at(-1)).toBe("parse JSON File of my own reader");
});

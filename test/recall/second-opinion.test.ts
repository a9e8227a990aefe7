import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { type TestEmbedder, testEmbedder } from "../support/embedders.ts";

const projectPath = "/srv/app";

describe("the second opinion on functions", () => {
  let cairn: Cairn;
  let second: TestEmbedder;
  const openWith = async (model: string) => {
    const first = {
      ...testEmbedder({ model }),
      embed: async (texts: readonly string[]) => texts.map(() => Float32Array.from([1, 0])),
      dimension: 2,
    };
    second = testEmbedder({ model: "static", dimension: 2 });
    cairn = await open({ storage: "memory", embedder: [first, second] });
  };
  const save = (summary: string) => cairn.checkpoints.save({ projectPath, summary });
  const firstOf = async (query: string) => (await cairn.checkpoints.search({ projectPath, query })).hits[0]!.record.summary;
  const wanted = "def feed(walrus): return [fish(x) for x in walrus.mouths()]";
  const newer = "def walk(dog): return {leash(dog): [step(s) for s in road]}";

  beforeEach(() => openWith("all-MiniLM-L6-v2"));
  afterEach(() => cairn.close());

  it("decides between functions that the first model cannot tell apart", async () => {
    await save(wanted);
    await save(newer);
    // Neither text has the word itself, so keywords do not decide.
    second.embed = async (texts) => texts.map((text) => Float32Array.from(/walrus|tusks/.test(text) ? [1, 0] : [0, 1]));
    expect(await firstOf("the animal with tusks")).toBe(wanted);
  });

  it("is left out if the second model fails, and the search does not", async () => {
    await save(wanted);
    await save(newer);
    second.mood = "down";
    const { hits, degraded } = await cairn.checkpoints.search({ projectPath, query: "the animal with tusks" });
    expect([hits.length, degraded]).toEqual([2, []]);
  });

  it("is not asked about prose, nor for another model", async () => {
    await save("we feed the walrus at noon, and it likes the fish from the market in the harbour");
    await save("the dog walks along the road to the old harbour every morning before breakfast");
    await firstOf("the animal with tusks");
    expect(second.calls).toBe(0);
    await cairn.close();
    await openWith("a-larger-model");
    await save(wanted);
    await save(newer);
    await firstOf("the animal with tusks");
    expect(second.calls).toBe(0);
  });
});

import { describe, expect, it } from "vitest";
import { modelQueue } from "../../src/embedders/local/model-queue.ts";
import type { EmbedReply, EmbedRequest } from "../../src/embedders/local/serve-embeddings.ts";

describe("the queue of a model process", () => {
  it("serves queries first, and lets a save pass after four in a row", async () => {
    const order: string[] = [];
    const process = {
      async ask({ texts = [] }: EmbedRequest): Promise<EmbedReply> {
        order.push(...texts);
        return { vectors: new Float32Array(texts.length) };
      },
      pid: () => undefined,
      stop: async () => {},
    };
    const queue = modelQueue({ process, dimension: 1, textChars: 100 });
    const waiting = [queue.embed(["in the model"]), queue.embed(["save 1"]), queue.embed(["save 2"])];
    for (let number = 1; number <= 6; number++) waiting.push(queue.embed([`query ${number}`], { purpose: "query" }));
    await Promise.all(waiting);
    const queries = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => `query ${from + index}`);
    expect(order).toEqual(["in the model", ...queries(1, 4), "save 1", ...queries(5, 6), "save 2"]);
  });
});

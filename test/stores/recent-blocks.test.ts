import { describe, expect, it } from "vitest";
import { recentBlocks, textReader } from "../../src/stores/rows/chunk-row.ts";

describe("recently read blocks", () => {
  it("keeps the blocks that were used last, within the limit", () => {
    const blocks = recentBlocks(10);
    blocks.set(1, "aaaa");
    blocks.set(2, "bbbb");
    expect(blocks.get(1)).toBe("aaaa"); // newer than 2 from here on
    blocks.set(3, "cccc");
    expect([1, 2, 3].map((key) => blocks.get(key))).toEqual(["aaaa", undefined, "cccc"]);
  });

  it("keeps one block that is longer than the limit, so that all chunks of a block unpack it once", () => {
    const blocks = recentBlocks(10);
    blocks.set(1, "aaaa");
    blocks.set(2, "b".repeat(100));
    expect([1, 2].map((key) => blocks.get(key)?.length)).toEqual([undefined, 100]);
    let reads = 0;
    const textOf = textReader(() => {
      reads++;
      return undefined;
    }, blocks);
    expect(textOf({ text_key: 2, text_start: 1, text_length: 3 })).toBe("bbb");
    expect(reads).toBe(0);
  });
});

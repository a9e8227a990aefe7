import { describe, expect, it } from "vitest";
import { fairQueue } from "../../../src/embedders/shared/fair-queue.ts";

function taken(queue: ReturnType<typeof fairQueue<string, string>>): string[] {
  const items: string[] = [];
  for (let item = queue.take(); item !== undefined; item = queue.take()) items.push(item);
  return items;
}

describe("the queue of a leader", () => {
  it("takes one item of each connection in turn", () => {
    const queue = fairQueue<string, string>();
    for (const item of ["a1", "a2", "a3"]) queue.push("a", item, false);
    queue.push("b", "b1", false);
    queue.push("c", "c1", false);
    expect(taken(queue)).toEqual(["a1", "b1", "c1", "a2", "a3"]);
  });

  it("takes queries first, and lets a save pass after four of them", () => {
    const queue = fairQueue<string, string>();
    queue.push("a", "save 1", false);
    queue.push("a", "save 2", false);
    for (let number = 1; number <= 6; number++) queue.push("b", `query ${number}`, true);
    expect(taken(queue)).toEqual(["query 1", "query 2", "query 3", "query 4", "save 1", "query 5", "query 6", "save 2"]);
  });

  it("drops the items of a connection that has ended", () => {
    const queue = fairQueue<string, string>();
    queue.push("a", "a1", false);
    queue.push("b", "b1", false);
    queue.push("a", "a2", true);
    queue.drop("a");
    expect(taken(queue)).toEqual(["b1"]);
  });
});

import { describe, expect, it } from "vitest";
import { compareStates } from "../../src/runs/compare-states.ts";

const changes = (before: unknown, after: unknown, limit = 100) => compareStates(before, after, limit).changes;

describe("the difference between two states", () => {
  it("names added, removed and changed values by their path", () => {
    expect(changes({ a: 1, b: { c: [1, 2] }, gone: null }, { a: 2, b: { c: [1, 3] }, new: { x: 1 } })).toEqual([
      { path: ["a"], kind: "changed", before: 1, after: 2 },
      { path: ["b", "c", 1], kind: "changed", before: 2, after: 3 },
      { path: ["gone"], kind: "removed", before: null },
      { path: ["new"], kind: "added", after: { x: 1 } },
    ]);
  });

  it("is empty for equal states, also with dates, maps and bytes", () => {
    const state = () => ({ at: new Date(0), map: new Map([["a", 1]]), bytes: new Uint8Array([1]), list: [{}] });
    expect(compareStates(state(), state(), 10)).toEqual({ changes: [], more: false });
    expect(changes(state(), { ...state(), at: new Date(1) })).toEqual([
      { path: ["at"], kind: "changed", before: new Date(0), after: new Date(1) },
    ]);
  });

  it("skips the equal beginning and end of a list", () => {
    expect(changes(["a", "b", "c"], ["a", "new", "b", "c"])).toEqual([{ path: [1], kind: "added", after: "new" }]);
    expect(changes([1, 2, 3], [1, 3])).toEqual([{ path: [1], kind: "removed", before: 2 }]);
  });

  it("compares the states themselves if they are no objects of the same kind", () => {
    expect(changes([1], { 0: 1 })).toEqual([{ path: [], kind: "changed", before: [1], after: { 0: 1 } }]);
  });

  it("stops at the limit and reports that there are more", () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, i]));
    expect(compareStates({}, many, 5)).toMatchObject({ changes: { length: 5 }, more: true });
  });
});

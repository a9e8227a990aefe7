import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { orderByFreshness } from "../../src/freshness/judge.ts";
import type { FreshnessState } from "../../src/model/anchor.ts";

interface Hit {
  readonly id: string;
  readonly score: number;
  readonly state?: FreshnessState;
  readonly supersededBy?: string;
  readonly outdated?: number;
}

const order = (hits: readonly Hit[]) =>
  orderByFreshness(
    hits,
    ({ id, state = "unknown", supersededBy = "", outdated }) => ({ id, freshness: { state, anchors: [] }, supersededBy, outdated }),
    ({ score }) => score,
  );
const ids = (hits: readonly Hit[]) => hits.map(({ id }) => id).join(" ");

describe("the order of marked hits", () => {
  it("puts a stale record below a current one that matches as well, and above one that hardly matches", () => {
    const hits: Hit[] = [
      { id: "changed", score: 0.8, state: "changed" },
      { id: "current", score: 0.7, state: "fresh" },
      { id: "weak", score: 0.1 },
    ];
    expect(ids(order(hits))).toBe("current changed weak");
  });

  it.each<[FreshnessState, string]>([
    ["fresh", "a b"],
    ["unknown", "a b"],
    ["renamed", "a b"],
    ["other_branch", "a b"],
    ["changed", "b a"],
    ["gone", "b a"],
  ])("ranks a record that is %s as %s", (state, expected) => {
    expect(
      ids(
        order([
          { id: "a", score: 0.9, state },
          { id: "b", score: 0.6 },
        ]),
      ),
    ).toBe(expected);
  });

  it("never puts a replaced record above its replacement", () => {
    const hits: Hit[] = [
      { id: "old", score: 1, supersededBy: "new" },
      { id: "older", score: 0.9, supersededBy: "old" },
      { id: "new", score: 0.1 },
    ];
    expect(ids(order(hits))).toBe("new old older");
    expect(
      ids(
        order([
          { id: "a", score: 1, supersededBy: "b" },
          { id: "b", score: 0.5, supersededBy: "a" },
        ]),
      ),
    ).toMatch(/^(a b|b a)$/);
  });

  it("puts a record that was reported as outdated below the others", () => {
    expect(
      ids(
        order([
          { id: "a", score: 0.9, outdated: 1 },
          { id: "b", score: 0.3 },
        ]),
      ),
    ).toBe("b a");
  });

  it("keeps every hit, and ordering twice changes nothing", () => {
    const hit = fc.record({
      id: fc.constantFrom("a", "b", "c", "d", "e", "f"),
      score: fc.double({ min: 0, max: 1, noNaN: true }),
      state: fc.constantFrom<FreshnessState>("fresh", "changed", "gone", "renamed", "other_branch", "unknown"),
      supersededBy: fc.constantFrom("", "a", "b", "c", "z"),
      outdated: fc.nat(2),
    });
    fc.assert(
      fc.property(fc.uniqueArray(hit, { selector: ({ id }) => id }), (hits) => {
        const once = order(hits);
        expect(new Set(once)).toEqual(new Set(hits));
        expect(order(once)).toEqual(once);
      }),
    );
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eventParser } from "../../console/api/parse-events.ts";
import { answerOf } from "../../console/pages/runs/answer-of.ts";
import { noteOf, questionText } from "../../console/pages/runs/step-note.ts";
import { moveDays } from "../../console/pages/timeline/move-days.ts";
import { changeOf, childrenOf } from "../../console/parts/compare-values.ts";
import { diffLines } from "../../console/parts/diff-lines.ts";
import { formatBytes, formatDay, formatPlural, isShortened, shellWord } from "../../console/parts/format.ts";
import { markTerms } from "../../console/parts/mark-terms.ts";
import { squarify } from "../../console/parts/squarify.ts";
import { coalesce } from "../../console/state/coalesce.ts";
import { feed } from "../../console/state/feed.ts";

const line = fc.constantFrom("a", "b", "c", "");

describe("diffLines", () => {
  it("keeps both texts: without the added lines it is the old one, without the removed lines the new one", () => {
    fc.assert(
      fc.property(fc.array(line), fc.array(line), (before, after) => {
        const lines = diffLines(before, after);
        const without = (kind: string) => lines.filter((one) => one.kind !== kind).map(({ text }) => text);
        expect([without("added"), without("removed")]).toEqual([before, after]);
      }),
    );
  });

  it("marks only what changed", () => {
    expect(diffLines(["a", "b", "c"], ["a", "x", "c"]).map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      "same a",
      "removed b",
      "added x",
      "same c",
    ]);
  });
});

describe("markTerms", () => {
  it("never changes the text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string(), (text, query) => {
        expect(
          markTerms(text, query)
            .map((part) => part.text)
            .join(""),
        ).toBe(text);
      }),
    );
  });

  it("marks other forms of a term, and no word that is in every text", () => {
    const marked = (text: string, query: string) => markTerms(text, query).flatMap((part) => (part.isMatch ? [part.text] : []));
    expect(marked("The test rounds totals", "rounding of the total")).toEqual(["rounds", "totals"]);
  });
});

describe("squarify", () => {
  it("gives each item its share of the area, inside it and without overlaps", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 1, maxLength: 40 }), (weights) => {
        const area = { x: 10, y: 5, width: 300, height: 100 };
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        const tiles = squarify(weights, (weight) => weight, area);
        expect(tiles).toHaveLength(weights.length);
        for (const { item, x, y, width, height } of tiles) {
          expect(width * height).toBeCloseTo((30_000 * item) / total, 3);
          expect(Math.min(x - 10, y - 5, 310 - x - width, 105 - y - height)).toBeGreaterThan(-1e-6);
        }
        const overlap = (from: number, length: number, other: number, otherLength: number) =>
          Math.min(from + length, other + otherLength) - Math.max(from, other) > 1e-6;
        for (const [index, a] of tiles.entries())
          for (const b of tiles.slice(index + 1))
            expect(overlap(a.x, a.width, b.x, b.width) && overlap(a.y, a.height, b.y, b.height)).toBe(false);
      }),
      { numRuns: 50 },
    );
    expect(squarify([0], (weight) => weight, { x: 0, y: 0, width: 1, height: 1 })).toEqual([]);
  });
});

describe("a feed", () => {
  const items = (...orders: string[]) => orders.map((order) => ({ id: order, order }));
  const make = (...loaded: { id: string; order: string }[][]) => {
    const rest = [...loaded];
    return feed(async () => rest.shift() ?? [], {
      keyOf: ({ id }: { id: string; order: string }) => id,
      orderOf: ({ order }) => order,
      signal: new AbortController().signal,
    });
  };
  const keys = (list: ReturnType<typeof make>) => list.pages.value.flat().map(({ id }) => id);

  it("puts a record to its place, and an older one only when everything is loaded", async () => {
    const list = make(items("9", "7"), items("5"));
    await list.more();
    list.put({ id: "8", order: "8" });
    list.put({ id: "6", order: "6" });
    expect(keys(list)).toEqual(["9", "8", "7"]);
    await list.more();
    await list.more();
    expect(list.state.value).toBe("end");
    list.put({ id: "1", order: "1" });
    list.put({ id: "5", order: "95" });
    list.remove("7");
    expect(keys(list)).toEqual(["5", "9", "8", "1"]);
  });

  it("shows a record once that was put and comes again with its page", async () => {
    const list = make(items("9"), items("8", "7"));
    await list.more();
    list.put({ id: "7", order: "99" });
    await list.more();
    expect(keys(list)).toEqual(["7", "9", "8"]);
  });

  it("keeps an error until the next attempt", async () => {
    let fails = true;
    const list = feed(
      async () => {
        if (fails) throw new Error("down");
        return items("1");
      },
      { keyOf: ({ id }) => id, orderOf: ({ order }) => order, signal: new AbortController().signal },
    );
    await list.more();
    expect(list.state.value).toEqual(new Error("down"));
    fails = false;
    await list.more();
    expect(list.pages.value.flat()).toHaveLength(1);
  });
});

describe("moveDays", () => {
  it("stays within the days, moves both ends together, and one end with Shift", () => {
    const range = fc.record({ from: fc.nat(59), to: fc.nat(59) });
    const key = fc.constantFrom("ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End");
    fc.assert(
      fc.property(range, key, fc.boolean(), (before, pressed, isExtended) => {
        const { from, to } = moveDays(before, pressed, isExtended, 60)!;
        expect(to).toBeGreaterThanOrEqual(0);
        expect(to).toBeLessThan(60);
        expect(from).toBe(isExtended ? before.from : to);
      }),
    );
    expect(moveDays({ from: 5, to: 9 }, "ArrowLeft", true, 60)).toEqual({ from: 5, to: 8 });
    expect(moveDays({ from: 5, to: 9 }, "Home", false, 60)).toEqual({ from: 0, to: 0 });
    expect(moveDays({ from: 5, to: 9 }, "a", false, 60)).toBeUndefined();
  });
});

describe("values of a state", () => {
  it("are compared field by field, also when one is absent", () => {
    expect(childrenOf({ a: 1, b: 2 }, { b: 3, c: 4 })?.map(({ name, value, before }) => [name, changeOf(value, before)])).toEqual([
      ["a", "added"],
      ["b", "changed"],
      ["c", "removed"],
    ]);
    expect(changeOf({ a: [1] }, { a: [1] })).toBe("same");
    expect(childrenOf("text", "text")).toBeUndefined();
  });
});

describe("texts", () => {
  it("sends an answer as JSON where it is a value other than text", () => {
    expect(answerOf(' {"ok": true} ')).toEqual({ answer_json: '{"ok": true}' });
    expect(answerOf("65")).toEqual({ answer_json: "65" });
    expect(answerOf("yes, please")).toEqual({ answer: "yes, please" });
    expect(answerOf('"quoted"')).toEqual({ answer: "quoted" });
  });

  it("shows the answer of a pause, not its question again", () => {
    const note = JSON.stringify({ question: "Pay?", answers: ["no", { ok: true }] });
    expect([noteOf(note), noteOf(note, true), noteOf("plain", true)]).toEqual(["Pay?", '{"ok":true}', "plain"]);
  });

  it("reads the question of a pause, whatever form it has", () => {
    expect([questionText("Pay?"), questionText({ question: { question: "Pay?" } }), questionText({ amount: 1 })]).toEqual([
      "Pay?",
      "Pay?",
      '{"amount":1}',
    ]);
  });

  it("quotes a path for a command line, also with a quote in it", () => {
    expect([shellWord("/home/me/shop"), shellWord("/my shop"), shellWord("/it's; rm")]).toEqual([
      "/home/me/shop",
      "'/my shop'",
      "'/it'\\''s; rm'",
    ]);
  });

  it("formats counts, sizes and days", () => {
    expect([formatPlural(1, "file"), formatPlural(1200, "file"), formatBytes(999), formatBytes(1_234_567)]).toEqual([
      "1 file",
      "1,200 files",
      "999 B",
      "1.2 MB",
    ]);
    const now = new Date(2026, 10, 17, 12);
    expect([formatDay("2026-11-17", now), formatDay("2026-11-16", now), formatDay("2025-01-02", now)]).toEqual([
      "Today",
      "Yesterday",
      "2 January 2025",
    ]);
  });
});

describe("eventParser", () => {
  it("reads the same messages and the same last id, wherever the text is cut", () => {
    const text = 'retry: 1000\n\nevent: change\nid: a,1\ndata: {"x":"1: 2"}\n\n: heartbeat\n\nevent: reset\nid: b\ndata: {}\n\n';
    fc.assert(
      fc.property(fc.array(fc.nat(text.length)), (cuts) => {
        const parser = eventParser("start");
        const places = [0, ...cuts.toSorted((a, b) => a - b), text.length];
        const messages = places.slice(1).flatMap((end, index) => parser.push(text.slice(places[index], end)));
        expect(messages).toEqual([
          { type: "change", data: '{"x":"1: 2"}' },
          { type: "reset", data: "{}" },
        ]);
        expect(parser.lastId()).toBe("b");
      }),
    );
    expect(eventParser("start").lastId()).toBe("start");
  });
});

describe("coalesce", () => {
  const saved = (id: string, project = "/p", kind = "checkpoint") => ({ kind, action: "saved", project, id });
  it("keeps the last event of each record", () => {
    const deleted = { ...saved("a"), action: "deleted" };
    expect(coalesce([saved("a"), saved("b"), deleted])).toEqual([saved("b"), deleted]);
  });

  it("reports a burst in one project as one change of the project", () => {
    const burst = Array.from({ length: 500 }, (_, index) => saved(String(index)));
    expect(coalesce([...burst, saved("x", "/q")])).toEqual([{ kind: "checkpoint", action: "many", project: "/p" }, saved("x", "/q")]);
  });

  it("keeps which runs were deleted in a burst", () => {
    const burst = Array.from({ length: 500 }, (_, index) => ({ ...saved(String(index)), kind: "run" }));
    const deleted = { ...saved("499"), kind: "run", action: "deleted" };
    expect(coalesce([...burst, deleted])).toEqual([{ kind: "run", action: "many", project: "/p" }, deleted]);
  });
});

it.each([
  ["A sentence … [cut; use checkpoint_get]", true],
  [" … [cut, with 3 context pairs; use checkpoint_get]", true],
  ["The mark [cut; use knowledge_get] in a text", false],
  ["", false],
])("recognises a text that a list shortened: %s", (text, expected) => {
  expect(isShortened(text)).toBe(expected);
});

import { describe, expect, it } from "vitest";
import { chunkFile } from "../../src/code/chunking/chunk-file.ts";
import { estimateTokens } from "../../src/code/chunking/lines.ts";
import { chunkText } from "../../src/model/code-index.ts";
import { countTokens } from "../support/o200k.ts";
import { FIXTURES } from "./fixtures.ts";

describe("text without syntax", () => {
  it("is cut at blank lines, as much together as the budget allows", () => {
    const paragraph = (word: string) => `${word} one two three\n${word} four five six\n\n`;
    const { chunks, how } = chunkFile({ path: "notes.txt", content: ["a", "b", "c", "d"].map(paragraph).join(""), budgetTokens: 20 });
    expect(how).toBe("lines");
    expect(chunks.map(({ startLine, endLine, kind }) => [startLine, endLine, kind])).toEqual([
      [1, 6, "text"],
      [7, 12, "text"],
    ]);
  });

  it("is cut between lines where a paragraph is above the budget, and never inside a line", () => {
    const { chunks } = chunkFile({ path: "data.csv", content: `${"a,b,c\n".repeat(4)}${"word ".repeat(50)}\nx,y\n`, budgetTokens: 10 });
    expect(chunks.map(({ startLine, endLine }) => [startLine, endLine])).toEqual([
      [1, 2],
      [3, 4],
      [5, 5],
      [6, 6],
    ]);
  });
});

describe("Markdown", () => {
  const sections = (content: string) =>
    chunkFile({ path: "a.md", content }).symbols.map((symbol) =>
      symbol.role === "definition" ? [...symbol.parents, symbol.name].join(" > ") : "",
    );

  it("nests sections by their level, also where levels are skipped", () => {
    expect(sections("# A\n### B\n## C\n# D\n")).toEqual(["A", "A > B", "A > C", "D"]);
  });

  it("takes underlined headings, and closing signs off", () => {
    expect(sections("Title\n=====\n\nPart\n---\n\n## Closed ##\n")).toEqual(["Title", "Title > Part", "Title > Closed"]);
  });

  it("does not take comments in code, lists, rules, tables or front matter for headings", () => {
    expect(sections("---\ntitle: x\n---\n\n```sh\n# no\n~~~\n# no\n```\n\n- item\n---\n\n| a |\n---\n\n#hashtag\n    # code\n")).toEqual(
      [],
    );
  });

  it("reads on to the end when a fence is never closed", () => {
    expect(sections("# A\n```\n# no\n")).toEqual(["A"]);
  });
});

describe("what is embedded", () => {
  it("starts with the path, the parents and the symbol", () => {
    const chunk = { kind: "method", name: "push", parents: ["JobQueue"], defines: ["push"], text: "  push() {}\n\n" } as const;
    expect(chunkText("src/queue.ts", chunk)).toBe("src/queue.ts\nmethod JobQueue.push\npush() {}");
  });

  it("names what a shared chunk defines, and nothing where nothing is", () => {
    const chunk = { kind: "text", parents: [], defines: ["A", "B"], text: "x" } as const;
    expect(chunkText("a.ts", chunk)).toBe("a.ts\ntext A, B\nx");
    expect(chunkText("a.txt", { ...chunk, defines: [] })).toBe("a.txt\nx");
  });
});

describe("the token estimate", () => {
  it("is a little above what a real tokenizer counts in source files, so that the budget is kept", () => {
    const ratios = FIXTURES.map(({ content }) => estimateTokens(content) / countTokens(content));
    expect(Math.min(...ratios)).toBeGreaterThan(0.85); // Elixir, whose short names are tokens of their own
    expect(Math.max(...ratios)).toBeLessThan(1.5);
  });
});

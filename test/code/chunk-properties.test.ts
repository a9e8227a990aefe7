import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import type { ChunkFileInput } from "../../src/code/chunking/chunk-file.ts";
import { estimateTokens } from "../../src/code/chunking/lines.ts";
import type { ChunkedFile } from "../../src/model/code-chunk.ts";
import { chunker, FIXTURES } from "./fixtures.ts";

let chunk: (input: ChunkFileInput) => ChunkedFile;
beforeAll(async () => {
  chunk = await chunker();
});

const languages = fc.constantFrom(
  ..."typescript tsx javascript python go rust java c cpp csharp ruby php bash sql html css json yaml markdown vue text".split(" "),
);
const budgets = fc.integer({ min: 1, max: 600 });
const fixtures = fc.constantFrom(...FIXTURES);
/** Signs that open, close, quote and comment somewhere: what parsers trip over. */
const trouble = fc.stringMatching(/^[\n\r\t (){}[\]<>"'`#/*\\$;:,=a-z0-9é😀\0-]{0,200}$/u);

describe("chunks of anything", () => {
  it("hold every line of random text exactly once", () => {
    fc.assert(
      fc.property(languages, fc.oneof(trouble, fc.string({ unit: "binary", maxLength: 400 })), budgets, (language, content, budgetTokens) =>
        holds({ path: "file", content, language, budgetTokens }),
      ),
      { numRuns: 600 },
    );
  });

  it("hold every line of a source cut off anywhere", () => {
    fc.assert(
      fc.property(fixtures, fc.nat(), fc.nat(), budgets, ({ path, content }, from, to, budgetTokens) => {
        const [start, end] = [from % content.length, to % content.length].sort((a, b) => a - b);
        holds({ path, content: content.slice(start, end), budgetTokens });
      }),
      { numRuns: 400 },
    );
  });

  it("hold every line of a source with damage anywhere, whatever the line ends", () => {
    fc.assert(
      fc.property(
        fixtures,
        fc.array(fc.tuple(fc.nat(), trouble), { maxLength: 5 }),
        budgets,
        fc.boolean(),
        (file, damage, budgetTokens, crlf) => {
          let content = crlf ? file.content.replaceAll("\n", "\r\n") : file.content;
          for (const [place, text] of damage)
            content = content.slice(0, place % content.length) + text + content.slice((place % content.length) + 3);
          holds({ path: file.path, content, budgetTokens });
        },
      ),
      { numRuns: 400 },
    );
  });

  it("place a heading after a lone carriage return where its text is", () => {
    for (const content of ["# \rfoo", "#\t\u00a0foo bar", "## \r\r foo ##"]) holds({ path: "a.md", content, budgetTokens: 100 });
  });

  it("stay within the budget, unless a single line is longer", () => {
    for (const file of FIXTURES)
      for (const budgetTokens of [10, 50, 200])
        for (const { text, startLine, endLine } of chunk({ ...file, budgetTokens }).chunks)
          if (endLine > startLine) expect(estimateTokens(text)).toBeLessThanOrEqual(budgetTokens);
  });

  it("come the same from the same input", () => {
    for (const file of FIXTURES) expect(chunk(file)).toEqual(chunk(file));
  });

  it.each(["", " ", "\n", "\n\n \t\n", "\uFEFF"])("are none for a file of white space (%j)", (content) => {
    for (const language of ["typescript", "markdown", "text"]) expect(chunk({ path: "a", content, language }).chunks).toEqual([]);
  });

  it("survive nesting deeper than any stack", () => {
    const depth = 50_000;
    for (const [language, content] of [
      ["javascript", "(\n".repeat(depth)],
      ["json", `${"[\n".repeat(depth)}${"]\n".repeat(depth)}`],
      ["javascript", `${"function f() {\n".repeat(5_000)}${"}\n".repeat(5_000)}`],
      ["html", "<div>\n".repeat(5_000)],
    ] as const)
      holds({ path: "deep", content, language, budgetTokens: 100 });
  });
});

/** The promises that every result keeps. Plain comparisons, because they run on hundreds of thousands of symbols. */
function holds(input: ChunkFileInput): void {
  const { chunks, symbols } = chunk(input);
  const lines = input.content.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  if (input.content.trim() === "") {
    expect(chunks).toEqual([]);
    return;
  }
  expect(chunks.map(({ text }) => text).join("")).toBe(input.content);
  let next = 1;
  for (const [index, { startLine, endLine, text, ...rest }] of chunks.entries()) {
    expect({ index: rest.index, startLine }).toEqual({ index, startLine: next });
    if (text.replace(/\n$/, "") !== lines.slice(startLine - 1, endLine).join("\n")) expect.fail(`chunk ${index} is not its lines`);
    next = endLine + 1;
  }
  expect(next).toBe(lines.length + 1);
  for (const { name, line, column } of symbols)
    if (!input.content.startsWith(name, offset(lines, line, column))) expect.fail(`${name} is not at ${line}:${column}`);
}

const offsets = new WeakMap<readonly string[], number[]>();

function offset(lines: readonly string[], line: number, column: number): number {
  let starts = offsets.get(lines);
  if (!starts) {
    starts = [0];
    for (const text of lines) starts.push(starts[starts.length - 1]! + text.length + 1);
    offsets.set(lines, starts);
  }
  return starts[line - 1]! + column - 1;
}

import { beforeAll, describe, expect, it } from "vitest";
import type { ChunkFileInput } from "../../src/code/chunking/chunk-file.ts";
import type { ChunkedFile } from "../../src/model/code-chunk.ts";
import { chunker, expectationFile, FIXTURES, fixture } from "./fixtures.ts";

let chunk: (input: ChunkFileInput) => ChunkedFile;
beforeAll(async () => {
  chunk = await chunker();
});

/** The languages that the code index promises to cut by syntax. */
const PROMISED =
  "typescript tsx javascript python go rust java c cpp csharp ruby php bash sql html css json yaml markdown kotlin swift elixir lua haskell zig"
    .split(" ")
    .sort();

describe("chunks by language", () => {
  it("covers every promised language", () => {
    const files = FIXTURES.map((file) => chunk(file));
    expect(files.map(({ language }) => language).sort()).toEqual(PROMISED);
    expect(files.filter(({ how }) => how !== "syntax")).toEqual([]);
  });

  it.each(FIXTURES.map(({ path }) => path))("cuts %s at its definitions and lists them", async (path) => {
    await expect(summary(chunk(fixture(path)))).toMatchFileSnapshot(expectationFile(path));
  });

  it.each(FIXTURES.map(({ path }) => path))("cuts %s at inner boundaries when the budget is small", async (path) => {
    const { chunks } = chunk({ ...fixture(path), budgetTokens: 60 });
    await expect(chunks.map(line).join("\n").concat("\n")).toMatchFileSnapshot(expectationFile(`${path}.small`));
  });

  it.each([
    ["queue.ts", "retryWithBackoff", [63]],
    ["queue.ts", "sleep", [35]],
    ["panel.tsx", "Header", [13]],
    ["cart.js", "Cart", [23, 50, 53, 53]],
    ["cache.py", "TTLCache", [45, 61]],
    ["server.go", "Server", [23, 31, 32, 40, 42, 51]],
    ["shapes.rs", "Circle", [24, 28]],
    ["Ledger.java", "Booking", [7, 9, 20, 28, 34]],
    ["ring.c", "RING_NEXT", [32, 37]],
    ["matrix.cpp", "Grid", [52]],
    ["Inventory.cs", "IInventory", [8]],
    ["parser.rb", "ParseError", [34]],
    ["Router.php", "Router", [55, 57]],
    ["deploy.sh", "prune_releases", [25]],
    ["schema.sql", "accounts", [10, 18, 19, 20, 21, 27]],
    ["theme.css", "--accent", [10]],
    ["Cart.kt", "Cart", [15, 20, 25, 30]],
    ["Cart.swift", "Priced", [9]],
    ["cart.ex", "save", [7]],
    ["cart.lua", "save", [5]],
    ["Cart.hs", "items", [20, 20, 23]],
    ["cart.zig", "make", [20]],
  ])("finds in %s the uses of %s, and none in strings or comments", (path, name, expected) => {
    const references = chunk(fixture(path)).symbols.filter((symbol) => symbol.role === "reference" && symbol.name === name);
    expect(references.map(({ line }) => line)).toEqual(expected);
  });
});

function summary({ language, chunks, symbols }: ChunkedFile): string {
  const definitions = symbols
    .filter((symbol) => symbol.role === "definition")
    .map(({ kind, name, parents, line, column }) => `${line}:${column} ${kind} ${[...parents, name].join(" > ")}`);
  return [`language ${language}`, "", "chunks", ...chunks.map(line), "", "definitions", ...definitions, ""].join("\n");
}

function line({ startLine, endLine, kind, name, parents }: ChunkedFile["chunks"][number]): string {
  return `${startLine}-${endLine} ${kind} ${[...parents, name ?? "…"].join(" > ")}`;
}

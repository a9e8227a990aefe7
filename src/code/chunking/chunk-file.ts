import type { Chunk, ChunkedFile, SymbolEntry } from "../../model/code-chunk.ts";
import { chunkBlocks } from "./chunk-blocks.ts";
import { languageOf } from "./language.ts";
import { lineOutline } from "./line-outline.ts";
import { type Lines, linesOf } from "./lines.ts";
import { markdownOutline } from "./markdown-outline.ts";
import type { Outline } from "./outline.ts";

/** Tokens per chunk: enough for most functions, few enough for the window of an embedding model with the prefix. */
export const DEFAULT_BUDGET_TOKENS = 450;
const MAX_DEFINES = 20;

export interface ChunkFileInput {
  /** Relative to the project, with `/`. */
  readonly path: string;
  readonly content: string;
  /** Taken from the path and the first line where absent. */
  readonly language?: string;
  readonly budgetTokens?: number;
}

/** Reads the structure of a text in a language that has a grammar; `undefined` for one that has none. */
export type ReadOutline = (language: string, lines: Lines) => Outline | undefined;

/**
 * Cuts a file into chunks and lists its symbols. Pure: the parser comes in as `readOutline`. Without one, or where it
 * knows no grammar, the file is cut at blank lines. A file of white space has no chunks.
 */
export function chunkFile(input: ChunkFileInput, readOutline?: ReadOutline): ChunkedFile {
  const { path, content, budgetTokens = DEFAULT_BUDGET_TOKENS } = input;
  const language = input.language ?? languageOf(path, content);
  if (content.trim() === "") return { language, chunks: [], symbols: [], how: "lines" };
  const lines = linesOf(content);
  const outline = language === "markdown" ? markdownOutline(lines) : readOutline?.(language, lines);
  const { root, symbols } = outline ?? lineOutline(lines);
  return { language, chunks: chunksOf(lines, root, symbols, budgetTokens), symbols, how: outline ? "syntax" : "lines" };
}

function chunksOf(lines: Lines, root: Outline["root"], symbols: readonly SymbolEntry[], budgetTokens: number): Chunk[] {
  const definitions = symbols.filter((symbol) => symbol.role === "definition").sort((a, b) => a.line - b.line);
  let next = 0;
  return chunkBlocks(lines, root, budgetTokens).map(({ startLine, endLine, definition }, index) => {
    const defines = new Set<string>();
    for (; next < definitions.length && definitions[next]!.line <= endLine; next++)
      if (defines.size < MAX_DEFINES) defines.add(definitions[next]!.name);
    return {
      index,
      kind: definition?.kind ?? "text",
      ...(definition && { name: definition.name }),
      parents: definition?.parents ?? [],
      defines: [...defines],
      startLine,
      endLine,
      text: lines.slice(startLine, endLine),
    };
  });
}

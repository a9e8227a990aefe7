import type { Chunk, SymbolDefinition, SymbolEntry } from "../../model/code-chunk.ts";
import { type Position, packPositions } from "./positions.ts";

/** A line of a bundled file can be megabytes long; nobody looks for its last word, and PostgreSQL refuses so many. */
const MAX_WORDS_CHARS = 100_000;
/** Longer names are data that looks like a name, and too long for an index. */
const MAX_NAME_CHARS = 200;

/** The words under which a chunk is found: its path and its names count beside its text. */
export function chunkWords(
  path: string,
  { name = "", parents, defines, text }: Pick<Chunk, "name" | "parents" | "defines" | "text">,
): string {
  return [path, name, ...parents, ...defines, text].join("\n").slice(0, MAX_WORDS_CHARS);
}

export interface PackedSymbols {
  readonly definitions: readonly SymbolDefinition[];
  readonly references: readonly { readonly name: string; readonly count: number; readonly positions: Uint8Array }[];
}

/** References are many, about sixteen for each chunk, so that each name has one row per file. */
export function packSymbols(symbols: readonly SymbolEntry[]): PackedSymbols {
  const definitions: SymbolDefinition[] = [];
  const uses = new Map<string, Position[]>();
  for (const symbol of symbols) {
    if (symbol.name.length > MAX_NAME_CHARS) continue;
    if (symbol.role === "definition") definitions.push(symbol);
    else {
      const places = uses.get(symbol.name);
      if (places) places.push(symbol);
      else uses.set(symbol.name, [symbol]);
    }
  }
  const references = [...uses].map(([name, places]) => ({ name, count: places.length, positions: packPositions(places) }));
  return { definitions, references };
}

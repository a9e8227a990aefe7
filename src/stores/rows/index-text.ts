import type { Chunk, CodeKind, SymbolDefinition, SymbolEntry } from "../../model/code-chunk.ts";
import { type Position, packPositions } from "./positions.ts";
import { pack, unpack } from "./text-blocks.ts";

/** Characters of a chunk that are indexed. A line of a bundled file can have megabytes, and PostgreSQL refuses that many terms. */
const MAX_TERMS_CHARS = 100_000;
/** Longer names are data that looks like a name, and too long for an index. */
const MAX_NAME_CHARS = 200;

/** Returns the text whose terms are indexed for a chunk: its path, its names and its own text. */
export function chunkTerms(
  path: string,
  { name = "", parents, defines, text }: Pick<Chunk, "name" | "parents" | "defines" | "text">,
): string {
  return [path, name, ...parents, ...defines, text].join("\n").slice(0, MAX_TERMS_CHARS);
}

/** A name in a file: the number of its definitions, the number of its uses, and the positions of the uses. */
export interface PackedName {
  readonly name: string;
  readonly defined: number;
  readonly used: number;
  readonly positions: Uint8Array;
}

/**
 * The stored form of a file's symbols: one small entry per name, of which a chunk has about four. The outline, one compressed text,
 * holds the details of the definitions and the list of all names.
 */
export interface PackedSymbols {
  readonly names: readonly PackedName[];
  readonly outline: Uint8Array;
}

export type OutlinedDefinition = Omit<SymbolDefinition, "role">;

export function packSymbols(symbols: readonly SymbolEntry[]): PackedSymbols {
  const definitions: SymbolDefinition[] = [];
  const names = new Map<string, { defined: number; uses: Position[] }>();
  for (const symbol of symbols) {
    if (symbol.name.length > MAX_NAME_CHARS) continue;
    const entry = names.get(symbol.name) ?? { defined: 0, uses: [] };
    names.set(symbol.name, entry);
    if (symbol.role === "definition") {
      definitions.push(symbol);
      entry.defined++;
    } else entry.uses.push(symbol);
  }
  definitions.sort((a, b) => a.line - b.line || a.column - b.column);
  const outline: Outline = [
    definitions.map(({ name, kind, line, column, parents }) => [name, kind, line, column, parents]),
    [...names].filter(([, { defined }]) => defined === 0).map(([name]) => name),
  ];
  return {
    names: [...names].map(([name, { defined, uses }]) => ({ name, defined, used: uses.length, positions: packPositions(uses) })),
    outline: pack(JSON.stringify(outline)),
  };
}

/** Returns the definitions by line and column, and all names of the file. */
export function unpackOutline(bytes: Uint8Array): {
  readonly definitions: readonly OutlinedDefinition[];
  readonly names: readonly string[];
} {
  const [defined, others] = JSON.parse(unpack(bytes)) as Outline;
  const definitions = defined.map(([name, kind, line, column, parents]) => ({ name, kind, line, column, parents }));
  return { definitions, names: [...new Set([...definitions.map(({ name }) => name), ...others])] };
}

type Outline = readonly [
  definitions: readonly (readonly [name: string, kind: CodeKind, line: number, column: number, parents: readonly string[]])[],
  names: readonly string[],
];

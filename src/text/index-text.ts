import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { Chunk, CodeKind, SymbolDefinition, SymbolEntry } from "../model/code-chunk.ts";
import { CairnError } from "../model/errors.ts";
import type { PackedSymbols, TextPlace } from "../model/packed-file.ts";

/** Characters of a chunk that are indexed. A line of a bundled file can have megabytes, and PostgreSQL refuses that many terms. */
const MAX_TERMS_CHARS = 100_000;
/** Chunks with a longer text may have terms that are not indexed: names and path are indexed before the text. */
export const PARTLY_INDEXED_CHARS = 80_000;
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
    definitions.map(({ name, kind, line, column, endLine, parents }) => [name, kind, line, column, endLine - line, parents]),
    [...names].filter(([, { defined }]) => defined === 0).map(([name]) => name),
  ];
  const figures = new Uint32Array(names.size * 3);
  const positions: number[] = [];
  let at = 0;
  for (const { defined, uses } of names.values()) {
    const before = positions.length;
    pushPositions(positions, uses);
    figures.set([defined, uses.length, positions.length - before], at);
    at += 3;
  }
  return {
    names: [...names.keys()].map((name) => `${name}\0`).join(""),
    figures,
    positions: Uint8Array.from(positions),
    outline: pack(JSON.stringify(outline)),
  };
}

/** Returns the entries of a file's names. */
export function unpackNames({ names, figures, positions }: PackedSymbols): PackedName[] {
  const entries: PackedName[] = [];
  let start = 0;
  for (let place = 0, from = 0; place < figures.length; place += 3) {
    const end = names.indexOf("\0", from);
    const to = start + figures[place + 2]!;
    const counts = { defined: figures[place]!, used: figures[place + 1]! };
    entries.push({ name: names.slice(from, end), ...counts, positions: positions.subarray(start, to) });
    from = end + 1;
    start = to;
  }
  return entries;
}

/** Returns the definitions by line and column, and all names of the file. */
export function unpackOutline(bytes: Uint8Array): {
  readonly definitions: readonly OutlinedDefinition[];
  readonly names: readonly string[];
} {
  const [defined, others] = JSON.parse(unpack(bytes)) as Outline;
  const definitions = defined.map(([name, kind, line, column, more, parents]) => ({
    ...{ name, kind, line, column },
    endLine: line + more,
    parents,
  }));
  return { definitions, names: [...new Set([...definitions.map(({ name }) => name), ...others])] };
}

type Outline = readonly [
  definitions: readonly (readonly [
    name: string,
    kind: CodeKind,
    line: number,
    column: number,
    furtherLines: number,
    parents: readonly string[],
  ])[],
  names: readonly string[],
];

/** Places of one name in one file, in a few bytes each: most names are used more than once, and lines lie close together. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Positions in order. Lines as differences, all numbers seven bits to a byte. */
export function packPositions(positions: readonly Position[]): Uint8Array {
  const bytes: number[] = [];
  pushPositions(bytes, positions);
  return Uint8Array.from(bytes);
}

function pushPositions(bytes: number[], positions: readonly Position[]): void {
  const push = (value: number) => {
    let rest = value;
    for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
    bytes.push(rest);
  };
  let line = 0;
  for (const position of [...positions].sort((a, b) => a.line - b.line || a.column - b.column)) {
    push(position.line - line);
    push(position.column);
    line = position.line;
  }
}

/** Returns the uses of these names in a range of lines, by line and column. */
export function referencesWithin(
  rows: readonly { readonly name: string; readonly positions: Uint8Array }[],
  { from, to }: { readonly from: number; readonly to: number },
): (Position & { readonly name: string })[] {
  return rows
    .flatMap(({ name, positions }) =>
      unpackPositions(positions)
        .filter(({ line }) => from <= line && line <= to)
        .map((position) => ({ name, ...position })),
    )
    .sort((a, b) => a.line - b.line || a.column - b.column);
}

export function unpackPositions(bytes: Uint8Array): Position[] {
  const positions: Position[] = [];
  let at = 0;
  const next = () => {
    let value = 0;
    for (let factor = 1; at < bytes.length; factor *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 127) * factor;
      if (byte < 128) break;
    }
    return value;
  };
  for (let line = 0; at < bytes.length; ) {
    line += next();
    positions.push({ line, column: next() });
  }
  return positions;
}

/** Long enough to compress to a quarter, short enough to be unpacked for the sake of one chunk. */
const BLOCK_CHARS = 16_384;
/** A block ends after the chunk that fills it, and a chunk is at most a whole file. */
const UNPACKED_MAX_BYTES = 8 * 1024 * 1024;

/** Memory for one block. With the defaults, which are for streams, allocation takes half of the time. */
const SMALL = { windowBits: 14, memLevel: 7 } as const;

/** Compresses the texts of a file's chunks together, because a single chunk is too short to compress well. */
export function packTexts(texts: readonly string[]): { readonly blocks: readonly Uint8Array[]; readonly places: readonly TextPlace[] } {
  const blocks: Uint8Array[] = [];
  const places: TextPlace[] = [];
  let gathered = "";
  const flush = () => {
    blocks.push(pack(gathered));
    gathered = "";
  };
  for (const text of texts) {
    places.push({ block: blocks.length, start: gathered.length, length: text.length });
    gathered += text;
    if (gathered.length >= BLOCK_CHARS) flush();
  }
  if (places.at(-1)?.block === blocks.length) flush();
  return { blocks, places };
}

export function pack(text: string): Uint8Array {
  return deflateRawSync(text, SMALL);
}

export function unpack(bytes: Uint8Array): string {
  try {
    return inflateRawSync(bytes, { maxOutputLength: UNPACKED_MAX_BYTES }).toString("utf8");
  } catch (cause) {
    throw new CairnError("internal", "A text of the code index is damaged. Clean the index of this project and index it again.", { cause });
  }
}

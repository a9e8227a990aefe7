import type { Chunk, SymbolEntry } from "../model/code-chunk.ts";
import type { PackedFile } from "../model/packed-file.ts";
import { chunkTerms, packSymbols, packTexts, unpack, unpackNames, unpackOutline, unpackPositions } from "./index-text.ts";
import { codeTerms } from "./terms.ts";

export interface PlainFile {
  readonly chunks: readonly Chunk[];
  readonly symbols: readonly SymbolEntry[];
}

/** Computes the stored form of a file. `atEachChunk` runs between the chunks, of which a file can have thousands. */
export function packFile(path: string, { chunks, symbols }: PlainFile, atEachChunk: () => void = () => {}): PackedFile {
  const terms = chunks.map((chunk) => {
    atEachChunk();
    return codeTerms(chunkTerms(path, chunk)).join(" ");
  });
  const { blocks, places } = packTexts(chunks.map(({ text }) => text));
  let end = 0;
  const blockEnds = blocks.map(({ length }) => {
    end += length;
    return end;
  });
  const joined = new Uint8Array(end);
  for (const [place, block] of blocks.entries()) joined.set(block, blockEnds[place]! - block.length);
  return {
    outlines: chunks.map(({ text: _, ...outline }) => outline),
    terms,
    blocks: joined,
    blockEnds,
    places,
    symbols: packSymbols(symbols),
  };
}

/** Returns the compressed blocks of a file. */
export function blocksOf({ blocks, blockEnds }: Pick<PackedFile, "blocks" | "blockEnds">): Uint8Array[] {
  return blockEnds.map((end, place) => blocks.subarray(place === 0 ? 0 : blockEnds[place - 1], end));
}

/** Returns the buffers of a packed file, which a thread may hand over instead of copying them. */
export function buffersOf({ blocks, symbols: { figures, positions, outline } }: PackedFile): ArrayBuffer[] {
  const whole = [blocks, figures, positions, outline].filter(({ buffer, byteLength }) => buffer.byteLength === byteLength);
  return whole.map(({ buffer }) => buffer as ArrayBuffer);
}

/** Returns the chunks and symbols of a packed file; the symbols by name. */
export function unpackFile({ outlines, places, symbols, ...packed }: PackedFile): PlainFile {
  const texts = blocksOf(packed).map(unpack);
  const { definitions } = unpackOutline(symbols.outline);
  const references = unpackNames(symbols).flatMap(({ name, positions }) =>
    unpackPositions(positions).map((position) => ({ role: "reference" as const, name, ...position })),
  );
  return {
    chunks: outlines.map((outline, index) => {
      const { block, start, length } = places[index]!;
      return { ...outline, text: texts[block]!.slice(start, start + length) };
    }),
    symbols: [...definitions.map((definition) => ({ role: "definition" as const, ...definition })), ...references],
  };
}

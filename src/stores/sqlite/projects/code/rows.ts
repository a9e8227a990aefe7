import type { FileWrite } from "../../../../ports/code-store.ts";
import { yieldToCalls } from "../../../../scheduling/yield.ts";
import { chunkWords, type PackedSymbols, packSymbols } from "../../../rows/index-text.ts";
import { packTexts, type TextPlace } from "../../../rows/text-blocks.ts";
import { searchTerms } from "../full-text.ts";

/** A file as it is stored. Making it takes longer than storing it, and is done before the database is locked for that. */
export interface FileRows {
  readonly file: FileWrite;
  /** The texts of the chunks, compressed together, and where in them each chunk's text is. */
  readonly blocks: readonly Uint8Array[];
  readonly places: readonly TextPlace[];
  /** For each chunk. */
  readonly words: readonly string[];
  readonly symbols: PackedSymbols;
}

export function rowsOf(file: FileWrite): FileRows {
  const { path, chunks, symbols } = file;
  const words = chunks.map(({ chunk }) => {
    yieldToCalls();
    return searchTerms(chunkWords(path, chunk));
  });
  return { file, ...packTexts(chunks.map(({ chunk }) => chunk.text)), words, symbols: packSymbols(symbols) };
}

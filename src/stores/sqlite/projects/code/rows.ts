import type { FileWrite } from "../../../../ports/code-store.ts";
import { yieldToCalls } from "../../../../scheduling/yield.ts";
import { chunkTerms, type PackedSymbols, packSymbols } from "../../../rows/index-text.ts";
import { packTexts, type TextPlace } from "../../../rows/text-blocks.ts";
import { searchTerms } from "../full-text.ts";

/** The rows of a file. Preparing them takes longer than inserting them, so that happens before the transaction. */
export interface FileRows {
  readonly file: FileWrite;
  /** The texts of the chunks, compressed together, and the place of each chunk's text in them. */
  readonly blocks: readonly Uint8Array[];
  readonly places: readonly TextPlace[];
  /** The full-text terms of each chunk. */
  readonly words: readonly string[];
  readonly symbols: PackedSymbols;
}

export function rowsOf(file: FileWrite): FileRows {
  const { path, chunks, symbols } = file;
  const words = chunks.map(({ chunk }) => {
    yieldToCalls();
    return searchTerms(chunkTerms(path, chunk));
  });
  return { file, ...packTexts(chunks.map(({ chunk }) => chunk.text)), words, symbols: packSymbols(symbols) };
}

import { deflateRawSync, inflateRawSync } from "node:zlib";
import { CairnError } from "../model/errors.ts";
import type { TextPlace } from "../model/packed-file.ts";

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

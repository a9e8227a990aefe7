import { countPieces } from "../model/stored-record.ts";

/** Where a text may be divided, best first: after a paragraph, a line, a sentence, a word. */
const BOUNDARIES = [/\n[ \t]*\n\s*/g, /\n\s*/g, /[.!?]["')\]]*\s+|[。！？]/g, /\s+/g];
/** How far a cut may move to a boundary, as a share of a part. Below one half, cuts keep their order. */
const REACH = 0.4;

/**
 * Returns the texts that are embedded for a record: its whole text and, if that is long, its parts, which are about equally long. An
 * average over several topics resembles none of them, and models read the beginning of a text only.
 */
export function splitPieces(text: string): string[] {
  const parts = countPieces(text) - 1;
  if (parts === 0) return [text];
  const size = text.length / parts;
  const cuts = Array.from({ length: parts - 1 }, (_, index) => findCut(text, Math.round((index + 1) * size), Math.floor(size * REACH)));
  const ends = [...cuts, text.length];
  // A blank part has no meaning to embed, so the beginning of the text takes its place.
  return [text, ...ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end).trim() || text.slice(0, Math.ceil(size)))];
}

/** Returns the text of one piece. */
export function pieceText(text: string, piece: number): string {
  return piece === 0 ? text : (splitPieces(text)[piece] ?? text);
}

/** Returns the best boundary within reach of the ideal cut, or the ideal cut if there is none. */
function findCut(text: string, ideal: number, reach: number): number {
  const from = ideal - reach;
  const nearby = text.slice(from, ideal + reach);
  for (const boundary of BOUNDARIES) {
    let best: number | undefined;
    for (const { 0: found, index } of nearby.matchAll(boundary)) {
      const cut = from + index + found.length;
      if (best === undefined || Math.abs(cut - ideal) < Math.abs(best - ideal)) best = cut;
    }
    if (best !== undefined) return best;
  }
  return isLowSurrogate(text, ideal) ? ideal + 1 : ideal;
}

const isLowSurrogate = (text: string, at: number) => (text.charCodeAt(at) & 0xfc00) === 0xdc00;

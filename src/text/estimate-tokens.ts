import { readFileSync } from "node:fs";
import { builtFile } from "../files/built-file.ts";

/**
 * Estimates the tokens of a text in the o200k encoding. The text is split into pieces as that encoding splits it. A piece that is no token
 * is split from its start into the longest tokens, by a filter of the vocabulary. Tests measure the error.
 */
export function estimateTokens(text: string): number {
  let tokens = 0;
  for (const { 0: piece, 1: word, 2: marks } of text.matchAll(piecesOf(text))) {
    if (word !== undefined) tokens += wordTokens(piece, word);
    else if (marks !== undefined) tokens += markTokens(piece, marks);
    else tokens++;
  }
  return Math.round(tokens);
}

/** By how much the estimate for a script that the filter lacks may be too low, after the 10 % that a budget allows. */
const UNLISTED_MARGIN = 1.1;

/** Estimates the tokens of a text for a budget: rather too many than too few. */
export function tokensAtMost(text: string): number {
  const tokens = estimateTokens(text);
  return UNLISTED_SCRIPT.test(text) ? Math.ceil(tokens * UNLISTED_MARGIN) : tokens;
}

/** The pieces of o200k, within which it merges: a word with the character before it, up to three digits, punctuation, white space. */
function pieces(upper: string, lower: string, letter: string, digit: string): RegExp {
  const contraction = "(?:'(?:[stmd]|re|ve|ll))?";
  return new RegExp(
    [
      `[^\\r\\n${letter}${digit}]?((?:[${upper}]*[${lower}]+|[${upper}]+[${lower}]*)${contraction})`,
      `[${digit}]{1,3}`,
      `( ?[^\\s${letter}${digit}]+[\\r\\n/]*)`,
      "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    ].join("|"),
    "gu",
  );
}

const ASCII_PIECES = pieces("A-Z", "a-z", "A-Za-z", "0-9");
const NOT_ASCII = /[^\0-\x7f]/;
let unicodePieces: RegExp | undefined;

/** The classes of Unicode take milliseconds to compile, so ASCII text has a pattern of its own with the same matches. */
function piecesOf(text: string): RegExp {
  if (!NOT_ASCII.test(text)) return ASCII_PIECES;
  unicodePieces ??= pieces("\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}", "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}", "\\p{L}", "\\p{N}");
  return unicodePieces;
}

/** Tokens of a word in a script that the filter lacks: one, and this for each letter after the second. Fitted on Greek and Hebrew. */
const UNLISTED_LETTER = 0.33;

function wordTokens(piece: string, word: string): number {
  if (UNLISTED_SCRIPT.test(word)) return 1 + Math.max(0, word.length - 2) * UNLISTED_LETTER;
  return splitCount(piece, CJK.test(word) ? MAX_CJK_UNITS : MAX_UNITS);
}

/** Repeated characters, such as a line of dashes, are one token. */
function markTokens(piece: string, marks: string): number {
  const run = marks.trim();
  if (run.length > 3 && run === run[0]!.repeat(run.length)) return 1 + Math.floor(run.length / 64);
  return splitCount(piece, MAX_UNITS);
}

/** Counts the tokens of a piece: one, or the longest tokens from its start. */
function splitCount(piece: string, maxUnits: number): number {
  if (piece.length === 1) return 1;
  const table = vocabulary();
  if (piece.length <= maxUnits && table.has(piece)) return 1;
  let count = 0;
  for (let at = 0; at < piece.length; count++) at = table.longest(piece, at, Math.min(piece.length, at + maxUnits));
  return count;
}

/** Cuts the text at a word to about `tokens`, and appends a note in place of the rest. */
export function cutText(text: string, tokens: number, note: string): { text: string; cut: boolean } {
  if (tokensAtMost(text) <= tokens) return { text, cut: false };
  let end = Math.min(text.length, Math.max(0, tokens * 6));
  while (end > 0 && tokensAtMost(text.slice(0, end)) > tokens) end = Math.floor(end * 0.9);
  const space = text.lastIndexOf(" ", end);
  const at = space > end * 0.7 ? space : end;
  // Half of a surrogate pair would not be valid text.
  const whole = /[\ud800-\udbff]/.test(text[at - 1] ?? "") ? at - 1 : at;
  return { text: `${text.slice(0, whole).trimEnd()} … [${note}]`, cut: true };
}

/** Returns as many items from the front as fit, at least one. */
export function withinBudget<Item>(items: readonly Item[], tokens: number, costOf: (item: Item) => number): Item[] {
  let spent = 0;
  const fitting: Item[] = [];
  for (const item of items) {
    spent += costOf(item);
    if (spent > tokens && fitting.length > 0) break;
    fitting.push(item);
  }
  return fitting;
}

/** Estimates the tokens of a record as JSON. */
export function recordTokens(record: unknown): number {
  return estimateTokens(JSON.stringify(record));
}

let filter: TokenFilter | undefined;

/** Returns the filter of the o200k vocabulary, which the build writes. It takes 95 kB and is read on first use. */
export function vocabulary(): TokenFilter {
  filter ??= tokenFilter(readFileSync(builtFile("tokens/o200k.bin")));
  return filter;
}

/**
 * Finds out whether a piece of text is one token, by a filter of the vocabulary: two tables of fingerprints (xor filters), one for ASCII and
 * one for the rest. Every token of the tables is found; another piece is taken for a token with a probability of 2^-bits.
 */
export interface TokenFilter {
  has(piece: string): boolean;
  /** Returns the end of the longest token that starts at `from` and ends at `to` at the latest; a single character always is one. */
  longest(text: string, from: number, to: number): number;
}

/** Bits of a fingerprint. ASCII has most of the tokens, and most of its words are found whole. */
export const ASCII_BITS = 4;
export const OTHER_BITS = 8;
/** UTF-16 units of the longest token in the filter. Chinese, Japanese and Korean have no spaces, so each unit more would be one more chance to err. */
export const MAX_UNITS = 16;
export const MAX_CJK_UNITS = 4;
export const CJK = /[\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff]/;
/** Scripts that the filter leaves out for its size, such as Greek, Arabic and Hindi. */
export const UNLISTED_SCRIPT = /[\u0370-\u03ff\u0530-\u1dff]/;

/** Reads a filter: the sizes of both tables as little-endian numbers, then their bytes. */
export function tokenFilter(bytes: Uint8Array): TokenFilter {
  const sizes = new DataView(bytes.buffer, bytes.byteOffset, 8);
  const ascii = bytes.subarray(8, 8 + sizes.getUint32(0, true));
  const other = bytes.subarray(8 + ascii.length, 8 + ascii.length + sizes.getUint32(4, true));
  const asciiThird = (ascii.length * (8 / ASCII_BITS)) / 3;
  const otherThird = other.length / 3;
  const nibble = (at: number) => (at & 1 ? ascii[at >>> 1]! >>> 4 : ascii[at >>> 1]! & 15);
  const hit = (a: number, b: number, isAscii: boolean) => {
    const third = isAscii ? asciiThird : otherThird;
    const [x, y, z] = slots(a, b, third);
    return isAscii
      ? (nibble(x) ^ nibble(y) ^ nibble(z)) === fingerprint(a, b, ASCII_BITS)
      : (other[x]! ^ other[y]! ^ other[z]!) === fingerprint(a, b, OTHER_BITS);
  };
  return {
    has(piece) {
      const [a, b, isAscii] = hashPiece(piece);
      return hit(a, b, isAscii);
    },
    longest(text, from, to) {
      let [a, b, all, end] = [SEED_A, SEED_B, 0, from + 1];
      for (let at = from; at < to; at++) {
        const unit = text.charCodeAt(at);
        a = stepA(a, unit);
        b = stepB(b, unit);
        all |= unit;
        if (at > from && hit(a, b, all < 128)) end = at + 1;
      }
      return end;
    },
  };
}

const SEED_A = 0x811c9dc5;
const SEED_B = 0x9e3779b9;
const stepA = (hash: number, unit: number) => Math.imul(hash ^ unit, 0x01000193);
const stepB = (hash: number, unit: number) => Math.imul(hash ^ unit, 0x5bd1e995) ^ (hash >>> 13);

/** Returns two hashes of a piece, and whether it is ASCII. The build places the tokens by the same hashes. */
export function hashPiece(piece: string): readonly [a: number, b: number, isAscii: boolean] {
  let [a, b, all] = [SEED_A, SEED_B, 0];
  for (let at = 0; at < piece.length; at++) {
    const unit = piece.charCodeAt(at);
    a = stepA(a, unit);
    b = stepB(b, unit);
    all |= unit;
  }
  return [a, b, all < 128];
}

/** Returns the three slots of a piece, one in each third of a table. */
export function slots(a: number, b: number, third: number): readonly [number, number, number] {
  return [mix(a) % third, third + (mix(b) % third), 2 * third + (mix(a + Math.imul(b, 0x27d4eb2f)) % third)];
}

export const fingerprint = (a: number, b: number, bits: number): number => mix(a ^ Math.imul(b, 0x165667b1)) >>> (32 - bits);

/** Spreads every bit of a hash over all others. */
function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

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

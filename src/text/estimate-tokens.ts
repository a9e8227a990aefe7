import { CJK, MAX_CJK_UNITS, MAX_UNITS, UNLISTED_SCRIPT } from "./token-filter.ts";
import { tokenTable } from "./token-table.ts";

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
  const table = tokenTable();
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

export interface FittedRecords<RecordType> {
  readonly records: readonly RecordType[];
  /** Records that were shortened. */
  readonly shortened: number;
  /** Records that were omitted from the end. */
  readonly omitted: number;
}

export interface FitRules<RecordType> {
  /** Tokens that a record keeps at least: with fewer it says too little to choose by. */
  readonly minShare: number;
  readonly shorten: (record: RecordType, tokens: number) => RecordType;
}

/** Fits records into a budget: long records are shortened to a fair share first, and only then are records omitted from the end. */
export function fitRecords<RecordType>(
  records: readonly RecordType[],
  tokens: number,
  { minShare, shorten }: FitRules<RecordType>,
): FittedRecords<RecordType> {
  if (fitsWhole(records, tokens)) return { records, shortened: 0, omitted: 0 };
  const share = Math.max(minShare, Math.floor(tokens / Math.max(1, records.length)));
  const shortened = records.map((record) => (recordTokens(record) <= share ? record : shorten(record, share)));
  const fitting = withinBudget(shortened, tokens, recordTokens);
  return {
    records: fitting,
    shortened: fitting.filter((record, index) => record !== records[index]).length,
    omitted: records.length - fitting.length,
  };
}

/** Returns whether all records fit. A token has at least one character, so short records need no estimate. */
function fitsWhole(records: readonly unknown[], tokens: number): boolean {
  if (tokens === Number.POSITIVE_INFINITY) return true;
  const texts = records.map((record) => JSON.stringify(record));
  const total = (size: (text: string) => number) => texts.reduce((sum, text) => sum + size(text), 0);
  return total(({ length }) => length) <= tokens || total(estimateTokens) <= tokens;
}

/** Estimates the tokens of a record as JSON. */
export function recordTokens(record: unknown): number {
  return estimateTokens(JSON.stringify(record));
}

/** Returns a note on records that a budget shortened or omitted, and which operation returns them in full; nothing if all fitted. */
export function fitNote(
  maxTokens: number,
  { shortened, omitted }: Pick<FittedRecords<unknown>, "shortened" | "omitted">,
  getOperation: string,
): { note?: string } {
  const parts = [...(shortened > 0 ? [`${shortened} shortened`] : []), ...(omitted > 0 ? [`${omitted} omitted`] : [])];
  if (parts.length === 0) return {};
  return { note: `Limited to ${maxTokens} tokens: ${parts.join(", ")}. Use ${getOperation} for a full record.` };
}

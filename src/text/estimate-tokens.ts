/**
 * Estimates the tokens of a text in the o200k encoding. The text is split as that encoding splits it; the cost of each piece is the
 * mean over prose and code of its kind and length. A test measures the error, which is within 10 % on prose and code.
 */
export function estimateTokens(text: string): number {
  let tokens = 0;
  let words = 0;
  let accented = 0;
  let letters = 0;
  for (const [, mark, word, digits, marks] of text.matchAll(piecesOf(text))) {
    if (word === undefined) {
      tokens += marks === undefined || digits !== undefined ? 1 : marksCost(marks.trim());
      continue;
    }
    const kind = wordKind(mark!, word);
    tokens += wordCost(kind, word.length);
    words++;
    if (kind === "accented") accented++;
    else if (kind === "spaced" || kind === "capital") letters += Math.max(0, word.length - 4);
  }
  // The vocabulary knows fewer words of other languages that share the Latin script. Accents show that a text is not English.
  const foreign = accented > words * 0.02 ? letters * 0.09 : 0;
  return Math.round(tokens + foreign);
}

/** Letters of other scripts than Latin, whose words the vocabulary splits less regularly. */
const OTHER_SCRIPT = /[\u0370-\u1fff\u2e80-\ud7ff\uf900-\ufdff\ufe70-\ufefe]/;
/** By how much the estimate of most texts in another script is too low at most, after the 10 % that a budget allows. */
const OTHER_SCRIPT_MARGIN = 1.1;

/** Estimates the tokens of a text for a budget. In Russian or Chinese, one text of ten exceeds the plain estimate by more than 10 %. */
export function tokensAtMost(text: string): number {
  const tokens = estimateTokens(text);
  return OTHER_SCRIPT.test(text) ? Math.ceil(tokens * OTHER_SCRIPT_MARGIN) : tokens;
}

/** The pieces of o200k, within which it merges: a word with the character before it, up to three digits, punctuation, white space. */
function pieces(upper: string, lower: string, letter: string, digit: string): RegExp {
  const contraction = "(?:'(?:[stmd]|re|ve|ll))?";
  return new RegExp(
    [
      `([^\\r\\n${letter}${digit}]?)((?:[${upper}]*[${lower}]+|[${upper}]+[${lower}]*)${contraction})`,
      `([${digit}]{1,3})`,
      `( ?[^\\s${letter}${digit}]+[\\r\\n/]*)`,
      "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    ].join("|"),
    "gu",
  );
}

const ASCII_PIECES = pieces("A-Z", "a-z", "A-Za-z", "0-9");
let unicodePieces: RegExp | undefined;

/** The classes of Unicode take milliseconds to compile, so ASCII text has a pattern of its own with the same matches. */
function piecesOf(text: string): RegExp {
  if (!NOT_ASCII.test(text)) return ASCII_PIECES;
  unicodePieces ??= pieces("\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}", "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}", "\\p{L}", "\\p{N}");
  return unicodePieces;
}

type WordKind = "spaced" | "bare" | "capital" | "upper" | "marked" | "accented" | "other" | "cjk";

/** Tokens of a word: one, plus `gentle` for each character after `free`, plus `steep` for each character after `knee`. */
const COSTS: Readonly<Record<WordKind, { free: number; gentle: number; knee: number; steep: number }>> = {
  spaced: { free: 4, gentle: 0.03, knee: 12, steep: 0.2 },
  bare: { free: 2, gentle: 0.03, knee: 7, steep: 0.14 },
  capital: { free: 1, gentle: 0.04, knee: 7, steep: 0.05 },
  upper: { free: 2, gentle: 0.14, knee: 10, steep: 0.25 },
  marked: { free: 1, gentle: 0.07, knee: 6, steep: 0.13 },
  accented: { free: 2, gentle: 0.2, knee: 16, steep: 0.1 },
  other: { free: 2, gentle: 0.19, knee: 16, steep: 0 },
  cjk: { free: 1, gentle: 0.87, knee: 16, steep: 0 },
};

function wordCost(kind: WordKind, length: number): number {
  const { free, gentle, knee, steep } = COSTS[kind];
  return 1 + Math.max(0, length - free) * gentle + Math.max(0, length - knee) * steep;
}

const NOT_ASCII = /[^\0-\x7f]/;
const NOT_LATIN = /[^\0-\u024f]/;
const CJK = /[\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff]/;

function wordKind(mark: string, word: string): WordKind {
  if (NOT_ASCII.test(word)) return CJK.test(word) ? "cjk" : NOT_LATIN.test(word) ? "other" : "accented";
  if (mark !== "" && mark !== " ") return "marked";
  if (isLower(word, 0)) return mark === " " ? "spaced" : "bare";
  return word.length > 1 && !isLower(word, 1) ? "upper" : "capital";
}

function isLower(word: string, at: number): boolean {
  return word.charCodeAt(at) >= 97;
}

/** Repeated characters, such as a line of dashes, are one token. */
function marksCost(marks: string): number {
  if (marks.length <= 2) return 1;
  if (marks.length > 3 && marks === marks[0]!.repeat(marks.length)) return 1 + Math.floor(marks.length / 64);
  return 1 + (marks.length - 2) * 0.22;
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

/** A run of characters that every match of a pattern contains. */
export interface RequiredLiteral {
  readonly text: string;
  /** Whether the character before and after the run in a match is known not to be part of a word. */
  readonly startsWord: boolean;
  readonly endsWord: boolean;
}

/**
 * Returns the literals that every match of a regular expression contains, in one pass. It is conservative: groups, classes and
 * alternatives contribute nothing, and a pattern with inline flags or quoting has no literals at all.
 */
export function requiredLiterals(pattern: string): RequiredLiteral[] {
  if (FLAGS_OR_QUOTING.test(pattern)) return [];
  const literals: RequiredLiteral[] = [];
  let text = "";
  let startsWord = false;
  const end = (endsWord: boolean, nextStartsWord: boolean) => {
    if (text !== "") literals.push({ text, startsWord, endsWord });
    text = "";
    startsWord = nextStartsWord;
  };
  for (let at = 0; at < pattern.length; ) {
    const { length, literal, boundary } = readAtom(pattern, at);
    if (literal === "|") return []; // an alternative at the top: no literal is in all of them
    const quantifier = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??/.exec(pattern.slice(at + length, at + length + 12))?.[0] ?? "";
    if (boundary) end(boundary === "end", boundary === "start");
    else if (literal === undefined) end(false, false);
    else if (quantifier === "") text += literal;
    else {
      const isRequired = quantifier.startsWith("+") || /^\{[1-9]/.test(quantifier);
      if (isRequired) text += literal;
      end(false, false);
    }
    at += length + quantifier.length;
  }
  end(false, false);
  return literals;
}

/** Inline flags, quoted text and escapes of several characters, which this reader does not know. */
const FLAGS_OR_QUOTING = /\(\?[a-zA-Z-]|\\[QEpPxuU0-9]/;

/** One element of a pattern: its length, and its character if it is a literal one. */
interface Atom {
  readonly length: number;
  readonly literal?: string;
  /** Matches at the start or end of a line. The edge of a word, `\b`, is no such boundary: a letter that is not ASCII may follow it. */
  readonly boundary?: "start" | "end";
}

function readAtom(pattern: string, at: number): Atom {
  const char = pattern[at]!;
  if (char === "\\") {
    const next = pattern[at + 1] ?? "";
    return /[a-zA-Z0-9]/.test(next) ? { length: 2 } : { length: 2, literal: next };
  }
  if (char === "[") return { length: measureGroup(pattern, at, "[", "]") };
  if (char === "(") return { length: measureGroup(pattern, at, "(", ")") };
  if (char === "^") return { length: 1, boundary: "start" };
  if (char === "$") return { length: 1, boundary: "end" };
  // A quantifier applies to both halves of a surrogate pair.
  return char === "." || /[\ud800-\udfff]/.test(char) ? { length: 1 } : { length: 1, literal: char };
}

/** Returns the length of a group or class, up to its closing character or the end of the pattern. */
function measureGroup(pattern: string, from: number, open: string, close: string): number {
  let depth = 0;
  let inClass = false;
  for (let at = from; at < pattern.length; at++) {
    const char = pattern[at];
    if (char === "\\") at++;
    else if (open === "(" && char === "[") inClass = true;
    else if (inClass) inClass = char !== "]";
    else if (char === open && (open === "(" || at === from)) depth++;
    // A closing bracket directly after the opening one is a character of the class.
    else if (char === close && !(open === "[" && at <= from + (pattern[from + 1] === "^" ? 2 : 1)) && --depth === 0) return at - from + 1;
  }
  return pattern.length - from;
}

const WORD = /[A-Za-z0-9_$]+/g;
/** Shorter words are in most files. */
const MIN_WORD_CHARS = 3;
const MAX_WORD_CHARS = 100;
const MAX_WORDS = 8;

/**
 * Returns words of ASCII letters that a text with all these literals has as whole words. The full-text index has them, so they select
 * files. Case matters: the index splits names at it.
 */
export function requiredWords(literals: readonly RequiredLiteral[]): string[] {
  const words = literals.flatMap(({ text, startsWord, endsWord }) =>
    [...text.matchAll(WORD)].flatMap((match) => {
      const [word] = match;
      const end = match.index + word.length;
      const isWhole =
        (match.index > 0 ? !NAME_CHAR.test(text[match.index - 1]!) : startsWord) &&
        (end < text.length ? !NAME_CHAR.test(text[end]!) : endsWord);
      const fits = word.length >= MIN_WORD_CHARS && word.length <= MAX_WORD_CHARS && !word.includes("$");
      return isWhole && fits ? [word] : [];
    }),
  );
  return [...new Set(words)].slice(0, MAX_WORDS);
}

/** Characters of a word; a letter next to them is a part of the same word. */
const NAME_CHAR = /[\p{L}\p{N}\p{M}_$\p{Cs}]/u;

import { RE2JS } from "re2js";
import { CairnError } from "../../model/errors.ts";
import { type RequiredLiteral, requiredLiterals, requiredWords } from "./required-literals.ts";

/** Finds a pattern in lines. */
export interface LineMatcher {
  /** Words that a file with a match has, to be looked up in the full-text index. */
  readonly words: readonly string[];
  /** Returns false for texts that certainly have no match. */
  mayMatch(text: string): boolean;
  /** Returns the index of the first match, or -1. */
  find(line: string): number;
  /** Characters of a line that are searched. */
  readonly lineChars: number;
}

export interface PatternOptions {
  /** The pattern is a text, not a regular expression. */
  readonly fixed?: boolean | undefined;
  readonly ignoreCase?: boolean | undefined;
}

/** Instructions of a compiled pattern: more than any pattern that a person writes. */
const MAX_PROGRAM = 1_000;
/** Steps of the automaton for one line: about 15 ms. The engine takes at most program × characters steps. */
const LINE_STEPS = 400_000;
/** Characters of a line that are searched for a text. */
const FIXED_LINE_CHARS = 1_000_000;

/** Compiles a pattern for an engine without backtracking (RE2 syntax): its time is linear in the text, whatever the pattern. */
export function lineMatcher(pattern: string, { fixed = false, ignoreCase = false }: PatternOptions): LineMatcher {
  if (fixed && !ignoreCase) {
    const literals = [{ text: pattern, startsWord: false, endsWord: false }];
    return {
      words: requiredWords(literals),
      mayMatch: (text) => text.includes(pattern),
      find: (line) => line.indexOf(pattern),
      lineChars: FIXED_LINE_CHARS,
    };
  }
  const literals = fixed ? [{ text: pattern, startsWord: false, endsWord: false }] : requiredLiterals(pattern);
  const compiled = compile(fixed ? RE2JS.quote(pattern) : pattern, ignoreCase);
  const needle = longestOf(literals, ignoreCase);
  return {
    words: ignoreCase ? [] : requiredWords(literals),
    mayMatch: (text) => needle === "" || (ignoreCase ? text.toLowerCase() : text).includes(needle),
    find(line) {
      const matcher = compiled.matcher(line);
      return matcher.find() ? matcher.start() : -1;
    },
    lineChars: Math.floor(LINE_STEPS / compiled.programSize()),
  };
}

function compile(pattern: string, ignoreCase: boolean): RE2JS {
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^error parsing regexp: /, "").slice(0, 200) : "";
    throw new CairnError(
      "invalid_input",
      `pattern: ${reason}. The syntax is RE2, without backreferences and lookaround. For an exact text, set \`fixed\`.`,
      { cause },
    );
  }
  if (compiled.programSize() > MAX_PROGRAM)
    throw new CairnError("invalid_input", "pattern: too many repetitions. Use * or + instead of large counts.");
  return compiled;
}

/** Returns the longest literal for a test without the engine. Where case is ignored, other characters than k and s fold to these letters. */
function longestOf(literals: readonly RequiredLiteral[], ignoreCase: boolean): string {
  return literals
    .map(({ text }) => (ignoreCase ? text.toLowerCase() : text))
    .filter((text) => !ignoreCase || (/^[\x20-\x7e]*$/.test(text) && !/[ks]/.test(text)))
    .reduce((longest, text) => (text.length > longest.length ? text : longest), "");
}

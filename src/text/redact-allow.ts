import { CairnError } from "../model/errors.ts";

const PATTERN_CHARS_MAX = 500;
/** Characters of a value that a pattern may allow. A longer value, such as a key block, is always a secret. */
const VALUE_CHARS_MAX = 4_000;
/** Repetitions without a fixed count in one pattern: with two, the time is at most the square of the length of one value. */
const REPETITIONS_MAX = 2;

/** Returns a test of whether one of the patterns matches a value. Raises `invalid_input` for a pattern that could take too long. */
export function allowMatcher(patterns: readonly string[]): (value: string) => boolean {
  const expressions = patterns.map((pattern) => {
    const problem = allowProblem(pattern);
    if (problem) throw new CairnError("invalid_input", `redaction.allow: ${JSON.stringify(pattern.slice(0, 100))} ${problem}`);
    return new RegExp(pattern);
  });
  return (value) => value.length <= VALUE_CHARS_MAX && expressions.some((expression) => expression.test(value));
}

/**
 * Returns why a pattern cannot be used, or `undefined` if it can. JavaScript tries the ways to match one after the other, so a
 * repetition inside a repeated group takes exponential time; such patterns are refused, and so are many repetitions in a row.
 */
export function allowProblem(pattern: string): string | undefined {
  if (pattern.length > PATTERN_CHARS_MAX) return `is longer than ${PATTERN_CHARS_MAX} characters. Split it into several patterns.`;
  try {
    new RegExp(pattern);
  } catch {
    return "is not a regular expression.";
  }
  let repetitions = 0;
  /** For each open group: whether it can match in more than one way. */
  const groups: boolean[] = [];
  let closed: boolean | undefined;
  for (const [token] of pattern.matchAll(
    /\\.|\[(?:\\.|[^\]\\]){0,500}\]|\((?:\?(?:[:=!]|<[=!]|<\w{1,50}>))?|\)|\||[*+?]\??|\{\d+(?:,\d*)?\}\??|./gsu,
  )) {
    const isRepetition = /^(?:[*+]|\{\d+,)/.test(token);
    if (/^\\[1-9k]/.test(token)) return "refers back to a group, which can take too long. Write it without.";
    if (/^(?:[*+]|\{\d)/.test(token) && closed === true)
      return "repeats a group that itself repeats, which can take too long. Write it without.";
    if (isRepetition) repetitions++;
    if (token.startsWith("(")) groups.push(false);
    else if (token === "|" || isRepetition || token.startsWith("?") || (token.startsWith("{") && token.length > 1)) groups.fill(true);
    closed = token === ")" ? groups.pop() : undefined;
    if (closed === true) groups.fill(true);
  }
  return repetitions > REPETITIONS_MAX
    ? `has more than ${REPETITIONS_MAX} repetitions (*, + or {n,m}), which can take too long. Split it into several patterns.`
    : undefined;
}

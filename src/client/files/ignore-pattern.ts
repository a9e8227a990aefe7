import { linearMatcher, optional, type Pattern } from "../../text/linear-pattern.ts";

/** One line of a `.gitignore`. */
export interface IgnoreRule {
  /** The line as it was written. */
  readonly line: string;
  readonly negated: boolean;
  readonly foldersOnly: boolean;
  /** `path` is relative to the folder of the `.gitignore`; `name` is its last part. */
  matches(path: string, name: string): boolean;
}

/**
 * Reads the rules of a `.gitignore` as git does. A repository from elsewhere may contain any pattern, so each pattern is matched in
 * linear time: some patterns, translated to a regular expression, would run for hours.
 */
export function readIgnoreRules(text: string, { ignoreCase = false }: { readonly ignoreCase?: boolean } = {}): IgnoreRule[] {
  return text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .flatMap((line) => readRule(trimEnd(line.endsWith("\r") ? line.slice(0, -1) : line), ignoreCase) ?? []);
}

/** Longer patterns are ignored. A file name has at most 255 characters. */
const MAX_PATTERN_CHARS = 1_000;

function readRule(line: string, ignoreCase: boolean): IgnoreRule | undefined {
  if (line.startsWith("#") || line.length > MAX_PATTERN_CHARS) return undefined;
  const negated = line.startsWith("!");
  const foldersOnly = line.endsWith("/");
  const bare = line.slice(negated ? 1 : 0, foldersOnly ? -1 : undefined);
  if (bare === "") return undefined;
  const fold = ignoreCase ? (text: string) => text.toLowerCase() : (text: string) => text;
  // A pattern with a slash before its end is anchored to its folder; any other pattern is matched against the name alone.
  const anchored = bare.includes("/");
  const fits = matcher(fold(anchored && bare.startsWith("/") ? bare.slice(1) : bare));
  return { line, negated, foldersOnly, matches: (path, name) => fits(fold(anchored ? path : name)) };
}

/** Returns a matcher. Most rules are a name or `*.extension` and need no automaton. */
function matcher(pattern: string): (text: string) => boolean {
  if (!/[*?[\\]/.test(pattern)) return (text) => text === pattern;
  const ending = /^\*([^*?[\\/]+)$/.exec(pattern)?.[1];
  if (ending !== undefined) return (text) => text.endsWith(ending) && !text.slice(0, -ending.length).includes("/");
  const parsed = readPattern(pattern);
  return parsed ? linearMatcher(parsed) : () => false;
}

const SLASH = 47;
const IN_NAME: Pattern = { set: (codePoint) => codePoint !== SLASH };
const ANYTHING: Pattern = { many: { set: () => true } };
const FOLDERS = optional({ sequence: [ANYTHING, { text: "/" }] });

/** Returns the pattern as data, or `undefined` for a pattern that matches nothing in git. */
function readPattern(pattern: string): Pattern | undefined {
  const parts: Pattern[] = [];
  for (let at = 0; at < pattern.length; ) {
    const char = String.fromCodePoint(pattern.codePointAt(at)!);
    if (char === "*") {
      const stars = /^\*+/.exec(pattern.slice(at))![0].length;
      const next = at + stars;
      const isWhole = stars > 1 && (at === 0 || pattern[at - 1] === "/") && (next === pattern.length || pattern[next] === "/");
      if (isWhole && pattern[next] === "/") parts.push(FOLDERS);
      else parts.push(isWhole ? ANYTHING : { many: IN_NAME });
      at = isWhole ? next + 1 : next;
    } else if (char === "?") {
      parts.push(IN_NAME);
      at++;
    } else if (char === "[") {
      const found = readSet(pattern, at);
      if (!found) return undefined;
      parts.push({ set: (codePoint) => codePoint !== SLASH && found.accepts(codePoint) });
      at = found.end;
    } else if (char === "\\") {
      if (at + 1 === pattern.length) return undefined;
      const escaped = String.fromCodePoint(pattern.codePointAt(at + 1)!);
      parts.push({ text: escaped });
      at += 1 + escaped.length;
    } else {
      parts.push({ text: char });
      at += char.length;
    }
  }
  return { sequence: parts };
}

/** POSIX character classes, for ASCII as in git. */
const CLASSES: Readonly<Record<string, RegExp>> = {
  alnum: /[A-Za-z0-9]/,
  alpha: /[A-Za-z]/,
  blank: /[ \t]/,
  cntrl: /\p{Cc}/u,
  digit: /\d/,
  graph: /[\x21-\x7e]/,
  lower: /[a-z]/,
  print: /[\x20-\x7e]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[ \t-\r]/,
  upper: /[A-Z]/,
  xdigit: /[0-9A-Fa-f]/,
};

/** Reads the set `[…]` that begins at `start`. A set without an end, or with an unknown class, matches nothing. */
function readSet(pattern: string, start: number): { readonly accepts: (codePoint: number) => boolean; readonly end: number } | undefined {
  let at = start + 1;
  const negated = pattern[at] === "!" || pattern[at] === "^";
  if (negated) at++;
  const ranges: (readonly [number, number])[] = [];
  const classes: RegExp[] = [];
  const read = (): number | undefined => {
    if (pattern[at] === "\\") at++;
    const codePoint = pattern.codePointAt(at);
    if (codePoint !== undefined) at += codePoint > 0xffff ? 2 : 1;
    return codePoint;
  };
  for (let first = true; first || pattern[at] !== "]"; first = false) {
    if (at >= pattern.length) return undefined;
    const named = pattern.startsWith("[:", at) ? /^\[:([^\]]{0,20}):\]/.exec(pattern.slice(at, at + 25)) : null;
    if (named) {
      const known = CLASSES[named[1]!];
      if (!known) return undefined;
      classes.push(known);
      at += named[0].length;
      continue;
    }
    const low = read();
    if (low === undefined) return undefined;
    let high: number | undefined = low;
    if (pattern[at] === "-" && at + 1 < pattern.length && pattern[at + 1] !== "]") {
      at++;
      high = read();
      if (high === undefined) return undefined;
    }
    ranges.push([low, high]);
  }
  const isIn = (codePoint: number) =>
    ranges.some(([low, high]) => low <= codePoint && codePoint <= high) ||
    classes.some((known) => known.test(String.fromCodePoint(codePoint)));
  return { accepts: (codePoint) => isIn(codePoint) !== negated, end: at + 1 };
}

/** Removes trailing spaces, except a space after a backslash. */
function trimEnd(line: string): string {
  let end = line.length;
  while (line[end - 1] === " ") end--;
  if (end === line.length) return line;
  let backslashes = 0;
  while (line[end - 1 - backslashes] === "\\") backslashes++;
  return line.slice(0, backslashes % 2 === 1 ? end + 1 : end);
}

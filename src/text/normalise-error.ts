import { stripVTControlCharacters } from "node:util";
import { sha256Hex } from "../model/ids.ts";

/**
 * Removes from an error what differs between occurrences: times, ids, addresses and numbers become `#`, which is no search term, and
 * paths are cut to their last name. The function is idempotent.
 */
export function normaliseError(text: string): string {
  let before = stripVTControlCharacters(text.slice(0, MAX_CHARS));
  // A replacement may create a new match, as in "1/2/3"; two or three passes suffice.
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const after = onePass(before);
    if (after === before) break;
    before = after;
  }
  return before;
}

function onePass(text: string): string {
  return text
    .replace(/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s?(?:Z|[+-]\d\d:?\d\d)\b)?)?/g, "#")
    .replace(/\b\d\d:\d\d:\d\d(?:[.,]\d+)?/g, "#")
    .replace(/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi, "#")
    .replace(PATH, (path, at: number, whole: string) => (isSlash(whole[at + path.length]) ? path : baseName(path)))
    .replace(/\b0x[0-9a-f]+\b/gi, "#")
    .replace(/\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b/gi, "#") // hashes and ids in hexadecimal
    .replace(/(?<![\p{L}\p{N}_])[-+]?\d+(?:[.,]\d+)*(?![\p{L}\p{N}_])/gu, "#")
    .replace(/#(?:[:,]#)+/g, "#") // line and column
    .replace(/[ \t]+/g, " ")
    .replace(/ ?\r?\n ?/g, "\n")
    .trim();
}

/**
 * Returns the signature of an error, without stack frames and quoted values. Errors with equal signatures are the same kind of error.
 * Empty for a text without distinctive words.
 */
export function errorSignature(text: string): string {
  const lines = normaliseError(text).split("\n");
  const telling = lines.filter((line) => !FRAME.test(line));
  const words = (telling.length > 0 ? telling : lines)
    .join(" ")
    .replace(/"[^"\n]*"|'[^'\n]*'|`[^`\n]*`|‘[^‘’\n]*’|“[^“”\n]*”|«[^«»\n]*»/g, "'#'")
    .toLowerCase()
    .replace(/\s+/g, " ")
    .trim();
  return /\p{L}/u.test(words) ? sha256Hex(words) : "";
}

/** Characters read: a pasted log may be long, and the error is near its beginning. */
const MAX_CHARS = 20_000;
const MAX_PASSES = 20;

/**
 * Matches a path: slashes or backslashes between names, from a root, a drive, a dot or a URL, but not a fraction such as 1/2. The
 * pattern takes a whole run of names, and the caller checks what follows: a condition in the pattern would read the run once per slash.
 */
const PATH = /(?:[a-z][a-z0-9+.-]{0,20}:\/\/[\p{L}\p{N}_.@:-]+|~|\.{1,2}|[A-Za-z]:)?(?:[\\/][\p{L}\p{N}_.@+-]+)+/giu;

const isSlash = (char: string | undefined) => char === "/" || char === "\\";

function baseName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path;
}

/** Matches stack frames of JavaScript, Java, Python, Rust, Go and .NET, and the lines around them. */
const FRAME =
  /^\s*(?:at .+|File ".*", line #.*|File \S+, line #.*|Traceback \(most recent call last\):?|\d+: .+::.+|\.\.\. # more|goroutine # .*|\S+\.go:#.*|stack backtrace:|#?\d* ?#? in .+)$/is;

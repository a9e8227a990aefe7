import type { Anchor } from "../model/anchor.ts";
import { sha256Hex } from "../model/ids.ts";

/** Returns the hash of a definition's text, from its line to its last line, counted from 1. Line ends do not count. */
export function definitionHash(lines: readonly string[], from: number, to: number): string {
  return sha256Hex(
    lines
      .slice(from - 1, to)
      .map(withoutReturn)
      .join("\n"),
  );
}

/** Lines that one comparison hashes at most, about 10 ms: a long definition whose name is on many lines would take quadratic time. */
const HASHED_LINES = 50_000;

/**
 * Compares a symbol with the current text of its file: `fresh` if the text of its definition is still there, `gone` if its name is not,
 * else `changed`; `unknown` if too many lines would have to be hashed. Needs no parser, so the client side can do it within an answer.
 */
export function compareDefinition(
  lines: readonly string[],
  { value, hash, lines: count = 1 }: Anchor,
): "fresh" | "changed" | "gone" | "unknown" {
  let named = false;
  let hashed = 0;
  for (const [index, line] of lines.entries()) {
    if (!hasName(line, value)) continue;
    named = true;
    if (index + count > lines.length) break;
    hashed += count;
    if (hashed > HASHED_LINES && hashed > count) return "unknown";
    if (definitionHash(lines, index + 1, index + count) === hash) return "fresh";
  }
  return named ? "changed" : "gone";
}

/** Returns whether a line has this name as a whole word. */
function hasName(line: string, name: string): boolean {
  for (let at = line.indexOf(name); at >= 0; at = line.indexOf(name, at + 1))
    if (!isWord(line[at - 1]) && !isWord(line[at + name.length])) return true;
  return false;
}

function isWord(char: string | undefined): boolean {
  return char !== undefined && /[\p{L}\p{N}_$]/u.test(char);
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

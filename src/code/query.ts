import { queryWords } from "../text/words.ts";
import type { PathRole } from "./path-role.ts";

/** What a query is about. */
export interface CodeQuery {
  /** Names that may be defined somewhere; the last part of `a.b` and `A::b`. */
  readonly names: readonly string[];
  /** Of the names that were given as `a.b`: `b` → `a`, which may be a class, a file or a variable called like one. */
  readonly owners: ReadonlyMap<string, string>;
  /** The whole query is one name: the person means exactly this. */
  readonly bare: boolean;
  /** The telling words, identifiers also in their parts. */
  readonly words: readonly string[];
  /** Every word in its place, as far as anyone reads, to find a message that was pasted. */
  readonly spoken: readonly string[];
  /** Kinds of files that the query itself asks for. */
  readonly roles: ReadonlySet<PathRole>;
}

const NAME = /[\p{L}_$][\p{L}\p{N}_$]*(?:(?:\.|::|#|->)[\p{L}_$][\p{L}\p{N}_$]*)*/gu;
const MAX_NAMES = 8;
const MAX_SPOKEN = 64;

export function readQuery(query: string): CodeQuery {
  const text = query.trim().replace(/\(\)$/, "");
  const bare = [...text.matchAll(NAME)][0]?.[0] === text;
  const found = [...text.matchAll(NAME)].map(([name]) => name);
  const paths = (bare ? found : found.filter(looksLikeName)).map(nameParts);
  const words = queryWords(query);
  const asked = new Set(words);
  return {
    names: [...new Set(paths.map((parts) => parts.at(-1)!))].slice(0, MAX_NAMES),
    owners: new Map(paths.flatMap((parts) => (parts.length > 1 ? [[parts.at(-1)!, parts.at(-2)!] as const] : []))),
    bare,
    words,
    spoken: [...text.toLowerCase().matchAll(/[\p{L}\p{N}_]+/gu)].slice(0, MAX_SPOKEN).map(([word]) => word),
    roles: new Set(ASKING.flatMap(([role, telling]) => (telling.some((word) => asked.has(word)) ? [role] : []))),
  };
}

/** `a.b`, `A::b`, `A#b`, `a->b` → a, b. */
export function nameParts(name: string): string[] {
  return name.split(/\.|::|#|->/);
}

/** Names that differ only in how their words are put together are the same: `job-queue`, `job_queue`, `JobQueue`. */
export function foldName(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** `camelCase`, `PascalCase` with two humps, `snake_case`, `HTTPServer`, `a.b`: no word of a sentence looks so. */
function looksLikeName(word: string): boolean {
  return /\p{Ll}\p{Lu}|[\p{L}\p{N}]_[\p{L}\p{N}]|^_|\p{Lu}{2}\p{Ll}|[\p{L}\p{N}](?:\.|::|#|->)\p{L}/u.test(word);
}

const ASKING: readonly [PathRole, readonly string[]][] = [
  ["test", ["test", "tests", "testing", "tested", "spec", "mock", "fixture", "fixtures"]],
  ["example", ["example", "examples", "sample", "demo", "bench", "benchmark", "benchmarks"]],
  ["vendored", ["vendor", "vendored", "dependency"]],
  ["generated", ["generated", "bundle", "lock"]],
  ["legacy", ["legacy", "deprecated", "compat", "old"]],
  ["declarations", ["declaration", "declarations", "declared", "typings"]],
  ["header", ["declaration", "declarations", "declared", "header", "headers"]],
  ["docs", ["doc", "docs", "documentation", "documented", "readme", "guide", "manual", "changelog"]],
];

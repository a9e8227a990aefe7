import type { Anchor } from "../model/anchor.ts";
import { LIMITS } from "../model/limits.ts";

/** An anchor before its hash is known. */
export interface AnchorCandidate extends Anchor {
  /** Dropped if it is not found: it was recognised in a text and may be an ordinary word. */
  readonly optional?: boolean | undefined;
}

/** Texts in which anchors are recognised: a record's own, and its context pairs. */
export interface AnchoredText {
  readonly texts: readonly string[];
  readonly context?: Readonly<Record<string, string>> | undefined;
}

/** Returns the paths, symbols, commit ids and branch names in a text, each once, in the order of their first appearance. */
export function recogniseAnchors({ texts, context = {} }: AnchoredText): AnchorCandidate[] {
  const found = new Map<string, AnchorCandidate>();
  const add = (kind: Anchor["kind"], value: string) => {
    const key = `${kind} ${value}`;
    if (found.size < LIMITS.anchorCandidates && !found.has(key)) found.set(key, { kind, value, optional: true });
  };
  for (const [key, value] of Object.entries(context)) if (/^(?:git[_-]?)?branch$/i.test(key) && BRANCH.test(value)) add("branch", value);
  for (const text of [...texts, ...Object.values(context)]) {
    for (const [, branch] of text.matchAll(/\bbranch ["'`]?([\w./-]{1,200})/g)) if (BRANCH.test(branch!)) add("branch", branch!);
    for (const [, quoted] of text.matchAll(/`([^`\n]{1,200})`/g)) if (IDENTIFIER.test(quoted!)) add("symbol", lastName(quoted!));
    for (const word of text.match(/[^\s"'<>()[\]{},;|`]+/g) ?? []) addWord(word, add);
    for (const [call] of text.matchAll(/\b[A-Za-z_$][\w$]{1,99}(?=\()/g)) add("symbol", call);
  }
  return [...found.values()];
}

const BRANCH = /^[A-Za-z0-9][\w./-]{0,199}$/;
/** A name, or names that are joined as languages join them. */
const IDENTIFIER = /^[A-Za-z_$][\w$]{1,99}(?:(?:\.|::|#|->)[A-Za-z_$][\w$]{1,99}){0,4}(?:\(\))?$/;
/** Names that prose does not have: two humps, or an underscore inside. */
const CODE_NAME = /^(?:[a-z$][\w$]*[a-z0-9][A-Z][\w$]*|[A-Z][\w$]*[a-z0-9][A-Z][\w$]*|_*[A-Za-z][A-Za-z0-9]*_[\w$]+)$/;
const COMMIT = /^[0-9a-f]{7,40}$/;
const PATH_PART = /^[\w@.+~-]+$/;
const FILE_NAME = /^[\w@+~-][\w@.+~-]*\.[A-Za-z]\w{0,9}$/;
/** Names of files without an extension. */
const PLAIN_FILES: ReadonlySet<string> = new Set(["Makefile", "Dockerfile", "Rakefile", "Gemfile", "Justfile", "Procfile", "Jenkinsfile"]);

function addWord(raw: string, add: (kind: Anchor["kind"], value: string) => void): void {
  if (raw.length > LIMITS.anchorChars || raw.includes("://")) return;
  const [word, symbol] = splitPosition(raw.replace(/[.:!?*]{1,3}$/, ""));
  if (COMMIT.test(word) && /\d/.test(word) && (/[a-f]/.test(word) || word.length === 40)) {
    add("commit", word);
    return;
  }
  const path = word.replace(/^\.\//, "");
  const parts = path.split("/");
  const isPath = parts.length > 1 && parts.every((part, index) => PATH_PART.test(part) || (index === 0 && part === ""));
  if (isPath || FILE_NAME.test(path) || PLAIN_FILES.has(path)) add("file", path);
  if (symbol !== undefined && IDENTIFIER.test(symbol)) add("symbol", lastName(symbol));
  else if (!isPath && IDENTIFIER.test(word) && CODE_NAME.test(lastName(word))) add("symbol", lastName(word));
}

/** Splits a position off a path: `a.ts:12:3`, `a.ts#L12` or `a.ts#parse`, whose symbol is the second part. */
function splitPosition(word: string): readonly [string, string | undefined] {
  const hash = word.indexOf("#");
  if (hash > 0 && (word.includes("/") || FILE_NAME.test(word.slice(0, hash)))) {
    const after = word.slice(hash + 1);
    return [word.slice(0, hash), /^L\d/.test(after) ? undefined : after];
  }
  return [word.replace(/(?::\d{1,7}){1,2}$/, ""), undefined];
}

/** Returns the last of joined names: the code index stores definitions under their own names. */
function lastName(name: string): string {
  return name
    .replace(/\(\)$/, "")
    .split(/\.|::|#|->/)
    .at(-1)!;
}

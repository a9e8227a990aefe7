import { extractQueryTerms } from "../text/terms.ts";

/** A query, parsed for code search. */
export interface CodeQuery {
  /** Names that may be defined somewhere; the last part of `a.b` and `A::b`. */
  readonly names: readonly string[];
  /** For names written as `a.b`: `b` → `a`, which may be a class, a file or a variable named after one. */
  readonly owners: ReadonlyMap<string, string>;
  /** The whole query is one name. */
  readonly bare: boolean;
  /** Search terms, with identifiers also split into their parts. */
  readonly words: readonly string[];
  /** The words in their order, up to a limit, to find pasted messages. */
  readonly wordSequence: readonly string[];
  /** Roles of files that the query asks for. */
  readonly roles: ReadonlySet<PathRole>;
}

const NAME = /[\p{L}_$][\p{L}\p{N}_$]*(?:(?:\.|::|#|->)[\p{L}_$][\p{L}\p{N}_$]*)*/gu;
const MAX_NAMES = 8;
const MAX_SEQUENCE = 64;

export function readQuery(query: string): CodeQuery {
  const text = query.trim().replace(/\(\)$/, "");
  const bare = [...text.matchAll(NAME)][0]?.[0] === text;
  const found = [...text.matchAll(NAME)].map(([name]) => name);
  const paths = (bare ? found : found.filter(looksLikeName)).map(nameParts);
  const words = extractQueryTerms(query);
  const asked = new Set(words);
  return {
    names: [...new Set(paths.map((parts) => parts.at(-1)!))].slice(0, MAX_NAMES),
    owners: new Map(paths.flatMap((parts) => (parts.length > 1 ? [[parts.at(-1)!, parts.at(-2)!] as const] : []))),
    bare,
    words,
    wordSequence: [...text.toLowerCase().matchAll(/[\p{L}\p{N}_]+/gu)].slice(0, MAX_SEQUENCE).map(([word]) => word),
    roles: new Set([
      ...ROLE_TERMS.flatMap(([role, terms]) => (terms.some((word) => asked.has(word)) ? [role] : [])),
      ...(DATA_FILE.test(query) ? (["data"] as const) : []),
    ]),
  };
}

/** Questions of one line up to this length are searched as they are. */
const SHORT_CHARS = 300;

/** Returns whether a question has parts to be searched in different ways: a title, prose, names, stack frames. */
export function isLongQuestion(question: string): boolean {
  return question.length > SHORT_CHARS || question.trim().includes("\n");
}

/** Splits `a.b`, `A::b`, `A#b` and `a->b` into a and b. */
export function nameParts(name: string): string[] {
  return name.split(/\.|::|#|->/);
}

/** Folds names that differ only in case and separators: `job-queue`, `job_queue`, `JobQueue`. */
export function foldName(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** Recognises `camelCase`, `PascalCase`, `snake_case`, `HTTPServer` and `a.b`, which no ordinary word of a sentence resembles. */
function looksLikeName(word: string): boolean {
  return /\p{Ll}\p{Lu}|[\p{L}\p{N}]_[\p{L}\p{N}]|^_|\p{Lu}{2}\p{Ll}|[\p{L}\p{N}](?:\.|::|#|->)\p{L}/u.test(word);
}

const ROLE_TERMS: readonly [PathRole, readonly string[]][] = [
  ["test", ["test", "tests", "testing", "tested", "spec", "mock", "fixture", "fixtures"]],
  ["example", ["example", "examples", "sample", "demo", "bench", "benchmark", "benchmarks"]],
  ["vendored", ["vendor", "vendored", "dependency"]],
  ["generated", ["generated", "bundle", "lock"]],
  ["legacy", ["legacy", "deprecated", "compat", "old"]],
  ["declarations", ["declaration", "declarations", "declared", "typings"]],
  ["header", ["declaration", "declarations", "declared", "header", "headers"]],
  ["data", ["yaml", "toml", "xml", "csv", "manifest", "manifests"]],
  ["docs", ["doc", "docs", "documentation", "documented", "readme", "guide", "manual", "changelog"]],
];

/** Matches a question that names a data file. The word JSON alone is often about code that reads it. */
const DATA_FILE = /\w\.(?:json|ya?ml|toml|xml|csv|ini|cfg)\b/i;

/** Roles of files, by path. Such files are rarely the answer unless the query asks for them. */
export const PATH_ROLES = ["test", "example", "vendored", "generated", "legacy", "declarations", "header", "docs", "data"] as const;

export type PathRole = (typeof PATH_ROLES)[number];

export function pathRoles(path: string): ReadonlySet<PathRole> {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return new Set(RULES.flatMap(({ role, inPath, inName }) => (inPath?.test(path) || inName?.test(name) ? [role] : [])));
}

/** Patterns of the whole path and of the file name alone. */
const RULES: readonly { readonly role: PathRole; readonly inPath?: RegExp; readonly inName?: RegExp }[] = [
  {
    role: "test",
    inPath: /(?:^|\/)(?:tests?|specs?|__tests__|__mocks__|testing|testdata|fixtures?)\//,
    inName: /[._-](?:tests?|spec)\.(?=.)|^test_(?=.)|Tests?\.(?:java|cs|kt|php)$|^(?:tests?|conftest)\.(?:rs|py|[mc]?[jt]sx?)$/,
  },
  {
    role: "example",
    inPath: /(?:^|\/)(?:examples?|samples?|demos?|benchmarks?|bench|benches)\//,
    inName: /[._-]bench(?:marks?)?\.(?=.)|^bench(?:mark)?[._-]/,
  },
  { role: "vendored", inPath: /(?:^|\/)(?:node_modules|vendor|vendored|third[_-]?party|external|site-packages|bower_components)\// },
  {
    role: "generated",
    inPath: /(?:^|\/)(?:dist|build|out|target|generated|__generated__|gen)\//,
    inName: /\.(?:min|bundle|generated|g|pb)\.(?=.)|_pb2?\.(?=.)|^(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|go\.sum)$/,
  },
  { role: "legacy", inPath: /(?:^|\/)(?:legacy|deprecated|compat|_?old)\// },
  { role: "declarations", inName: /\.d\.[mc]?ts$|\.pyi$/ },
  { role: "header", inName: /\.(?:h|hh|hpp|hxx)$/ },
  { role: "docs", inName: /\.(?:md|mdx|rst|adoc|txt)$/i },
  { role: "data", inName: /\.(?:json[c5]?|ya?ml|toml|xml|csv|tsv|snap|svg|ini|cfg|properties)$/i },
];

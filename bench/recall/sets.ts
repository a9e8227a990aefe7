import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sha256Hex } from "../../src/model/ids.ts";
import { readCommits } from "../scoring/commits.ts";

/** Questions with the documents that answer them, for scoring a ranking. */
export interface RecallSet {
  readonly name: string;
  readonly docs: readonly RecallDoc[];
  readonly queries: readonly { readonly text: string; readonly rel: Readonly<Record<string, number>> }[];
}

export interface RecallDoc {
  readonly id: string;
  readonly text: string;
  /** When it was said, and in which session; absent where the order of the documents means nothing. */
  readonly at?: string;
  readonly session?: string;
}

/** Builds a set from the checkout's history: the subject of a commit asks for its message; `undefined` without a history. */
export function historyMessages(root: string): RecallSet | undefined {
  const commits = readCommits(root).filter(({ body }) => body.split(/\s+/).length >= 15);
  if (commits.length < 50) return undefined;
  return {
    name: "history",
    docs: commits.map(({ hash, body }) => ({ id: hash, text: body.slice(0, 1_500) })),
    queries: commits.filter((_, index) => index % 2 === 0).map(({ hash, subject }) => ({ text: subject, rel: { [hash]: 1 } })),
  };
}

/** Builds a set from the checkout's history: the subject of a commit asks for the documents in docs/ that it changed. */
export function historyDocs(root: string): RecallSet | undefined {
  const docs = files(join(root, "docs"), /\.md$/).map((path) => ({
    id: path.slice(root.length + 1),
    text: readFileSync(path, "utf8")
      .replace(/```[\s\S]*?```/g, " ")
      .slice(0, 3_000),
  }));
  const known = new Set(docs.map(({ id }) => id));
  const queries = readCommits(root).flatMap(({ subject, changed }) => {
    const rel = changed.filter((path) => known.has(path));
    return rel.length > 0 && rel.length <= 3 ? [{ text: subject, rel: Object.fromEntries(rel.map((path) => [path, 1])) }] : [];
  });
  return queries.length < 30 ? undefined : { name: "history-docs", docs, queries: queries.slice(0, QUERIES_MAX) };
}

/** Reads a set from a file of the form { docs, queries }; `undefined` when the file is absent. */
export function setFromFile(name: string, path: string): RecallSet | undefined {
  return existsSync(path) ? { name, ...JSON.parse(readFileSync(path, "utf8")) } : undefined;
}

/** Reads the Tatoeba sentences: a sentence in another language asks for its English translation. */
export function tatoeba(path: string): RecallSet[] {
  const pairs = JSON.parse(readFileSync(path, "utf8")) as Record<string, readonly (readonly [string, string])[]>;
  return Object.entries(pairs).map(([language, sentences]) => ({
    name: `tatoeba_${language}`,
    docs: sentences.map(([, english], index) => ({ id: String(index), text: english })),
    queries: sentences.map(([text], index) => ({ text, rel: { [index]: 1 } })),
  }));
}

const DOCS_MAX = 1_200;
const QUERIES_MAX = 250;

/** Builds a set from installed packages: the first sentence of a doc comment asks for its function, without the comment. */
export function dependencyCode(root: string): RecallSet {
  const pairs = files(join(root, "node_modules"), /\.(m|c)?js$/).flatMap((path) => documentedFunctions(readFileSync(path, "utf8")));
  return fromPairs("deps-code", pairs);
}

/** Builds a set from the packages' readmes: the first sentence of a section asks for the rest of it. */
export function dependencyProse(root: string): RecallSet {
  const pairs = files(join(root, "node_modules"), /^(readme|changelog|contributing|migration|security)[^/]*\.md$/i).flatMap((path) =>
    sections(readFileSync(path, "utf8")),
  );
  return fromPairs("deps-prose", pairs);
}

/** Builds a set from this project's documentation: the first sentence of a section asks for the rest of it. */
export function projectProse(root: string): RecallSet {
  return fromPairs(
    "docs-prose",
    files(join(root, "docs"), /\.md$/).flatMap((path) => sections(readFileSync(path, "utf8"))),
  );
}

interface Pair {
  readonly question: string;
  readonly answer: string;
}

/** Samples by hash without duplicates, so that machines with the same packages get the same sample. */
function fromPairs(name: string, pairs: readonly Pair[]): RecallSet {
  const distinct = new Map(pairs.map((pair) => [sha256Hex(pair.answer), pair]));
  const chosen = [...distinct].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, DOCS_MAX);
  return {
    name,
    docs: chosen.map(([id, { answer }]) => ({ id, text: answer })),
    queries: chosen.slice(0, QUERIES_MAX).map(([id, { question }]) => ({ text: question, rel: { [id]: 1 } })),
  };
}

function documentedFunctions(code: string): Pair[] {
  if (code.length > 400_000) return []; // bundles
  const found: Pair[] = [];
  const pattern =
    /\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*\n((?:export\s+)?(?:default\s+)?(?:async\s+)?(?:function\b|(?:static\s+)?[A-Za-z_$][\w$]*\s*\()[^\n]*\{\s*\n)/g;
  for (const match of code.matchAll(pattern)) {
    const question = firstSentence(match[1]!.replace(/^\s*\*?\s?/gm, " "));
    const start = match.index + match[0].length - match[2]!.length;
    const answer = bodyFrom(code, start);
    if (question && answer) found.push({ question, answer });
  }
  return found;
}

/** Returns the function's text up to its closing brace; `undefined` if it is tiny or very long. */
function bodyFrom(code: string, start: number): string | undefined {
  let depth = 0;
  for (let i = start; i < Math.min(code.length, start + 6_000); i++) {
    if (code[i] === "{") depth++;
    if (code[i] === "}" && --depth === 0) {
      const text = code.slice(start, i + 1);
      return text.split("\n").length >= 4 ? text : undefined;
    }
  }
  return undefined;
}

function sections(markdown: string): Pair[] {
  return markdown
    .replace(/```[\s\S]*?```/g, " ")
    .split(/^#{1,4} .*$/m)
    .flatMap((section) => {
      const text = section
        .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
        .replace(/<[^>]+>|[*`_|]/g, " ")
        .replace(/\s+/g, " ")
        .trim();
      const question = firstSentence(text);
      const answer = question
        ? text
            .slice(text.indexOf(question) + question.length + 1)
            .trim()
            .slice(0, 1_500)
        : "";
      return question && answer.split(" ").length >= 25 ? [{ question, answer }] : [];
    });
}

/** Returns whether a sentence has five to thirty words and no tags or links. */
function firstSentence(text: string): string | undefined {
  const sentence = text
    .split(/\s@\w|\n\s*\n/)[0]!
    .replace(/\s+/g, " ")
    .trim()
    .split(/(?<=[.!?])\s/)[0]!
    .replace(/[.!?]$/, "");
  const words = sentence.split(" ").length;
  return words >= 5 && words <= 30 && !/https?:|\{@|eslint|@ts-/.test(sentence) ? sentence : undefined;
}

function files(folder: string, name: RegExp): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && name.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

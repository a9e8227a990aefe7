import type { CodeChunk, CodeOutline } from "../model/code-index.ts";
import { identifierParts } from "../text/terms.ts";
import { type CodeQuery, foldName, type PathRole, pathRoles } from "./query.ts";

export interface RankInput {
  readonly chunk: CodeChunk;
  /** Fused score of the semantic and keyword rankings, 0…1. */
  readonly fused: number;
  /** Cosine to the query; absent without a semantic ranking, or where the chunk has no vector. */
  readonly cosine?: number | undefined;
  /** The chunk defines a name in the query. */
  readonly defines: boolean;
  /** Added for a place that the question names, such as a stack frame. */
  readonly boost?: number | undefined;
}

/** A candidate with its score before its text is compared, and the factor of its file. */
export interface RankedOutline extends RankInput {
  readonly sum: number;
  readonly factor: number;
}

export interface RankedChunk extends RankInput {
  readonly score: number;
}

/** Weights chosen on one half of the questions of `npm run bench -- code-recall`. They are round, because scores hardly change near them. */
const DEFINITION = 0.6;
const FILE_HAS_NAME = 0.2;
/** The chunk contains the definition, such as a class that declares the method. */
const DEFINED_WITHIN = 0.7;
/** A name inside a sentence is weaker evidence than a query that is only the name. */
const IN_A_SENTENCE = 0.5;
const PATH_TERMS = 0.25;
/** The query has every part of the file's name: little for a name of one word, much for several. */
const WHOLE_FILE_NAME = { oneWord: 0.05, words: 0.2 };
const NAME_TERMS = 0.2;
const PHRASE = 0.4;
const TEXT_TERMS = 0.3;
const LENGTH = 0.1;
const SAME_FILE = 0.3;
/** How many chunks of the file resemble the query, for its length. */
const SIMILAR_FILE = 0.15;
const FURTHER_CHUNK = 0.5;
/** Factor of a chunk that only declares something. */
const ONLY_DECLARED = 0.8;
/** Factor of text outside of definitions: imports and introductions have the words of every question, and do nothing. */
const UNDEFINED_TEXT = 0.85;
/** Factor of a method: a class or a function of its own more often answers a question than one of many methods. */
const ONE_METHOD = 0.95;
/** Factor of a name that begins with `_` or `#`. */
const PRIVATE_NAME = 0.95;
/** Share of the score that a file loses each time its number of chunks doubles: a long file has a chunk for every question. */
const PER_DOUBLING = 0.03;
const SMALLEST_SIZE_FACTOR = 0.7;
/** Factor of a file in a `v1` folder next to a `v2` folder. */
const OLDER_VERSION = 0.8;
const FACTOR: Readonly<Record<PathRole, number>> = {
  test: 0.5,
  example: 0.6,
  vendored: 0.4,
  generated: 0.3,
  legacy: 0.6,
  declarations: 0.85,
  header: 0.9,
  docs: 0.7,
  data: 0.6,
};

/** Characters of a chunk that are compared with the query. Longer chunks are lines of a bundle, and reading them takes seconds. */
const TEXT_CHARS = 10_000;
/** Lines from which a chunk gets the full score for its length; a getter or a destructor says little. */
const FULL_LENGTH_LINES = 10;

/** Ranks candidates by their outlines, which takes less time than by their texts. Files with a role in `wanted` keep their full score. */
export function rankOutlines(query: CodeQuery, candidates: readonly RankInput[], wanted: ReadonlySet<PathRole>): RankedOutline[] {
  const paths = candidates.map(({ chunk }) => chunk.path);
  const ofFile = fileSignals(query, wanted, newestVersions(paths));
  const similar = similarFiles(candidates);
  const outlined = candidates.map((candidate) => {
    const { chunk, fused, defines } = candidate;
    const { path, hasName, factor } = ofFile(chunk.path);
    let sum = fused + (candidate.boost ?? 0) + path + NAME_TERMS * nameTerms(query, chunk) + SIMILAR_FILE * similar.get(chunk.path)!;
    sum += LENGTH * Math.min(1, (chunk.endLine - chunk.startLine + 1) / FULL_LENGTH_LINES);
    if (defines) {
      const isDefinition = chunk.name === undefined || query.names.includes(chunk.name);
      sum += (DEFINITION + (hasName ? FILE_HAS_NAME : 0)) * (isDefinition ? 1 : DEFINED_WITHIN) * (query.bare ? 1 : IN_A_SENTENCE);
    }
    return { ...candidate, sum, factor };
  });
  return outlined.sort((a, b) => b.sum * b.factor - a.sum * a.factor || byPosition(a.chunk, b.chunk));
}

/** Ranks candidates with their texts. */
export function rankTexts(query: CodeQuery, candidates: readonly RankedOutline[]): RankedChunk[] {
  const texts = candidates.map(({ chunk }) => chunk.text.slice(0, TEXT_CHARS).toLowerCase());
  const textTerms = termShares(
    query.words,
    candidates.map(({ chunk }, index) => [chunk.path.toLowerCase(), texts[index]!]),
  );
  const pasted = pastedShares(query.wordSequence, texts);
  // A language without a parser has text only.
  const parsed = new Set(candidates.flatMap(({ chunk }) => (chunk.kind === "text" ? [] : [chunk.language])));
  const scored = candidates.map(({ chunk, fused, defines, sum, factor }, index) => {
    const score = sum + PHRASE * pasted[index]! + TEXT_TERMS * textTerms[index]!;
    // A name typed alone asks for its declaration, wherever it is.
    const form = query.bare && defines ? 1 : formFactor(chunk, { bare: query.bare, parsed: parsed.has(chunk.language) });
    return { chunk, fused, defines, score: score * form * factor };
  });
  return saturate(scoreFiles(scored).sort(best));
}

interface FileSignals {
  /** Points for the words that path and query share. */
  readonly path: number;
  readonly hasName: boolean;
  readonly factor: number;
}

/** Returns a function that computes the signals of a path, once for each file. */
function fileSignals(query: CodeQuery, wanted: ReadonlySet<PathRole>, newest: ReadonlyMap<string, number>) {
  const known = new Map<string, FileSignals>();
  return (path: string) => {
    let signals = known.get(path);
    if (!signals) {
      const [file = "", folder = ""] = path.split("/").toReversed();
      const stem = file.replace(/\.[^.]*$/, "");
      // The folder names a module; its main file is called the same everywhere.
      const name = MAIN_FILE.test(file) ? folder : stem;
      let factor = isOlderVersion(query, path, newest) ? OLDER_VERSION : 1;
      for (const role of pathRoles(path)) if (!wanted.has(role) && !query.roles.has(role)) factor *= FACTOR[role];
      signals = {
        path: PATH_TERMS * shareOf(query.words, [stem, folder]) + wholeName(query, name),
        hasName: query.names.some((one) => foldName(name.split(".", 1)[0]!) === foldName(one)),
        factor,
      };
      known.set(path, signals);
    }
    return signals;
  };
}

const MAIN_FILE = /^(?:index\.[mc]?[jt]sx?|__init__\.py|mod\.rs)$/;

/** Returns points for a query that has all parts of a file's name, however long the query is. */
function wholeName({ words, bare }: CodeQuery, name: string): number {
  const parts = bare ? [] : identifierParts(name.replace(/[^\p{L}\p{N}_$]+/gu, "_"));
  if (parts.length === 0 || !parts.every((part) => words.some((word) => word === part || isPlural(word, part) || isPlural(part, word))))
    return 0;
  return parts.length === 1 ? WHOLE_FILE_NAME.oneWord : WHOLE_FILE_NAME.words;
}

function isPlural(word: string, singular: string): boolean {
  return singular.length >= 3 && word === `${singular}s`;
}

const VERSION_FOLDER = /(?:^|\/)v(\d{1,3})\//;

/** Returns the highest version among sibling folders `v1`, `v2` …, by the path before them. */
function newestVersions(paths: readonly string[]): ReadonlyMap<string, number> {
  const newest = new Map<string, number>();
  for (const path of paths) {
    const match = VERSION_FOLDER.exec(path);
    if (!match) continue;
    const before = path.slice(0, match.index);
    newest.set(before, Math.max(newest.get(before) ?? 0, Number(match[1])));
  }
  return newest;
}

function isOlderVersion({ words }: CodeQuery, path: string, newest: ReadonlyMap<string, number>): boolean {
  const match = VERSION_FOLDER.exec(path);
  if (!match || words.includes(`v${match[1]}`)) return false;
  return Number(match[1]) < (newest.get(path.slice(0, match.index)) ?? 0);
}

/**
 * Returns how much each file resembles the query, relative to the best one, 0…1: the sum of the relative cosines of its candidates,
 * divided by the square root of its length. The length is the number of the last candidate. The text of one chunk may resemble any
 * question; the right file has several such chunks.
 */
function similarFiles(candidates: readonly RankInput[]): ReadonlyMap<string, number> {
  const cosines = candidates.flatMap(({ cosine }) => cosine ?? []);
  const floor = Math.min(...cosines);
  const range = Math.max(...cosines) - floor;
  const files = new Map<string, { sum: number; chunks: number }>();
  for (const { chunk, cosine = floor } of candidates) {
    const { sum = 0, chunks = 0 } = files.get(chunk.path) ?? {};
    files.set(chunk.path, { sum: sum + (range > 0 ? (cosine - floor) / range : 0), chunks: Math.max(chunks, chunk.index + 1) });
  }
  const values = new Map([...files].map(([path, { sum, chunks }]) => [path, sum / Math.sqrt(chunks)]));
  const top = Math.max(...values.values());
  return new Map([...values].map(([path, value]) => [path, top > 0 ? value / top : 0]));
}

/**
 * Raises the best chunk of a file by the two after it: a file with several good chunks is more likely the right one. Lowers long files,
 * whose length is known from the last of these chunks.
 */
function scoreFiles(scored: readonly RankedChunk[]): RankedChunk[] {
  const byFile = new Map<string, RankedChunk[]>();
  for (const one of scored) {
    const same = byFile.get(one.chunk.path);
    if (same) same.push(one);
    else byFile.set(one.chunk.path, [one]);
  }
  return [...byFile.values()].flatMap((same) => {
    const [first, ...rest] = same.sort(best);
    const support = ((rest[0]?.score ?? 0) + (rest[1]?.score ?? 0)) / 2;
    const chunks = 1 + Math.max(...same.map(({ chunk }) => chunk.index));
    const factor = Math.max(SMALLEST_SIZE_FACTOR, 1 - PER_DOUBLING * Math.log2(chunks));
    return [{ ...first!, score: first!.score + SAME_FILE * support }, ...rest].map((one) => ({ ...one, score: one.score * factor }));
  });
}

/** Halves the score of each further chunk of a file, so that the first hits show several files. */
function saturate(scored: readonly RankedChunk[]): RankedChunk[] {
  const seen = new Map<string, number>();
  return scored
    .map((one) => {
      const before = seen.get(one.chunk.path) ?? 0;
      seen.set(one.chunk.path, before + 1);
      return { ...one, score: one.score * FURTHER_CHUNK ** before };
    })
    .sort(best);
}

function best(a: RankedChunk, b: RankedChunk): number {
  return b.score - a.score || byPosition(a.chunk, b.chunk);
}

function byPosition(a: CodeOutline, b: CodeOutline): number {
  if (a.path !== b.path) return a.path < b.path ? -1 : 1;
  return a.index - b.index;
}

/** Returns the share of the query's terms in the chunk's name, or in the names of the small definitions that share the chunk. */
function nameTerms({ words }: CodeQuery, { name, defines }: CodeOutline): number {
  return shareOf(words, name === undefined ? defines : [name]);
}

/** Returns the share of the terms that are parts of these names, 0…1. A common prefix of four letters or more counts as well. */
function shareOf(words: readonly string[], names: readonly string[]): number {
  const lower = names.join(" ").toLowerCase();
  const likely = words.filter((word) => lower.includes(word.slice(0, 4)));
  if (likely.length === 0) return 0; // splits only names that may match: splitting is the expensive part
  const parts = names.flatMap((name) => name.split(/[^\p{L}\p{N}_$]+/u)).flatMap(identifierParts);
  const matches = (word: string, part: string) =>
    word === part || (part.length >= 4 && word.startsWith(part)) || (word.length >= 4 && part.startsWith(word));
  return likely.filter((word) => parts.some((part) => matches(word, part))).length / words.length;
}

/**
 * Returns the share of the query's words in each text, weighted by how few of the texts have a word, 0…1. The keyword ranking counts how
 * often a word occurs; here it counts that many different words do. Endings are cut: `sorted` has the beginning of `sorting`.
 */
function termShares(words: readonly string[], lowerTexts: readonly (readonly string[])[]): number[] {
  const beginnings = words.map((word) => (word.length > 5 ? word.slice(0, Math.max(4, word.length - 2)) : word));
  const present = lowerTexts.map((parts) => beginnings.map((beginning) => parts.some((part) => part.includes(beginning))));
  const weights = beginnings.map((_, word) => {
    const having = present.filter((has) => has[word]).length;
    return Math.log(1 + (present.length - having + 0.5) / (having + 0.5));
  });
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return present.map((has) => (total === 0 ? 0 : weights.reduce((sum, weight, word) => sum + (has[word] ? weight : 0), 0) / total));
}

/** Returns the factor of a chunk by what it is: `parsed` where the language has definitions, `bare` for a name typed alone. */
function formFactor(chunk: CodeChunk, { bare, parsed }: { readonly bare: boolean; readonly parsed: boolean }): number {
  const { kind, name } = chunk;
  let factor = isOnlyDeclared(chunk) ? ONLY_DECLARED : 1;
  if (bare) return factor;
  if (kind === "text" && parsed) factor *= UNDEFINED_TEXT;
  if (kind === "method") factor *= ONE_METHOD;
  if (name !== undefined && /^[_#]/.test(name)) factor *= PRIVATE_NAME;
  return factor;
}

function isOnlyDeclared({ kind, text }: CodeChunk): boolean {
  return kind === "interface" || kind === "type" || (!text.includes("{") && text.trimEnd().endsWith(";"));
}

/** Words in a row that count as pasted text; two are often coincidence. */
const PHRASE_WORDS = 3;

/**
 * Returns, for each text, the longest part of the query that it contains word for word, as a share, 0…1. It finds error messages pasted
 * from a log. Only texts that have three words in a row are normalised: that is the expensive part.
 */
export function pastedShares(words: readonly string[], lowerTexts: readonly string[]): number[] {
  const phrases = words.slice(PHRASE_WORDS - 1).map((_, from) => words.slice(from, from + PHRASE_WORDS));
  const longestFirst = phrases.map((phrase) => phrase.toSorted((a, b) => b.length - a.length)); // the rarest word is looked up first
  return lowerTexts.map((text) => {
    const present = new Map<string, boolean>();
    const isPresent = (word: string) => {
      const is = present.get(word) ?? text.includes(word);
      present.set(word, is);
      return is;
    };
    return longestFirst.some((phrase, index) => phrase.every(isPresent) && containsPhrase(text, phrases[index]!))
      ? longestShare(words, text)
      : 0;
  });
}

/** Returns whether a text has these words in a row, with other characters between them. A regular expression takes many times as long. */
function containsPhrase(text: string, words: readonly string[]): boolean {
  const anchor = words.reduce((best, word, index) => (word.length > words[best]!.length ? index : best), 0);
  const word = words[anchor]!;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1))
    if (hasWordsAfter(text, at + word.length, words.slice(anchor + 1)) && hasWordsBefore(text, at, words.slice(0, anchor))) return true;
  return false;
}

function hasWordsAfter(text: string, from: number, words: readonly string[]): boolean {
  let at = from;
  for (const word of words) {
    const gap = at;
    while (at < text.length && !isWordCharacter(text, at)) at++;
    if (at === gap || !text.startsWith(word, at)) return false;
    at += word.length;
  }
  return true;
}

function hasWordsBefore(text: string, to: number, words: readonly string[]): boolean {
  let at = to;
  for (const word of words.toReversed()) {
    const gap = at;
    while (at > 0 && !isWordCharacter(text, at - 1)) at--;
    if (at === gap || !text.endsWith(word, at)) return false;
    at -= word.length;
  }
  return true;
}

/** Returns whether the character at this place, or the pair that it belongs to, is a letter, a digit or an underscore. */
function isWordCharacter(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  if (unit < 128) return (unit >= 97 && unit <= 122) || (unit >= 48 && unit <= 57) || unit === 95 || (unit >= 65 && unit <= 90);
  const isSecond = unit >= 0xdc00 && unit <= 0xdfff && at > 0;
  return WORD_CHARACTER.test(String.fromCodePoint(text.codePointAt(isSecond ? at - 1 : at)!));
}

const WORD_CHARACTER = /[\p{L}\p{N}_]/u;
const NOT_A_WORD = /[^\p{L}\p{N}_]+/gu;

function longestShare(words: readonly string[], lowerText: string): number {
  const normalised = ` ${lowerText.replace(NOT_A_WORD, " ")} `;
  let longest = PHRASE_WORDS - 1;
  for (let from = 0; from + longest < words.length; from++)
    while (from + longest < words.length && normalised.includes(` ${words.slice(from, from + longest + 1).join(" ")} `)) longest++;
  return longest < PHRASE_WORDS ? 0 : longest / words.length;
}

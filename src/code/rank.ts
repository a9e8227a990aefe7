import type { CodeOutline } from "../model/code-index.ts";
import { identifierParts } from "../text/terms.ts";
import { type CodeQuery, foldName, type PathRole, pathRoles } from "./query.ts";

export interface RankInput {
  readonly chunk: CodeOutline;
  /** Fused score of the semantic and keyword rankings, 0…1. */
  readonly fused: number;
  /** The chunk defines a name in the query. */
  readonly defines: boolean;
  /** Added for a place that the question names, such as a stack frame. */
  readonly boost?: number | undefined;
}

/** A candidate with its score before its text is read, and the factor of its file. */
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
const NAME_TERMS = 0.2;
const PHRASE = 0.4;
const LENGTH = 0.1;
const SAME_FILE = 0.4;
const FURTHER_CHUNK = 0.5;
/** Factor of a chunk that only declares something. */
const ONLY_DECLARED = 0.8;
const FACTOR: Readonly<Record<PathRole, number>> = {
  test: 0.5,
  example: 0.6,
  vendored: 0.4,
  generated: 0.3,
  legacy: 0.6,
  declarations: 0.85,
  header: 0.9,
  docs: 0.8,
  entry: 0.8,
};

/** Words in a row that count as pasted text; two are often coincidence. */
const PHRASE_WORDS = 3;
/** Characters of a chunk that are searched for pasted text. Longer chunks are lines of a bundle, and reading them takes seconds. */
const PHRASE_CHARS = 10_000;
/** Lines from which a chunk gets the full score for its length; a getter or a destructor says little. */
const FULL_LENGTH_LINES = 10;

/** Ranks candidates by their outlines, before their texts are read. Files with a role in `wanted` keep their full score. */
export function rankOutlines(query: CodeQuery, candidates: readonly RankInput[], wanted: ReadonlySet<PathRole>): RankedOutline[] {
  const ofFile = fileSignals(query, wanted);
  const outlined = candidates.map((candidate) => {
    const { chunk, fused, defines } = candidate;
    const { pathTerms, hasName, factor } = ofFile(chunk.path);
    let sum = fused + (candidate.boost ?? 0) + PATH_TERMS * pathTerms + NAME_TERMS * nameTerms(query, chunk);
    sum += LENGTH * Math.min(1, (chunk.endLine - chunk.startLine + 1) / FULL_LENGTH_LINES);
    if (defines) {
      const isDefinition = chunk.name === undefined || query.names.includes(chunk.name);
      sum += (DEFINITION + (hasName ? FILE_HAS_NAME : 0)) * (isDefinition ? 1 : DEFINED_WITHIN) * (query.bare ? 1 : IN_A_SENTENCE);
    }
    return { ...candidate, sum, factor };
  });
  return outlined.sort((a, b) => b.sum * b.factor - a.sum * a.factor || byPosition(a.chunk, b.chunk));
}

/** Ranks candidates with their texts. `textOf` returns the texts of the leading candidates. */
export function rankTexts(
  query: CodeQuery,
  candidates: readonly RankedOutline[],
  textOf: (id: string) => string | undefined,
): RankedChunk[] {
  const scored = candidates.map(({ chunk, fused, defines, sum, factor }) => {
    const text = textOf(chunk.id) ?? "";
    const score = sum + PHRASE * pastedShare(query, text);
    return { chunk, fused, defines, score: score * (isOnlyDeclared(chunk, text) ? ONLY_DECLARED : 1) * factor };
  });
  return saturate(raiseBestOfFile(scored).sort(best));
}

/** Returns a function that computes the signals of a path, once for each file. */
function fileSignals(query: CodeQuery, wanted: ReadonlySet<PathRole>) {
  const known = new Map<string, { readonly pathTerms: number; readonly hasName: boolean; readonly factor: number }>();
  return (path: string) => {
    let signals = known.get(path);
    if (!signals) {
      const [file = "", folder = ""] = path.split("/").toReversed();
      let factor = 1;
      for (const role of pathRoles(path)) if (!wanted.has(role) && !query.roles.has(role)) factor *= FACTOR[role];
      signals = {
        pathTerms: shareOf(query.words, [file.replace(/\.[^.]*$/, ""), folder]),
        hasName: query.names.some((name) => foldName(file.split(".", 1)[0]!) === foldName(name)),
        factor,
      };
      known.set(path, signals);
    }
    return signals;
  };
}

/** Raises the best chunk of a file by the two after it: a file with several good chunks is more likely the right one. */
function raiseBestOfFile(scored: readonly RankedChunk[]): RankedChunk[] {
  const byFile = new Map<string, RankedChunk[]>();
  for (const one of scored) {
    const same = byFile.get(one.chunk.path);
    if (same) same.push(one);
    else byFile.set(one.chunk.path, [one]);
  }
  return [...byFile.values()].flatMap((same) => {
    const [first, ...rest] = same.sort(best);
    const support = ((rest[0]?.score ?? 0) + (rest[1]?.score ?? 0)) / 2;
    return [{ ...first!, score: first!.score + SAME_FILE * support }, ...rest];
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

/** Returns the longest part of the query that the text contains word for word, as a share, 0…1. It finds error messages pasted from a log. */
function pastedShare({ wordSequence }: CodeQuery, text: string): number {
  if (wordSequence.length < PHRASE_WORDS) return 0;
  const lower = text.slice(0, PHRASE_CHARS).toLowerCase();
  if (!hasRun(wordSequence.map((word) => lower.includes(word)))) return 0; // normalises only texts that may match: that is the expensive part
  const normalised = ` ${lower.replace(NOT_A_WORD, " ")} `;
  let longest = PHRASE_WORDS - 1;
  for (let from = 0; from + longest < wordSequence.length; from++)
    while (from + longest < wordSequence.length && normalised.includes(` ${wordSequence.slice(from, from + longest + 1).join(" ")} `))
      longest++;
  return longest < PHRASE_WORDS ? 0 : longest / wordSequence.length;
}

function hasRun(present: readonly boolean[]): boolean {
  let run = 0;
  return present.some((is) => {
    run = is ? run + 1 : 0;
    return run === PHRASE_WORDS;
  });
}

const NOT_A_WORD = /[^\p{L}\p{N}_]+/gu;

function isOnlyDeclared({ kind }: CodeOutline, text: string): boolean {
  return kind === "interface" || kind === "type" || (!text.includes("{") && text.trimEnd().endsWith(";"));
}

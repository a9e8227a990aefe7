import type { CodeOutline } from "../model/code-index.ts";
import { identifierParts } from "../text/words.ts";
import { type PathRole, pathRoles } from "./path-role.ts";
import { type CodeQuery, foldName } from "./query.ts";

export interface RankInput {
  readonly chunk: CodeOutline;
  /** 0…1, from words and meaning. */
  readonly fused: number;
  /** It defines a name that the query names. */
  readonly defines: boolean;
}

/** With its score as far as it can be told without the text, and by how much its file puts it down. */
export interface RankedOutline extends RankInput {
  readonly sum: number;
  readonly factor: number;
}

export interface RankedChunk extends RankInput {
  readonly score: number;
}

/** Chosen on one half of the questions of `npm run bench -- code-recall`, and round on purpose: near them the scores hardly change. */
const DEFINITION = 0.6;
const FILE_NAMED_SO = 0.2;
/** The chunk is something else and has the name somewhere inside, such as a class that declares the method. */
const DEFINED_WITHIN = 0.7;
/** A name inside a sentence is meant less strictly than one that stands alone. */
const IN_A_SENTENCE = 0.5;
const PATH_WORDS = 0.25;
const NAME_WORDS = 0.2;
const PHRASE = 0.4;
const SUBSTANCE = 0.1;
const COMPANY = 0.4;
const FURTHER_CHUNK = 0.5;
/** It says that something is there, not how it works. */
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

/** Two words after each other are often chance; three are what somebody pasted. */
const PHRASE_WORDS = 3;
/** Longer chunks are a line of a bundle; nobody's message is in the rest of it, and reading it all would take seconds. */
const PHRASE_CHARS = 10_000;
/** Shorter than this a chunk has little to say: a getter, a destructor. */
const SUBSTANCE_LINES = 10;

/** The candidates in the order that can be told without their texts. `wanted`: kinds of files that are not to be put down. */
export function rankOutlines(query: CodeQuery, candidates: readonly RankInput[], wanted: ReadonlySet<PathRole>): RankedOutline[] {
  const ofFile = fileSignals(query, wanted);
  const outlined = candidates.map((candidate) => {
    const { chunk, fused, defines } = candidate;
    const { pathWords, namedSo, factor } = ofFile(chunk.path);
    let sum = fused + PATH_WORDS * pathWords + NAME_WORDS * nameWords(query, chunk);
    sum += SUBSTANCE * Math.min(1, (chunk.endLine - chunk.startLine + 1) / SUBSTANCE_LINES);
    if (defines) {
      const isIt = chunk.name === undefined || query.names.includes(chunk.name);
      sum += (DEFINITION + (namedSo ? FILE_NAMED_SO : 0)) * (isIt ? 1 : DEFINED_WITHIN) * (query.bare ? 1 : IN_A_SENTENCE);
    }
    return { ...candidate, sum, factor };
  });
  return outlined.sort((a, b) => b.sum * b.factor - a.sum * a.factor || inFiles(a.chunk, b.chunk));
}

/** The order in which a person would want to see the candidates. `textOf` knows the texts of those that may come first. */
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
  return saturate(inCompany(scored).sort(best));
}

/** What the path says about a chunk, worked out once for each file. */
function fileSignals(query: CodeQuery, wanted: ReadonlySet<PathRole>) {
  const known = new Map<string, { readonly pathWords: number; readonly namedSo: boolean; readonly factor: number }>();
  return (path: string) => {
    let signals = known.get(path);
    if (!signals) {
      const [file = "", folder = ""] = path.split("/").toReversed();
      let factor = 1;
      for (const role of pathRoles(path)) if (!wanted.has(role) && !query.roles.has(role)) factor *= FACTOR[role];
      signals = {
        pathWords: shareOf(query.words, [file.replace(/\.[^.]*$/, ""), folder]),
        namedSo: query.names.some((name) => foldName(file.split(".", 1)[0]!) === foldName(name)),
        factor,
      };
      known.set(path, signals);
    }
    return signals;
  };
}

/** A file with several good places is more likely the right one: its best place is lifted by the two after it. */
function inCompany(scored: readonly RankedChunk[]): RankedChunk[] {
  const byFile = new Map<string, RankedChunk[]>();
  for (const one of scored) {
    const same = byFile.get(one.chunk.path);
    if (same) same.push(one);
    else byFile.set(one.chunk.path, [one]);
  }
  return [...byFile.values()].flatMap((same) => {
    const [first, ...rest] = same.sort(best);
    const company = ((rest[0]?.score ?? 0) + (rest[1]?.score ?? 0)) / 2;
    return [{ ...first!, score: first!.score + COMPANY * company }, ...rest];
  });
}

/** Each further chunk of the same file counts half of the one before, so that the first answers show several files. */
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
  return b.score - a.score || inFiles(a.chunk, b.chunk);
}

function inFiles(a: CodeOutline, b: CodeOutline): number {
  if (a.path !== b.path) return a.path < b.path ? -1 : 1;
  return a.index - b.index;
}

/** How many of the query's words the chunk's own name has; where several small definitions share a chunk, their names. */
function nameWords({ words }: CodeQuery, { name, defines }: CodeOutline): number {
  return shareOf(words, name === undefined ? defines : [name]);
}

/** How many of the words are parts of these names, 0…1; a beginning of four letters or more counts as well. */
function shareOf(words: readonly string[], names: readonly string[]): number {
  const lower = names.join(" ").toLowerCase();
  const likely = words.filter((word) => lower.includes(word.slice(0, 4)));
  if (likely.length === 0) return 0; // most names: taking them apart is what takes time
  const parts = names.flatMap((name) => name.split(/[^\p{L}\p{N}_$]+/u)).flatMap(identifierParts);
  const alike = (word: string, part: string) =>
    word === part || (part.length >= 4 && word.startsWith(part)) || (word.length >= 4 && part.startsWith(word));
  return likely.filter((word) => parts.some((part) => alike(word, part))).length / words.length;
}

/** How much of the query stands in the text word for word, 0…1: an error message out of a log is found by most of it. */
function pastedShare({ spoken }: CodeQuery, text: string): number {
  if (spoken.length < PHRASE_WORDS) return 0;
  const lower = text.slice(0, PHRASE_CHARS).toLowerCase();
  if (!hasRun(spoken.map((word) => lower.includes(word)))) return 0; // most texts: taking them apart is what takes time
  const said = ` ${lower.replace(NOT_SPOKEN, " ")} `;
  let longest = PHRASE_WORDS - 1;
  for (let from = 0; from + longest < spoken.length; from++)
    while (from + longest < spoken.length && said.includes(` ${spoken.slice(from, from + longest + 1).join(" ")} `)) longest++;
  return longest < PHRASE_WORDS ? 0 : longest / spoken.length;
}

function hasRun(present: readonly boolean[]): boolean {
  let run = 0;
  return present.some((is) => {
    run = is ? run + 1 : 0;
    return run === PHRASE_WORDS;
  });
}

const NOT_SPOKEN = /[^\p{L}\p{N}_]+/gu;

function isOnlyDeclared({ kind }: CodeOutline, text: string): boolean {
  return kind === "interface" || kind === "type" || (!text.includes("{") && text.trimEnd().endsWith(";"));
}

import type { CodeChunk } from "../model/code-index.ts";
import { identifierParts } from "../text/words.ts";
import { type PathRole, pathRoles } from "./path-role.ts";
import type { CodeQuery } from "./query.ts";

export interface RankInput {
  readonly chunk: CodeChunk;
  /** 0…1, from words and meaning. */
  readonly fused: number;
  /** It defines a name that the query names. */
  readonly defines: boolean;
}

export interface RankedChunk extends RankInput {
  readonly score: number;
}

/** The signals are those known to matter in code search. The figures are a first choice, not yet measured on a labelled set. */
const DEFINITION = 0.6;
const FILE_NAMED_SO = 0.2;
const PATH_WORDS = 0.25;
const COHERENCE = 0.05;
const FURTHER_CHUNK = 0.5;
const FACTOR: Readonly<Record<PathRole, number>> = {
  test: 0.5,
  example: 0.6,
  vendored: 0.4,
  generated: 0.3,
  legacy: 0.6,
  declarations: 0.85,
  entry: 0.8,
};

/** The order in which a person would want to see the candidates. `wanted`: kinds of files that are not to be put down. */
export function rankCode(query: CodeQuery, candidates: readonly RankInput[], wanted: ReadonlySet<PathRole>): RankedChunk[] {
  const perFile = new Map<string, number>();
  for (const { chunk, fused } of candidates) if (fused > 0.3) perFile.set(chunk.path, (perFile.get(chunk.path) ?? 0) + 1);
  const scored = candidates.map((candidate) => {
    const { chunk, fused, defines } = candidate;
    let score = fused + PATH_WORDS * pathMatch(query, chunk.path) + COHERENCE * Math.log2(Math.max(1, perFile.get(chunk.path) ?? 0));
    if (defines) {
      const named = query.names.some((name) => stemOf(chunk.path) === fold(name));
      score += (DEFINITION + (named ? FILE_NAMED_SO : 0)) * (query.bare ? 1 : 0.5);
    }
    for (const role of pathRoles(chunk.path)) if (!wanted.has(role) && !query.roles.has(role)) score *= FACTOR[role];
    return { ...candidate, score };
  });
  return saturate(scored.sort(best));
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
  if (a.score !== b.score) return b.score - a.score;
  if (a.chunk.path !== b.chunk.path) return a.chunk.path < b.chunk.path ? -1 : 1;
  return a.chunk.index - b.chunk.index;
}

/** How many of the query's words the file's name and its folder have, 0…1; a beginning of four letters or more counts as well. */
function pathMatch({ words }: CodeQuery, path: string): number {
  if (words.length === 0) return 0;
  const [name = "", folder = ""] = path.split("/").toReversed();
  const parts = [name.replace(/\.[^.]*$/, ""), folder].flatMap((part) => part.split(/[^\p{L}\p{N}_$]+/u)).flatMap(identifierParts);
  const alike = (word: string, part: string) =>
    word === part || (part.length >= 4 && word.startsWith(part)) || (word.length >= 4 && part.startsWith(word));
  return words.filter((word) => parts.some((part) => alike(word, part))).length / words.length;
}

function stemOf(path: string): string {
  return fold(path.slice(path.lastIndexOf("/") + 1).replace(/\..*$/, ""));
}

function fold(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

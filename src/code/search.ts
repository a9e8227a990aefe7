import type { CodeKind } from "../model/code-chunk.ts";
import type { CodeChunk, DefinitionSite } from "../model/code-index.ts";
import type { CodeFilter, CodeStore } from "../ports/code-store.ts";
import type { Match } from "../recall/fuse.ts";
import {
  type Found,
  type Ranking,
  type RescoredHits,
  type SearchDeps,
  type SearchMode,
  searchRecords,
  type Weights,
} from "../recall/search.ts";
import { estimateTokens, withinBudget } from "../text/estimate-tokens.ts";
import { excerpt } from "./excerpt.ts";
import { findPlaces, questionText, readLongQuery } from "./long-question.ts";
import { type CodeQuery, isLongQuestion, type PathRole, readQuery } from "./query.ts";
import { rankOutlines, rankTexts } from "./rank.ts";
import { selectOwned } from "./structure/symbol-path.ts";

export interface CodeSearch extends CodeFilter {
  readonly query: string;
  readonly topK: number;
  readonly mode?: SearchMode | undefined;
  /** Roles of files that keep their full score. */
  readonly include?: readonly PathRole[] | undefined;
  /** Lines to show before and after each hit. */
  readonly contextLines?: number | undefined;
  /** Approximate tokens of all hits together; at least one hit is returned. */
  readonly maxTokens?: number | undefined;
}

export interface CodeHit {
  readonly path: string;
  /** Lines of the hit itself; `text` starts at `textStartLine`. */
  readonly startLine: number;
  readonly endLine: number;
  readonly textStartLine: number;
  readonly text: string;
  readonly language: string;
  readonly kind: CodeKind;
  readonly name?: string | undefined;
  readonly parents: readonly string[];
  /** Score relative to the best hit of this answer, which has 1. */
  readonly score: number;
  readonly found: Found & { readonly definition?: true | undefined };
  /** Hash of the file when it was indexed, so that a client with the file can detect a stale hit. */
  readonly contentHash: string;
  readonly indexedAt: string;
}

export interface CodeAnswer {
  readonly hits: readonly CodeHit[];
  /** How well the best chunks answer the query; `high` for the definition of a name in it. */
  readonly match: Match;
  /** How both rankings were weighted; absent where one stood alone. */
  readonly weights?: Weights | undefined;
  /** What the search had to do without; empty when nothing was missing. */
  readonly degraded: readonly string[];
  readonly model?: string | undefined;
  /** Hits that did not fit into `maxTokens`. */
  readonly omitted: number;
}

/** Limit of definitions that are read for a common name, and limit of those ranked. */
const DEFINITIONS_READ = 300;
const DEFINITIONS_MAX = 50;
/** Fewest candidates of the semantic ranking. A chunk further down is a candidate only if a keyword found it too. */
const SEMANTIC_CANDIDATES = 100;
/** Fused candidates that are ranked by their outlines; the right one is hardly ever further down. */
const CANDIDATES = 120;
/** Candidates whose texts are compared with the query. */
const TEXTS = 120;
/** Code shares many names with the questions about it, so keywords count more here than in prose. */
const SEMANTIC_WEIGHT = 0.7;

/** The index of one project. */
export interface ProjectCode {
  readonly projectPath: string;
  readonly store: CodeStore;
}

/** Searches code by vector, keyword and symbol, and ranks the chunks with `rankOutlines` and `rankTexts`. */
export async function searchCode(
  deps: SearchDeps,
  { projectPath, store }: ProjectCode,
  search: CodeSearch,
  signal: AbortSignal | undefined,
): Promise<CodeAnswer> {
  const { query, topK, mode = "hybrid", include = [], contextLines = 0, maxTokens, ...filter } = search;
  const { hits, match, weights, degraded, version } = await searchRecords(deps, {
    ...{ collection: "code", database: projectPath, store, query, filter, mode, signal },
    topK: Math.max(40, topK),
    semanticLimit: mode === "hybrid" ? Math.max(SEMANTIC_CANDIDATES, topK * 2) : undefined,
    maxSemanticWeight: SEMANTIC_WEIGHT,
    rewrite: (text) => (isLongQuestion(text) ? questionText(text) : text),
    rescoreAndRead: (ranking) => rankChunks(store, ranking, { topK, mode, include, contextLines }),
  });
  const defines = hits[0]?.found.definition === true;
  return { ...fitHits(hits, maxTokens), match: defines ? "high" : match, weights, degraded, model: version?.model };
}

interface RankOptions {
  readonly topK: number;
  readonly mode: SearchMode;
  readonly include: readonly PathRole[];
  readonly contextLines: number;
}

/** Reads candidates and definitions, ranks them by outline, and the best of them by text. */
async function rankChunks(
  store: CodeStore,
  { query, filter, order, fused: hasBoth, signals, weight, cosine, found }: Ranking<CodeFilter>,
  { topK, mode, include, contextLines }: RankOptions,
): Promise<RescoredHits<CodeHit>> {
  const long = isLongQuestion(query) ? readLongQuery(query) : undefined;
  const asked = long ?? readQuery(query);
  const places = long && mode !== "semantic" ? await findPlaces(store, long.split, filter) : undefined;
  // A definition counts even where neither ranking found it, except in `semantic` mode.
  const definitions = mode === "semantic" || asked.names.length === 0 ? [] : await store.definitions(asked.names, filter, DEFINITIONS_READ);
  const defining = new Set(
    selectMeant(asked, definitions)
      .slice(0, DEFINITIONS_MAX)
      .map(({ chunkId }) => chunkId),
  );
  const best = order.slice(0, Math.max(CANDIDATES, topK * 2));
  const fused = new Map(best.map(({ id, score }) => [id, score]));
  const wanted = [...new Set([...fused.keys(), ...defining, ...(places?.chunks.keys() ?? [])])];
  const chunks = await store.getMany(wanted);
  const candidates = rankOutlines(
    asked,
    chunks.map((chunk) => ({
      ...{ chunk, fused: fused.get(chunk.id) ?? 0, cosine: cosine(chunk.id), defines: defining.has(chunk.id) },
      boost: places && Math.max(places.chunks.get(chunk.id) ?? 0, places.files.get(chunk.path) ?? 0),
    })),
    new Set(include),
  );
  const ranked = rankTexts(asked, candidates.slice(0, Math.max(TEXTS, topK * 2))).slice(0, topK);
  const whyFound = (id: string) => ({ ...found(id), ...(defining.has(id) && { definition: true as const }) });
  return {
    hits: await toHits(store, ranked, whyFound, contextLines),
    // A file that was indexed after the ranking has other chunks now, which this ranking lacks.
    incomplete: chunks.length < wanted.length,
    weights: hasBoth ? { ...signals, semantic: weight } : undefined,
  };
}

/** Returns, of the definitions of `a.b`, those inside of an `a`, or all if there are none. */
function selectMeant({ owners }: CodeQuery, definitions: readonly DefinitionSite[]): readonly DefinitionSite[] {
  const owned = new Map(
    [...owners].map(([name, owner]) => [
      name,
      selectOwned(
        owner,
        definitions.filter((site) => site.name === name),
      ),
    ]),
  );
  return definitions.filter((site) => {
    const meant = owned.get(site.name) ?? [];
    return meant.length === 0 || meant.includes(site);
  });
}

export async function toHits(
  store: CodeStore,
  ranked: readonly { readonly chunk: CodeChunk; readonly score: number }[],
  found: (id: string) => CodeHit["found"],
  contextLines: number,
): Promise<CodeHit[]> {
  const top = ranked[0]?.score ?? 0;
  const files = new Map<string, readonly CodeChunk[]>();
  const hits: CodeHit[] = [];
  for (const { chunk, score } of ranked) {
    const { id, path, startLine, endLine, language, kind, name, parents, contentHash, indexedAt } = chunk;
    let lines = { startLine, text: chunk.text.replace(/\n$/, "") };
    if (contextLines > 0) {
      const whole = files.get(path) ?? (await store.chunksOf(path));
      files.set(path, whole);
      // In another generation the lines may differ: then the hit is shown without its surroundings.
      if (whole[0]?.generation === chunk.generation) lines = excerpt(whole, startLine - contextLines, endLine + contextLines) ?? lines;
    }
    const relative = top > 0 ? score / top : 0;
    const names = { language, kind, ...(name !== undefined && { name }), parents };
    hits.push({
      path,
      startLine,
      endLine,
      textStartLine: lines.startLine,
      text: lines.text,
      ...names,
      score: relative,
      found: found(id),
      contentHash,
      indexedAt,
    });
  }
  return hits;
}

function fitHits(hits: readonly CodeHit[], maxTokens: number | undefined): { hits: readonly CodeHit[]; omitted: number } {
  if (maxTokens === undefined) return { hits, omitted: 0 };
  const fitting = withinBudget(hits, maxTokens, ({ text, path }) => estimateTokens(text) + estimateTokens(path) + 10);
  return { hits: fitting, omitted: hits.length - fitting.length };
}

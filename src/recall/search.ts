import type { DamagedRecord } from "../model/damaged-record.ts";
import { CairnError } from "../model/errors.ts";
import type { Embedder } from "../ports/embedder.ts";
import type { CollectionName, Embedders } from "../ports/embedders.ts";
import type { EmbeddingStore, EmbeddingVersion, VectorSpace } from "../ports/embedding-store.ts";
import type { CandidateQuery, Candidates, Ranked, RecallStore } from "../ports/recall-store.ts";
import type { Redact } from "../text/redact.ts";
import type { Backfiller } from "./backfiller.ts";
import { embedWithin } from "./embed-records.ts";
import { asksForRecent, type Candidate, fuse, judgeMatch, keywordLead, type Match, type Signals, semanticWeight } from "./fuse.ts";

export type SearchMode = "hybrid" | "semantic" | "keyword";

export interface SearchDeps {
  readonly embedders: Embedders;
  readonly backfiller: Backfiller;
  /** Removes secrets from the query, as the stored texts had theirs removed. */
  readonly redact: Redact;
}

/** One search of one collection. Capabilities differ only in these values. */
export interface SearchRequest<Filter extends object, HitType> {
  readonly collection: CollectionName;
  /** The database that holds the collection. */
  readonly database: string;
  readonly store: RecallStore<Filter>;
  readonly query: string;
  /** Times may have any offset. */
  readonly filter: Filter;
  readonly mode?: SearchMode | undefined;
  /** Wanted hits; decides how many candidates each ranking returns. */
  readonly topK: number;
  /** Candidates of the semantic ranking, where fewer than of the keyword ranking suffice. */
  readonly semanticLimit?: number | undefined;
  /** Largest weight of the semantic ranking, 0…1. Set for code; records are weighted by `recordWeight` after the first fusion. */
  readonly maxSemanticWeight?: number | undefined;
  /** Rewrites the redacted query before it is embedded and matched. */
  readonly rewrite?: ((query: string) => string) | undefined;
  /** Reads the ranked records, rescores them where the capability has more to rank by, and returns the hits. */
  readonly rescoreAndRead: (ranking: Ranking<Filter>) => Promise<RescoredHits<HitType>>;
  readonly signal?: AbortSignal | undefined;
}

/** Rank and score of a record in each ranking that found it. */
export interface Found {
  readonly semantic?: { readonly rank: number; readonly score: number } | undefined;
  readonly keyword?: { readonly rank: number; readonly score: number } | undefined;
}

/** The fused ranking of one attempt. */
export interface Ranking<Filter> {
  /** The query without secrets, before `rewrite`. */
  readonly query: string;
  /** The filter with its times in UTC. */
  readonly filter: Filter;
  /** Fused scores, best first. */
  readonly order: readonly Ranked[];
  readonly candidates: readonly Candidate[];
  /** True where both rankings exist, so that their weights matter. */
  readonly fused: boolean;
  readonly signals: Omit<Signals, "codeShare">;
  /** Weight of the semantic ranking in `order`, 0…1. */
  readonly weight: number;
  readonly cosine: (id: string) => number | undefined;
  readonly found: (id: string) => Found;
  /** Returns the cosines of texts to the query by a second model; `undefined` where there is none. */
  readonly secondCosines?: ((texts: readonly string[]) => Promise<readonly number[] | undefined>) | undefined;
  /** The embedding version of the semantic ranking; absent if keywords alone were ranked. */
  readonly version?: EmbeddingVersion | undefined;
}

export interface RescoredHits<HitType> {
  readonly hits: readonly HitType[];
  /** Records that were found and cannot be read. */
  readonly damaged?: readonly DamagedRecord[];
  /** True if a ranked record was replaced before it was read, so the ranking must be repeated. */
  readonly incomplete?: boolean;
  /** How both rankings were weighted; absent where one stood alone. */
  readonly weights?: Weights | undefined;
}

/** The weights of a hybrid search and the measurements that led to them. */
export interface Weights extends Omit<Signals, "codeShare"> {
  /** Weight of the semantic ranking, 0…1; the keyword ranking has the rest. */
  readonly semantic: number;
  /** Share of code punctuation in the best records; absent for code. */
  readonly codeShare?: number | undefined;
  /** The part of its neighbour's score that a record got; absent for code. */
  readonly neighbours?: number | undefined;
  /** True if newer records were preferred, because the query asks for the state of the work; absent for code. */
  readonly recent?: boolean | undefined;
}

export interface SearchAnswer<HitType> {
  readonly hits: readonly HitType[];
  /** How well the best records answer the query. */
  readonly match: Match;
  readonly weights?: Weights | undefined;
  /** What the search had to do without; empty when nothing was missing. */
  readonly degraded: readonly string[];
  /** Records that were found and cannot be read. */
  readonly damaged: readonly DamagedRecord[];
  /** The embedding version of the semantic ranking; absent if keywords alone were ranked. */
  readonly version?: EmbeddingVersion | undefined;
}

/** Milliseconds that a search waits for the query's vector before it continues with keywords alone. */
const QUERY_EMBED_MS = 4_000;
/** Attempts of one search while records or the embedding version change under it. The last attempt returns what it has and reports it. */
const ATTEMPTS = 10;

/**
 * Searches a collection. This is the only entry to search, for checkpoints, knowledge and code: it removes secrets from the query,
 * brings the filter's times to UTC, embeds the query within a bounded time, requests a backfill for records without a vector, fuses
 * the semantic and the keyword ranking, and starts again, a bounded number of times, when a ranked record was replaced meanwhile.
 */
export async function searchRecords<Filter extends object, HitType>(
  { embedders, backfiller, redact }: SearchDeps,
  request: SearchRequest<Filter, HitType>,
): Promise<SearchAnswer<HitType>> {
  const { collection, database, store, mode = "hybrid", rewrite, rescoreAndRead, signal } = request;
  const query = redact(request.query).text;
  const text = rewrite?.(query) ?? query;
  const filter = utcTimes(request.filter);
  const backfillName = `${collection} ${database}`;
  backfiller.scheduleOnce(backfillName, store.embeddings); // an earlier process may have ended before it embedded every record
  let embedded: EmbeddedQuery = {};
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    if (mode !== "keyword") embedded = await embedQuery(store, embedders, text, { earlier: embedded, signal });
    const { vector, failure } = embedded;
    if (mode === "semantic" && failure !== undefined)
      throw new CairnError("unavailable", `Semantic search is not possible now: ${failure}. Use mode "hybrid" or "keyword".`);
    const ranked = await rankCandidates({ ...request, mode, filter, query: text }, vector);
    if (ranked.lacksVector) backfiller.schedule(backfillName, store.embeddings);
    const {
      hits,
      damaged = [],
      incomplete,
      weights,
    } = await rescoreAndRead({
      ...{ ...ranked.ranking, query, filter, version: vector?.version },
      secondCosines: (texts) => secondCosines(embedders, vector?.version, [text, ...texts], signal),
    });
    const changed = ranked.incomplete || incomplete === true;
    if (changed && attempt < ATTEMPTS) continue;
    const degraded = [
      ...(failure === undefined ? [] : [`${failure}, so only keywords were searched`]),
      ...(ranked.degraded === undefined ? [] : [ranked.degraded]),
      ...(changed ? ["records changed during the search, so some may be missing"] : []),
    ];
    return { hits, match: hits.length === 0 ? "none" : ranked.match, degraded, damaged, version: vector?.version, weights };
  }
}

type QueryVector = NonNullable<CandidateQuery<unknown>["semantic"]> & { readonly version: EmbeddingVersion; readonly coverage: number };

/** The query's vector, or why there is none. Neither where nothing was ever embedded: then keywords are all there is. */
interface EmbeddedQuery {
  readonly version?: EmbeddingVersion | undefined;
  readonly vector?: QueryVector | undefined;
  readonly failure?: string | undefined;
}

/** A text with its vector in one space. */
export interface EmbeddedText {
  readonly space: VectorSpace;
  readonly vector: Float32Array;
}

/** Embeds a query, without secrets and within a bounded time; `undefined` if the embedder does not answer. */
export async function embedText(
  { redact }: Pick<SearchDeps, "redact">,
  embedder: Embedder,
  query: string,
  signal: AbortSignal | undefined,
): Promise<EmbeddedText | undefined> {
  const { vectors } = await embedWithin(embedder, [redact(query).text], { timeoutMs: QUERY_EMBED_MS, purpose: "query", signal });
  return vectors && { space: embedder, vector: vectors[0]! };
}

/** Embeds the query for the current version, or returns the outcome of an earlier attempt for the same version. */
async function embedQuery(
  { embeddings }: RecallStore<never>,
  embedders: Embedders,
  text: string,
  { earlier, signal }: { readonly earlier: EmbeddedQuery; readonly signal?: AbortSignal | undefined },
): Promise<EmbeddedQuery> {
  const version = await currentVersion(embeddings);
  if (!version || version.versionId === earlier.version?.versionId) return version ? earlier : {};
  const { versionId, model } = version;
  const embedder = await embedders.serving(version);
  if (!embedder) return { version, failure: `the model ${model} of the stored vectors is not available here` };
  const { vectors, failure } = await embedWithin(embedder, [text], { timeoutMs: QUERY_EMBED_MS, purpose: "query", signal });
  if (!vectors) return { version, failure: `the embedding model ${model} did not answer (${failure})` };
  // The weight is an improvement, not a condition: a vocabulary that cannot be read fails no search.
  const coverage = (await embedder.coverage?.(text).catch(() => 1)) ?? 1;
  return { version, vector: { versionId, vector: vectors[0]!, version, coverage } };
}

/** The model that gets a second opinion, and the name of the one that gives it. Larger models need none. */
const SECOND_MODEL = { of: "all-MiniLM-L6-v2", by: "static" };
/** Milliseconds that a search waits for the second opinion, and characters of a text that it reads. */
const SECOND_MS = 500;
const SECOND_CHARS = 2_000;

/** Returns the cosines of a query to texts by a second model; `undefined` if it has none or does not answer in time. */
async function secondCosines(
  embedders: Embedders,
  version: EmbeddingVersion | undefined,
  [query = "", ...texts]: readonly string[],
  signal: AbortSignal | undefined,
): Promise<readonly number[] | undefined> {
  if (version?.model !== SECOND_MODEL.of || !embedders.names.includes(SECOND_MODEL.by)) return undefined;
  const embedder = await embedders.named(SECOND_MODEL.by).catch(() => undefined);
  if (!embedder) return undefined;
  const read = [query, ...texts].map((text) => text.slice(0, SECOND_CHARS));
  const { vectors } = await embedWithin(embedder, read, { timeoutMs: SECOND_MS, purpose: "document", signal });
  const [asked, ...others] = vectors ?? [];
  return asked && others.map((vector) => vector.reduce((sum, value, index) => sum + value * asked[index]!, 0));
}

async function currentVersion(embeddings: EmbeddingStore): Promise<EmbeddingVersion | undefined> {
  return (await embeddings.versions()).find(({ isCurrent }) => isCurrent);
}

interface RankedCandidates {
  readonly ranking: Pick<Ranking<unknown>, "order" | "candidates" | "fused" | "signals" | "weight" | "cosine" | "found">;
  readonly match: Match;
  /** A candidate has no vector, although the query has one. */
  readonly lacksVector: boolean;
  /** Records or versions were replaced during the ranking. */
  readonly incomplete: boolean;
  readonly degraded?: string | undefined;
}

/** Ranks the candidates by vector and by keywords, and fuses both rankings. */
async function rankCandidates<Filter extends object>(
  { store, query, filter, mode, topK, semanticLimit, maxSemanticWeight, signal }: SearchRequest<Filter, unknown>,
  vector: QueryVector | undefined,
): Promise<RankedCandidates> {
  const limit = Math.min(500, Math.max(100, topK * 5));
  const text = mode === "semantic" ? undefined : query;
  const candidates = await store.candidates({ filter, limit, semanticLimit, text, semantic: vector, signal });
  const { keyword, semantic, degraded } = candidates;
  // Without a single semantic candidate the version may have been dropped while the query was being embedded.
  const versionDropped = vector && semantic.length === 0 && (await currentVersion(store.embeddings))?.versionId !== vector.versionId;
  const scored = await scoreCandidates(store, vector, candidates);
  const cosines = new Map(scored.map(({ id, cosine }) => [id, cosine]));
  const semanticRanks = ranksOf(semantic);
  const keywordRanks = ranksOf(keyword);
  const weight = semanticWeight(query, keyword, maxSemanticWeight);
  return {
    ranking: {
      order: fuse(scored, weight),
      weight,
      candidates: scored,
      fused: mode === "hybrid" && semantic.length > 0,
      signals: { coverage: vector?.coverage ?? 1, keywordLead: keywordLead(keyword), matched: keyword[0]?.matched ?? 1 },
      cosine: (id) => cosines.get(id),
      found: (id) => ({ semantic: semanticRanks.get(id), keyword: keywordRanks.get(id) }),
    },
    match: asksForRecent(query)
      ? "medium"
      : judgeMatch({
          cosine: vector && (semantic[0]?.score ?? 0),
          coverage: vector?.coverage ?? 1,
          matched: text === undefined ? undefined : (keyword[0]?.matched ?? 0),
          model: vector?.version.model,
        }),
    lacksVector: vector !== undefined && scored.some(({ cosine }) => cosine === undefined),
    incomplete: candidates.incomplete === true || versionDropped === true,
    degraded,
  };
}

/** Adds the cosine to candidates that only a keyword found, so that both parts of the fused score are known. */
async function scoreCandidates(
  store: Pick<RecallStore<never>, "similarities">,
  vector: QueryVector | undefined,
  { keyword, semantic, similarities }: Candidates,
): Promise<Candidate[]> {
  const cosines = new Map([...(similarities ?? []), ...semantic.map(({ id, score }) => [id, score] as const)]);
  const keywordScores = new Map(keyword.map(({ id, score }) => [id, score]));
  if (vector && !similarities) {
    const unknown = keyword.filter(({ id }) => !cosines.has(id)).map(({ id }) => id);
    for (const [id, score] of await store.similarities(vector.versionId, vector.vector, unknown)) cosines.set(id, score);
  }
  const keys = new Map([...semantic, ...keyword].map(({ id, key }) => [id, key]));
  const ids = new Set([...cosines.keys(), ...keywordScores.keys()]);
  return [...ids].map((id) => ({ id, cosine: cosines.get(id), keyword: keywordScores.get(id), key: keys.get(id) }));
}

function ranksOf(ranking: readonly Ranked[]): ReadonlyMap<string, { readonly rank: number; readonly score: number }> {
  return new Map(ranking.map(({ id, score }, index) => [id, { rank: index + 1, score }]));
}

/** Fields of filters that hold a time. */
const TIME_FIELDS = ["createdFrom", "createdBefore", "changedSince"] as const;

/** Returns the filter with its times in UTC with milliseconds, as they are stored and compared. A caller may give any offset. */
export function utcTimes<Filter extends object>(filter: Filter): Filter {
  const times: Record<string, string> = {};
  for (const field of TIME_FIELDS) {
    const value = (filter as Record<string, unknown>)[field];
    if (value === undefined) continue;
    const time = new Date(value as string);
    if (Number.isNaN(time.getTime())) throw new CairnError("invalid_input", `${field}: not a time. Use one such as 2026-01-31T00:00:00Z.`);
    times[field] = time.toISOString();
  }
  return { ...filter, ...times };
}

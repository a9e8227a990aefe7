import type { DamagedRecord } from "../model/damaged-record.ts";
import { CairnError } from "../model/errors.ts";
import { newestFirst } from "../model/record-order.ts";
import type { Embedders } from "../ports/embedders.ts";
import type { EmbeddingStore, EmbeddingVersion } from "../ports/embedding-store.ts";
import type { Candidates, Ranked, RecallStore, RecordStore } from "../ports/recall-store.ts";
import { embedWithin } from "./embed-within.ts";
import { type Candidate, fuse } from "./fuse.ts";
import { meaningWeight } from "./weights.ts";

export type SearchMode = "hybrid" | "semantic" | "keyword";

export interface RecallQuery<Filter> {
  readonly query: string;
  readonly topK: number;
  readonly filter: Filter;
  readonly mode?: SearchMode | undefined;
  /** How many of the ranking by meaning to look at, where fewer than of the one by words will do. */
  readonly nearest?: number | undefined;
  /** How much the ranking by meaning counts at most, 0…1, where it is not what suits prose. */
  readonly meaning?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Why a record is among the answers: its place in each ranking that found it. */
export interface Found {
  readonly meaning?: { readonly rank: number; readonly score: number } | undefined;
  readonly words?: { readonly rank: number; readonly score: number } | undefined;
}

export interface Hit<RecordType> {
  readonly record: RecordType;
  /** Cosine, clamped to 0…1; 0 where the record has no vector yet. */
  readonly score: number;
  readonly found: Found;
}

export interface RecallAnswer<RecordType> {
  readonly hits: readonly Hit<RecordType>[];
  /** What was missing, in words a person understands; empty when nothing was. */
  readonly degraded: readonly string[];
  /** Records that were found and could not be read. */
  readonly damaged: readonly DamagedRecord[];
  /** The model that the ranking by meaning used. */
  readonly model?: string | undefined;
}

/** How long a search waits for the query's vector before it goes on with words alone. */
const QUERY_EMBED_MS = 4_000;

/** Both rankings over the same filter, fused. */
export interface FusedCandidates {
  /** Best first. */
  readonly order: readonly Ranked[];
  readonly cosine: (id: string) => number | undefined;
  readonly found: (id: string) => Found;
  readonly degraded: readonly string[];
  readonly model?: string | undefined;
}

export async function fusedCandidates<Filter>(
  store: RecallStore<Filter>,
  embedders: Embedders,
  asked: RecallQuery<Filter>,
): Promise<FusedCandidates> {
  const { query, topK, filter, mode = "hybrid", nearest, meaning, signal } = asked;
  const degraded: string[] = [];
  const dense = mode === "keyword" ? undefined : await queryVector(store.embeddings, embedders, query, degraded, signal);
  if (mode === "semantic" && !dense && degraded.length > 0)
    throw new CairnError("unavailable", `Search by meaning is not possible now: ${degraded.join("; ")}. Use mode "hybrid" or "keyword".`);

  const limit = Math.min(500, Math.max(100, topK * 5));
  const words = mode === "semantic" ? undefined : query;
  const candidates = await store.candidates({ filter, limit, semanticLimit: nearest, text: words, semantic: dense, signal });
  const { keyword, semantic: near, degraded: trouble } = candidates;
  if (trouble !== undefined) degraded.push(trouble);
  // The version was dropped while the query was being embedded: ask again with the one that took its place.
  if (dense && near.length === 0 && !(await isCurrent(store.embeddings, dense.versionId))) return fusedCandidates(store, embedders, asked);
  const both = await withSimilarities(store, dense, candidates);
  const cosine = new Map(both.map((candidate) => [candidate.id, candidate.cosine]));
  const rankOf = (ranking: readonly Ranked[]) => new Map(ranking.map(({ id, score }, index) => [id, { rank: index + 1, score }]));
  const meaningRanks = rankOf(near);
  const wordRanks = rankOf(keyword);
  return {
    order: fuse(both, dense ? meaningWeight(query, keyword, meaning) : 0),
    cosine: (id) => cosine.get(id),
    found: (id) => ({ meaning: meaningRanks.get(id), words: wordRanks.get(id) }),
    degraded,
    model: dense?.version.model,
  };
}

/** One search for the collections of records: each hit with its reason, newer ones first among equals. */
export async function recall<RecordType extends { readonly id: string; readonly createdOrder: string }, Filter>(
  store: RecordStore<RecordType, Filter>,
  embedders: Embedders,
  asked: RecallQuery<Filter>,
): Promise<RecallAnswer<RecordType>> {
  const { topK } = asked;
  const { order, cosine, found, degraded, model } = await fusedCandidates(store, embedders, asked);
  const read = await store.getMany(order.slice(0, topK * 2).map(({ id }) => id));
  const records = new Map(read.records.map((record) => [record.id, record]));
  const hits = order
    .flatMap(({ id, score }) => {
      const record = records.get(id);
      return record ? [{ record, fused: score }] : [];
    })
    .sort((a, b) => b.fused - a.fused || newestFirst(placeOf(a.record), placeOf(b.record)))
    .slice(0, topK)
    .map(({ record }) => ({ record, score: Math.min(1, Math.max(0, cosine(record.id) ?? 0)), found: found(record.id) }));
  return { hits, degraded, damaged: read.damaged, model };
}

type QueryVector = { readonly versionId: number; readonly vector: Float32Array; readonly version: EmbeddingVersion };

async function queryVector(
  embeddings: EmbeddingStore,
  embedders: Embedders,
  query: string,
  degraded: string[],
  signal: AbortSignal | undefined,
): Promise<QueryVector | undefined> {
  const version = (await embeddings.versions()).find((known) => known.isCurrent);
  if (!version) return undefined; // nothing was ever embedded: words are all there is
  const embedder = await embedders.serving(version);
  if (!embedder) {
    degraded.push(`the model ${version.model} of the stored vectors is not available here, so only words were searched`);
    return undefined;
  }
  const embedded = await embedWithin(embedder, [query], { timeoutMs: QUERY_EMBED_MS, purpose: "query", signal });
  if (!embedded.vectors) {
    degraded.push(`the embedding model ${version.model} did not answer (${embedded.failure}), so only words were searched`);
    return undefined;
  }
  return { versionId: version.versionId, vector: embedded.vectors[0]!, version };
}

async function isCurrent(embeddings: EmbeddingStore, versionId: number): Promise<boolean> {
  return (await embeddings.versions()).some((known) => known.isCurrent && known.versionId === versionId);
}

/** Candidates that only the words found get their cosine too, so that both parts of the fused score are known. */
async function withSimilarities(
  store: Pick<RecallStore<unknown>, "similarities">,
  dense: QueryVector | undefined,
  { keyword, semantic: near, similarities }: Candidates,
): Promise<Candidate[]> {
  const cosine = new Map([...(similarities ?? []), ...near.map(({ id, score }) => [id, score] as const)]);
  const byWords = new Map(keyword.map(({ id, score }) => [id, score]));
  if (dense && !similarities) {
    const unknown = keyword.filter(({ id }) => !cosine.has(id)).map(({ id }) => id);
    for (const [id, score] of await store.similarities(dense.versionId, dense.vector, unknown)) cosine.set(id, score);
  }
  return [...new Set([...cosine.keys(), ...byWords.keys()])].map((id) => ({ id, cosine: cosine.get(id), lexical: byWords.get(id) }));
}

const placeOf = (record: { readonly id: string; readonly createdOrder: string }) => ({ id: record.id, at: record.createdOrder });

import type { DamagedRecord } from "../model/damaged-record.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { type Knowledge, successRate } from "../model/knowledge.ts";
import { databaseOf, type Scope } from "../model/place.ts";
import type { Embedders } from "../ports/embedders.ts";
import type { EmbeddingVersion } from "../ports/embedding-store.ts";
import type { KnowledgeFilter, KnowledgeStore } from "../ports/knowledge-store.ts";
import type { Storage } from "../ports/storage.ts";
import { type Found, recall, type SearchMode } from "../recall/search.ts";
import { errorSignature, normaliseError } from "../text/normalise-error.ts";

export interface SearchKnowledge extends KnowledgeFilter {
  readonly projectPath?: string | undefined;
  /** Default: the project's and the shared knowledge together. */
  readonly scope?: Scope | "both" | undefined;
  readonly query: string;
  readonly topK?: number | undefined;
  readonly mode?: SearchMode | undefined;
  /** `success` counts what helped before: 0.7 · similarity + 0.3 · success rate. */
  readonly ranking?: "similarity" | "success" | undefined;
}

export type Confidence = "high" | "medium" | "low";

export interface KnowledgeHit {
  readonly record: Knowledge;
  readonly scope: Scope;
  /** Cosine, 0 to 1. */
  readonly score: number;
  /** What it was ranked by: the similarity, or that with the success rate. */
  readonly rankScore: number;
  readonly confidence: Confidence;
  readonly warning?: string | undefined;
  /** Its error is the one asked about, but for line numbers, paths, values and the like. */
  readonly sameError: boolean;
  readonly found: Found;
}

export interface KnowledgeAnswer {
  readonly hits: readonly KnowledgeHit[];
  readonly scopes: readonly Scope[];
  readonly degraded: readonly string[];
  /** Records that were found and could not be read. */
  readonly damaged: readonly DamagedRecord[];
  readonly model?: string | undefined;
}

interface PlaceAnswer {
  readonly sameError: readonly KnowledgeHit[];
  readonly ranked: readonly KnowledgeHit[];
  readonly degraded: readonly string[];
  readonly damaged: readonly DamagedRecord[];
  /** The vector space that ranked them; two spaces are never compared. */
  readonly space: EmbeddingVersion | undefined;
}

interface SearchDeps {
  readonly storage: Storage;
  readonly embedders: Embedders;
  /** Told of each database that is searched. */
  readonly onUse: (database: string, store: KnowledgeStore) => void;
}

/** Searches the places that are meant, each by its own model, and merges what they found. */
export async function searchPlaces(
  { storage, embedders, onUse }: SearchDeps,
  { projectPath, scope, query, topK = 5, mode, ranking = "similarity", ...filter }: SearchKnowledge,
  signal: AbortSignal | undefined,
): Promise<KnowledgeAnswer> {
  const both = scope === "both" || scope === undefined;
  const databases = both
    ? [...(projectPath === undefined ? [] : [databaseOf({ projectPath, scope: "project" })]), SHARED_PROJECT_ID]
    : [databaseOf({ projectPath, scope })];
  const answers: PlaceAnswer[] = [];
  for (const database of databases) {
    const store = (await storage.find(database))?.knowledge;
    if (!store) continue;
    onUse(database, store);
    answers.push(await searchPlace(store, scopeOf(database), embedders, { query, topK, mode, ranking, filter, signal }));
  }
  const [first] = answers;
  const comparable = answers.every(({ space }) => space && first?.space && sameSpace(space, first.space));
  const hits = [
    ...answers.flatMap(({ sameError }) => sameError),
    ...merge(
      answers.map(({ ranked }) => ranked),
      comparable,
    ),
  ];
  return {
    hits: hits.slice(0, topK),
    scopes: databases.map(scopeOf),
    degraded: [...new Set(answers.flatMap(({ degraded }) => degraded))],
    damaged: answers.flatMap(({ damaged }) => damaged),
    model: [...new Set(answers.flatMap(({ space }) => space?.model ?? []))].join(", ") || undefined,
  };
}

interface PlaceQuery {
  readonly query: string;
  readonly topK: number;
  readonly mode: SearchMode | undefined;
  readonly ranking: "similarity" | "success";
  readonly filter: KnowledgeFilter;
  readonly signal: AbortSignal | undefined;
}

async function searchPlace(
  store: KnowledgeStore,
  scope: Scope,
  embedders: Embedders,
  { query, topK, mode, ranking, filter, signal }: PlaceQuery,
): Promise<PlaceAnswer> {
  const about = filter.kind === "remediation" ? normaliseError(query) || query : query;
  // What helped before may lie a little further down by similarity.
  const wide = ranking === "success" ? Math.min(500, topK * 5) : topK;
  const answer = await recall(store, embedders, { query: about, topK: wide, mode, filter, signal });
  const space = answer.model === undefined ? undefined : (await store.embeddings.versions()).find(({ isCurrent }) => isCurrent);
  const signature = filter.kind === undefined || filter.kind === "remediation" ? errorSignature(query) : "";
  const same = new Set(signature === "" ? [] : await store.withSignature(signature, filter, topK));

  const known = new Map(answer.hits.map(({ record, score, found }) => [record.id, { record, score, found }]));
  const read = await store.getMany([...same].filter((id) => !known.has(id)));
  for (const record of read.records) known.set(record.id, { record, score: 0, found: {} });
  const hits = [...known.values()].map(({ record, score, found }): KnowledgeHit => {
    const sameError = same.has(record.id);
    const rankScore = ranking === "success" ? 0.7 * score + 0.3 * successRate(record) : score;
    return { record, scope, score, rankScore, sameError, found, ...judge(rankScore, sameError, space !== undefined) };
  });
  const byRank = (a: KnowledgeHit, b: KnowledgeHit) => b.rankScore - a.rankScore;
  const rest = hits.filter(({ sameError }) => !sameError);
  return {
    sameError: hits.filter(({ sameError }) => sameError).sort(byRank),
    ranked: ranking === "success" ? rest.sort(byRank) : rest,
    degraded: answer.degraded,
    damaged: [...answer.damaged, ...read.damaged],
    space,
  };
}

function judge(rankScore: number, sameError: boolean, measured: boolean): Pick<KnowledgeHit, "confidence" | "warning"> {
  if (sameError) return { confidence: "high" };
  if (!measured) return { confidence: "low", warning: "Found by words alone, so how close it is cannot be told." };
  if (rankScore >= 0.7) return { confidence: "high" };
  if (rankScore >= 0.5) return { confidence: "medium" };
  const warning =
    rankScore < 0.3 ? "Very low confidence: this is probably about something else." : "Low confidence: check it before you rely on it.";
  return { confidence: "low", warning };
}

/** Each list keeps its order. Heads are compared by score where one model made all of them, else the lists take turns. */
function merge(lists: readonly (readonly KnowledgeHit[])[], comparable: boolean): KnowledgeHit[] {
  const rest = lists.map((list) => [...list]);
  const merged: KnowledgeHit[] = [];
  for (let turn = 0; rest.some((list) => list.length > 0); turn++) {
    const waiting = rest.filter((list) => list.length > 0);
    const best = (a: KnowledgeHit[], b: KnowledgeHit[]) => (b[0]!.rankScore > a[0]!.rankScore ? b : a);
    const next = comparable ? waiting.reduce(best) : (rest[turn % rest.length] ?? []);
    const hit = next.shift();
    if (hit) merged.push(hit);
  }
  return merged;
}

function sameSpace(a: EmbeddingVersion, b: EmbeddingVersion): boolean {
  return a.model === b.model && a.version === b.version && a.dimension === b.dimension;
}

function scopeOf(database: string): Scope {
  return database === SHARED_PROJECT_ID ? "shared" : "project";
}

import type { WithCodePath } from "../model/anchor.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { type Knowledge, successRate } from "../model/knowledge.ts";
import { resolveDatabase, type Scope } from "../model/record-scope.ts";
import type { EmbeddingVersion } from "../ports/embedding-store.ts";
import type { KnowledgeFilter, KnowledgeStore } from "../ports/knowledge-store.ts";
import type { Storage } from "../ports/storage.ts";
import { bestMatch, type Match } from "../recall/fuse.ts";
import { type Hit, readRecordHits } from "../recall/record-hits.ts";
import { type Found, type SearchAnswer, type SearchDeps, type SearchMode, searchRecords, type Weights } from "../recall/search.ts";
import { errorSignature, normaliseError } from "../text/normalise-error.ts";
import { splitQuestion } from "../text/split-question.ts";

/** A query for knowledge, with its filters. */
export interface SearchKnowledge extends KnowledgeFilter, WithCodePath {
  readonly projectPath?: string | undefined;
  /** Default: the knowledge of the project and the shared knowledge. */
  readonly scope?: Scope | "both" | undefined;
  readonly query: string;
  readonly topK?: number | undefined;
  readonly mode?: SearchMode | undefined;
  /** Returns only records that match the code. */
  readonly freshOnly?: boolean | undefined;
  /** `success` prefers records that helped before: 0.7 × similarity + 0.3 × success rate. */
  readonly ranking?: "similarity" | "success" | undefined;
}

export type Confidence = "high" | "medium" | "low";

/** One knowledge record of a search, with its scores. */
export interface KnowledgeHit {
  readonly record: Knowledge;
  readonly scope: Scope;
  /** Cosine, 0 to 1. */
  readonly score: number;
  /** The similarity, or with `success` the weighted sum. */
  readonly rankScore: number;
  readonly confidence: Confidence;
  readonly warning?: string | undefined;
  /** Its error equals the one in the query, apart from line numbers, paths, times and ids. */
  readonly sameError: boolean;
  readonly found: Found;
}

/** The hits of a knowledge search and what was not available. */
export interface KnowledgeAnswer {
  readonly hits: readonly KnowledgeHit[];
  /** How well the best records answer the query; `high` for a remediation of the same error. */
  readonly match: Match;
  /** How both rankings were weighted in the first scope, and why. */
  readonly weights?: Weights | undefined;
  readonly scopes: readonly Scope[];
  readonly degraded: readonly string[];
  /** Records that were found and cannot be read. */
  readonly damaged: readonly DamagedRecord[];
  readonly model?: string | undefined;
}

/** Searches the scopes asked for, each with its own model, and merges the hits: remediations of the same error come first. */
export async function searchScopes(
  storage: Storage,
  deps: SearchDeps,
  { projectPath, scope, topK = 5, ...query }: SearchKnowledge,
  signal: AbortSignal | undefined,
): Promise<KnowledgeAnswer> {
  const both = scope === "both" || scope === undefined;
  const databases = both
    ? [...(projectPath === undefined ? [] : [resolveDatabase({ projectPath, scope: "project" })]), SHARED_PROJECT_ID]
    : [resolveDatabase({ projectPath, scope })];
  const answers: SearchAnswer<KnowledgeHit>[] = [];
  for (const database of databases) {
    const store = (await storage.find(database))?.knowledge;
    if (store) answers.push(await searchScope(deps, store, database, { ...query, topK, signal }));
  }
  const [first] = answers;
  const comparable = answers.every(({ version }) => version && first?.version && sameSpace(version, first.version));
  const hits = [
    ...answers.flatMap((answer) => answer.hits.filter(({ sameError }) => sameError).sort(byRankScore)),
    ...merge(
      answers.map((answer) => answer.hits.filter(({ sameError }) => !sameError)),
      comparable,
    ),
  ];
  return {
    hits: hits.slice(0, topK),
    match: hits[0]?.sameError ? "high" : bestMatch(answers.map(({ match }) => match)),
    weights: answers.find(({ weights }) => weights)?.weights,
    scopes: databases.map(scopeOf),
    degraded: [...new Set(answers.flatMap(({ degraded }) => degraded))],
    damaged: answers.flatMap(({ damaged }) => damaged),
    model: [...new Set(answers.flatMap(({ version }) => version?.model ?? []))].join(", ") || undefined,
  };
}

type ScopeQuery = Omit<SearchKnowledge, "projectPath" | "scope"> & { readonly topK: number; readonly signal: AbortSignal | undefined };

function searchScope(
  deps: SearchDeps,
  store: KnowledgeStore,
  database: string,
  { query, topK, mode, ranking = "similarity", signal, ...filter }: ScopeQuery,
): Promise<SearchAnswer<KnowledgeHit>> {
  // A record that helped before may have a lower similarity than the best `topK`.
  const limit = ranking === "success" ? Math.min(500, topK * 5) : topK;
  return searchRecords(deps, {
    ...{ collection: "knowledge", database, store, query, filter, topK: limit, mode, signal },
    rewrite: (text) => searchedText(text, filter.kind),
    async rescoreAndRead(ranked) {
      const { hits, damaged = [], weights } = await readRecordHits(store, ranked, { topK: limit, textOf: recordText });
      const same = new Set<string>();
      for (const signature of filter.kind === undefined || filter.kind === "remediation" ? signaturesOf(ranked.query) : [])
        for (const id of await store.withSignature(signature, filter, topK)) same.add(id);
      const known = new Set(hits.map(({ record }) => record.id));
      const others = await store.getMany([...same].filter((id) => !known.has(id)));
      const all = [...hits, ...others.records.map((record) => ({ record, score: 0, found: {} }))];
      const rated = all.map((hit) => rate(hit, { scope: scopeOf(database), ranking, same, measured: ranked.version !== undefined }));
      return { hits: ranking === "success" ? rated.sort(byRankScore) : rated, damaged: [...damaged, ...others.damaged], weights };
    },
  });
}

/** Longer queries are an issue or a log around the error: the title, the messages and the beginning of the prose are searched. */
const LONG_CHARS = 4_000;

function searchedText(query: string, kind: KnowledgeFilter["kind"]): string {
  let text = query;
  if (query.length > LONG_CHARS) {
    const { title, errors, prose } = splitQuestion(query);
    text = [...new Set([title, ...errors, prose])].join("\n");
  }
  return kind === "remediation" ? normaliseError(text) || text : text;
}

/** Returns the signatures of the query and of the messages that it quotes, such as the error in an issue. */
function signaturesOf(query: string): string[] {
  const errors = query.includes("\n") ? splitQuestion(query).errors : [];
  return [...new Set([query, ...errors].map(errorSignature))].filter((signature) => signature !== "");
}

/** Returns the text by which records are weighted: questions alone are always short. */
export function recordText({ question, answer }: Pick<Knowledge, "question" | "answer">): string {
  return `${question}\n${answer}`;
}

interface RatingRules {
  readonly scope: Scope;
  readonly ranking: "similarity" | "success";
  /** Ids of the remediations whose error has the signature of the query. */
  readonly same: ReadonlySet<string>;
  /** Whether similarity was measured. */
  readonly measured: boolean;
}

function rate({ record, score, found }: Hit<Knowledge>, { scope, ranking, same, measured }: RatingRules): KnowledgeHit {
  const sameError = same.has(record.id);
  const rankScore = ranking === "success" ? 0.7 * score + 0.3 * successRate(record) : score;
  return { record, scope, score, rankScore, sameError, found, ...judge(rankScore, sameError, measured) };
}

function byRankScore(a: KnowledgeHit, b: KnowledgeHit): number {
  return b.rankScore - a.rankScore;
}

function judge(rankScore: number, sameError: boolean, measured: boolean): Pick<KnowledgeHit, "confidence" | "warning"> {
  if (sameError) return { confidence: "high" };
  if (!measured) return { confidence: "low", warning: "Found by keywords alone: its similarity is unknown." };
  if (rankScore >= 0.7) return { confidence: "high" };
  if (rankScore >= 0.5) return { confidence: "medium" };
  const warning = rankScore < 0.3 ? "Very low confidence: probably unrelated." : "Low confidence: verify before use.";
  return { confidence: "low", warning };
}

/** Merges lists, each in its order: by score where one model ranked all of them, else in turns. */
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

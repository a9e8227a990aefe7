import type { KeywordRanked, Ranked } from "../ports/recall-store.ts";

export interface Candidate {
  readonly id: string;
  /** Cosine to the query; absent where the record has no vector. */
  readonly cosine?: number | undefined;
  /** Keyword score; absent where no keyword matches. */
  readonly keyword?: number | undefined;
  /** Position in the order of insertion; absent where the store has none. */
  readonly key?: number | undefined;
  /** The part of its semantic score that the candidate loses, 0…1. */
  readonly penalty?: number | undefined;
}

/**
 * Fuses two rankings into one, best first, by a weighted sum of scores. The cosine is min-max scaled over the candidates; the keyword
 * score is divided by the best one. Scores instead of ranks preserve the distance between candidates. A candidate without a vector is
 * ranked by its keyword score alone: its similarity is unknown, not zero.
 */
export function fuse(candidates: readonly Candidate[], semanticWeight: number): Ranked[] {
  const cosines = candidates.flatMap(({ cosine }) => (cosine === undefined ? [] : [cosine]));
  const top = Math.max(...cosines);
  const floor = Math.min(...cosines);
  const bestKeyword = Math.max(0, ...candidates.map(({ keyword }) => keyword ?? 0));
  const weight = bestKeyword === 0 ? 1 : semanticWeight;
  const score = ({ cosine, keyword = 0, penalty = 0 }: Candidate) => {
    const keywordScore = bestKeyword > 0 ? keyword / bestKeyword : 0;
    if (cosine === undefined) return keywordScore;
    return weight * ((top > floor ? (cosine - floor) / (top - floor) : 1) - penalty) + (1 - weight) * keywordScore;
  };
  return candidates
    .map((candidate) => ({ id: candidate.id, score: score(candidate) }))
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
}

/** Largest weight of the semantic ranking in prose, and how much of it a clear keyword match takes away. Chosen on the sets of `npm run bench -- recall`. */
const SEMANTIC_WEIGHT = 0.9;
const KEYWORD_SHARE = 0.3;
/** Largest weight of the semantic ranking for a query that is one symbol. */
const SYMBOL_SEMANTIC_WEIGHT = 0.3;

/**
 * Returns the weight of the semantic ranking against the keyword ranking, 0…1: lower where the best keyword match stands out from the
 * rest and has most of the query's terms. A record that happens to share one term with a sentence is no evidence.
 */
export function semanticWeight(query: string, keyword: readonly KeywordRanked[], max: number = SEMANTIC_WEIGHT): number {
  const weight = max - KEYWORD_SHARE * leadOfFirst(keyword) * (keyword[0]?.matched ?? 1);
  return isBareSymbol(query) ? Math.min(weight, SYMBOL_SEMANTIC_WEIGHT) : weight;
}

/** Returns 0 when the ten best keyword matches have equal scores, towards 1 the further the first is ahead of the tenth. */
function leadOfFirst(keyword: readonly KeywordRanked[]): number {
  const [first, ...rest] = keyword.slice(0, 10);
  return first && rest.length > 0 ? (first.score - rest.at(-1)!.score) / first.score : 1;
}

/** Recognises `HTTPAdapter`, `a.b`, `_private`, `snake_case`: the query means exactly this name. */
function isBareSymbol(query: string): boolean {
  const text = query.trim();
  return /^[\p{L}_$][\p{L}\p{N}_$.:#]*$/u.test(text) && (/[_.:#$]/.test(text) || /\p{Ll}\p{Lu}/u.test(text) || /^\p{Lu}{2}/u.test(text));
}

import type { KeywordRanked } from "../ports/recall-store.ts";

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

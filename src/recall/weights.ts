import type { KeywordRanked } from "../ports/recall-store.ts";

/** How much the ranking by meaning counts at most, and how much of that the one by words can take. Chosen on the sets of `npm run bench -- recall`. */
const MEANING = 0.9;
const WORDS = 0.3;
/** A bare symbol means exactly this word. */
const MEANING_OF_A_SYMBOL = 0.3;

/**
 * How much the ranking by meaning counts against the one by words: less where the best match by words stands out from the rest
 * and has most of the words asked for. A record that happens to share one word with a sentence is no evidence.
 */
export function meaningWeight(query: string, lexical: readonly KeywordRanked[], meaning: number = MEANING): number {
  const weight = meaning - WORDS * standingOut(lexical) * (lexical[0]?.matched ?? 1);
  return isBareSymbol(query) ? Math.min(weight, MEANING_OF_A_SYMBOL) : weight;
}

/** 0 when the ten best by words are equal, towards 1 the further the first is ahead of the tenth. */
function standingOut(lexical: readonly KeywordRanked[]): number {
  const [first, ...rest] = lexical.slice(0, 10);
  return first && rest.length > 0 ? (first.score - rest.at(-1)!.score) / first.score : 1;
}

/** `HTTPAdapter`, `a.b`, `_private`, `snake_case`: the person means exactly this word. */
function isBareSymbol(query: string): boolean {
  const text = query.trim();
  return /^[\p{L}_$][\p{L}\p{N}_$.:#]*$/u.test(text) && (/[_.:#$]/.test(text) || /\p{Ll}\p{Lu}/u.test(text) || /^\p{Lu}{2}/u.test(text));
}

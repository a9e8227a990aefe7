import type { VectorSpace } from "../ports/embedding-store.ts";
import type { Candidate } from "../text/fuse.ts";

/**
 * How much the ranking by meaning counts against the one by words: less where the model is weaker, less where the best match by
 * words stands out from the rest, and little for a bare symbol. Chosen on the sets of `npm run bench -- recall`.
 */
export function meaningWeight(query: string, space: VectorSpace, candidates: readonly Candidate[]): number {
  const trust = TRUST[space.model] ?? 1.1;
  const weight = Math.min(0.95, Math.max(0.2, trust - STANDING_OUT * standingOut(candidates)));
  return isBareSymbol(query) ? Math.min(weight, 0.3) : weight;
}

/** How far a model's cosine is trusted where no match by words stands out; the static table is weaker on prose. */
const TRUST: Readonly<Record<string, number>> = { "all-MiniLM-L6-v2": 1.1, "cairn-static": 1.05 };
const STANDING_OUT = 0.6;
const COMPARED = 20;

/** 0 when the best by words are equal, towards 1 the further the first is ahead of the last of them. */
function standingOut(candidates: readonly Candidate[]): number {
  const scores = candidates.flatMap(({ lexical }) => lexical ?? []).sort((a, b) => b - a);
  const [first = 0, ...rest] = scores.slice(0, COMPARED);
  return first > 0 && rest.length > 0 ? (first - rest.at(-1)!) / first : 1;
}

/** `HTTPAdapter`, `a.b`, `_private`, `snake_case`: the person means exactly this word. */
function isBareSymbol(query: string): boolean {
  const text = query.trim();
  return /^[\p{L}_$][\p{L}\p{N}_$.:#]*$/u.test(text) && (/[_.:#$]/.test(text) || /\p{Ll}\p{Lu}/u.test(text) || /^\p{Lu}{2}/u.test(text));
}

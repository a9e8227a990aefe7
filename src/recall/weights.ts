import type { VectorSpace } from "../ports/embedding-store.ts";
import type { Candidate } from "../text/fuse.ts";

/** How much the ranking by meaning counts against the one by words. Chosen on bench/recall's development sets; docs/recall.md has the figures. */
export function meaningWeight(query: string, space: VectorSpace, _candidates: readonly Candidate[]): number {
  const trust = TRUST[space.model] ?? 0.7;
  return isBareSymbol(query) ? Math.min(trust, 0.3) : trust;
}

/** How far a model's cosine can be trusted beside words: a strong model more than a static table. */
const TRUST: Readonly<Record<string, number>> = { "all-MiniLM-L6-v2": 0.8, "cairn-static": 0.5 };

/** `HTTPAdapter`, `a.b`, `_private`, `snake_case`: the person means exactly this word. */
function isBareSymbol(query: string): boolean {
  const text = query.trim();
  return /^[\p{L}_$][\p{L}\p{N}_$.:#]*$/u.test(text) && (/[_.:#$]/.test(text) || /\p{Ll}\p{Lu}/u.test(text) || /^\p{Lu}{2}/u.test(text));
}

export interface Candidate {
  readonly id: string;
  /** Cosine to the query; absent where the record has no vector. */
  readonly cosine?: number | undefined;
  /** Score by words; absent where the words did not find it. */
  readonly lexical?: number | undefined;
}

/**
 * One score from two rankings: a weighted sum of both, each scaled to its own best and worst among the candidates.
 * Scores are used instead of ranks, because how far ahead the first is says more than that it is first.
 */
export function fuse(candidates: readonly Candidate[], meaningWeight: number): { id: string; score: number }[] {
  const cosines = candidates.flatMap(({ cosine }) => (cosine === undefined ? [] : [cosine]));
  const top = Math.max(...cosines);
  const floor = Math.min(...cosines);
  const bestLexical = Math.max(0, ...candidates.map(({ lexical }) => lexical ?? 0));
  const meaning = (cosine: number | undefined) => (cosine === undefined ? 0 : top > floor ? (cosine - floor) / (top - floor) : 1);
  const words = (lexical: number | undefined) => (bestLexical > 0 ? (lexical ?? 0) / bestLexical : 0);
  const weight = cosines.length === 0 ? 0 : bestLexical === 0 ? 1 : meaningWeight;
  return candidates
    .map(({ id, cosine, lexical }) => ({ id, score: weight * meaning(cosine) + (1 - weight) * words(lexical) }))
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
}

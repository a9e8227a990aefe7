import type { Ranked } from "../ports/recall-store.ts";

export interface Candidate {
  readonly id: string;
  /** Cosine to the query; absent where the record has no vector. */
  readonly cosine?: number | undefined;
  /** Keyword score; absent where no keyword matches. */
  readonly keyword?: number | undefined;
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
  const score = ({ cosine, keyword = 0 }: Candidate) => {
    const keywordScore = bestKeyword > 0 ? keyword / bestKeyword : 0;
    if (cosine === undefined) return keywordScore;
    return weight * (top > floor ? (cosine - floor) / (top - floor) : 1) + (1 - weight) * keywordScore;
  };
  return candidates
    .map((candidate) => ({ id: candidate.id, score: score(candidate) }))
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
}

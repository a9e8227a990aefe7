import { ramp } from "./record-weights.ts";

/** How well the best records answer the query. Hits are returned whatever it is. */
export type Match = "high" | "medium" | "low" | "none";

export interface MatchEvidence {
  /** Best cosine; absent without a semantic ranking. */
  readonly cosine?: number | undefined;
  /** Share of the query that the model's vocabulary knows. */
  readonly coverage: number;
  /** Share of the query's words that the best keyword match has; absent without a keyword ranking. */
  readonly matched?: number | undefined;
  /** Name of the model. */
  readonly model?: string | undefined;
}

/** Cosines of unrelated and of related texts. Measured for the bundled models; other models have a scale of their own. */
const COSINES: readonly (readonly [RegExp, readonly [number, number]])[] = [
  [/ada-002|e5/i, [0.76, 0.88]],
  [/bge|gte/i, [0.45, 0.7]],
];
const DEFAULT_COSINES = [0.22, 0.5] as const;
/** Shares of matched words of an unrelated and of a related record. */
const MATCHED = [0.15, 0.6] as const;
const STRONGER_SHARE = 0.65;
const LIMITS = { high: 0.55, medium: 0.35, low: 0.15 } as const;

/** Judges the answer by the calibrated evidence of both rankings. The stronger one counts more: either can be silent for good reason. */
export function judgeMatch({ cosine, coverage, matched, model = "" }: MatchEvidence): Match {
  const scale = COSINES.find(([name]) => name.test(model))?.[1] ?? DEFAULT_COSINES;
  const semantic = cosine === undefined ? undefined : ramp(cosine, scale) * ramp(coverage, [0.1, 0.6]);
  const keyword = matched === undefined ? undefined : ramp(matched, MATCHED);
  const evidence =
    semantic === undefined || keyword === undefined
      ? (semantic ?? keyword ?? 0)
      : STRONGER_SHARE * Math.max(semantic, keyword) + (1 - STRONGER_SHARE) * Math.min(semantic, keyword);
  return evidence >= LIMITS.high ? "high" : evidence >= LIMITS.medium ? "medium" : evidence >= LIMITS.low ? "low" : "none";
}

/** Returns the best of several judgements; `none` without any. */
export function bestMatch(matches: readonly Match[]): Match {
  return (["high", "medium", "low"] as const).find((match) => matches.includes(match)) ?? "none";
}

/** Returns the note of an answer, which begins with the judgement if the hits do not answer the query. */
export function matchNote({ match, hits, note }: { match: Match; hits: readonly unknown[]; note?: string | undefined }): { note?: string } {
  const parts = [
    ...(match === "none" && hits.length > 0 ? ["No good match: the results are probably unrelated."] : []),
    ...(note ? [note] : []),
  ];
  return parts.length > 0 ? { note: parts.join(" ") } : {};
}

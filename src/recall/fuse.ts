import type { KeywordRanked, Ranked } from "../ports/recall-store.ts";
import { isCommonWord } from "../text/language.ts";

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

/**
 * Largest weight of the semantic ranking in the first fusion, which decides which records are read; `recordWeight` then weights them.
 * Code has a largest weight of its own. The second value is what a clear keyword match takes away.
 */
const SEMANTIC_WEIGHT = 0.9;
const KEYWORD_SHARE = 0.3;
/** Largest weight of the semantic ranking for a query that is one symbol. */
const SYMBOL_SEMANTIC_WEIGHT = 0.3;

/**
 * Returns the weight of the semantic ranking against the keyword ranking, 0…1: lower where the best keyword match stands out from the
 * rest and has most of the query's terms. A record that happens to share one term with a sentence is no evidence.
 */
export function semanticWeight(query: string, keyword: readonly KeywordRanked[], max: number = SEMANTIC_WEIGHT): number {
  const weight = max - KEYWORD_SHARE * keywordLead(keyword);
  return isBareSymbol(query) ? Math.min(weight, SYMBOL_SEMANTIC_WEIGHT) : weight;
}

/** Recognises `HTTPAdapter`, `a.b`, `_private`, `snake_case`: the query means exactly this name. */
function isBareSymbol(query: string): boolean {
  const text = query.trim();
  return /^[\p{L}_$][\p{L}\p{N}_$.:#]*$/u.test(text) && (/[_.:#$]/.test(text) || /\p{Ll}\p{Lu}/u.test(text) || /^\p{Lu}{2}/u.test(text));
}

/** Measurements of one query and the collection it is asked of, from which the weights follow. */
export interface Signals {
  /** Share of the query that the model's vocabulary knows, 0…1. Words of other languages and invented words are split into single characters. */
  readonly coverage: number;
  /** Share of code punctuation in the best records, 0…1: about 0.01 in prose, 0.13 in functions. */
  readonly codeShare: number;
  /** How far the best keyword match is ahead of the tenth, 0…1, times the share of the query's terms that it has. */
  readonly keywordLead: number;
  /** Share of the query's terms that the best keyword match has, 0…1. */
  readonly matched: number;
}

/** Semantic weights for prose and for functions. Chosen on the sets of `npm run bench -- recall`, where 0.45 to 0.6 is flat for prose. */
const PROSE_WEIGHT = 0.55;
const CODE_WEIGHT = 0.9;
/** Code shares between which the weight rises from prose to code. */
const CODE_SHARES = [0.03, 0.12] as const;
/** Coverages between which the semantic part rises from its least share to its whole weight. */
const COVERAGES = [0.2, 0.75] as const;
const LEAST_COVERED = 0.3;
/** A function's names are no words, but still similar pieces: unknown words take away half as much. */
const CODE_COVERED = 0.5;
/** The part of the semantic weight for prose that a clear keyword match takes away. */
const LEAD_SHARE = 0.1;
/** Shares of matched terms between which the best keyword match turns from chance into evidence. */
const CHANCE_MATCHES = [0.3, 0.5] as const;
/** Semantic weight for prose if the best keyword match has only a few of the query's terms. */
const CHANCE_WEIGHT = 0.9;

/** Returns the weight of the semantic ranking of records against the keyword ranking, 0…1. */
export function recordWeight({ coverage, codeShare, keywordLead, matched }: Signals): number {
  const code = ramp(codeShare, CODE_SHARES);
  const covered = LEAST_COVERED + (1 - LEAST_COVERED) * ramp(coverage, COVERAGES);
  const prose = CHANCE_WEIGHT + (PROSE_WEIGHT - CHANCE_WEIGHT) * ramp(matched, CHANCE_MATCHES);
  const weight = prose + (CODE_WEIGHT - prose) * code;
  return weight * (covered + (1 - covered) * CODE_COVERED * code) * (1 - LEAD_SHARE * (1 - code) * keywordLead);
}

/** Returns 0 when the ten best keyword matches have equal scores, towards 1 the further the first is ahead and the more terms it has. */
export function keywordLead(keyword: readonly KeywordRanked[]): number {
  const [first, ...rest] = keyword.slice(0, 10);
  if (!first) return 0;
  return (rest.length > 0 ? (first.score - rest.at(-1)!.score) / first.score : 1) * (first.matched ?? 1);
}

/** Returns the share of a text's characters that are punctuation of code. */
export function codeShare(text: string): number {
  const sample = text.slice(0, 2_000).replace(/\s+/g, "");
  return sample === "" ? 0 : sample.replace(/[^{}()[\];=<>_|&*/\\+$@#`"']+/g, "").length / sample.length;
}

/** Points for the function that a second model finds most similar. From 0.1 to 0.3 the result is flat. */
const SECOND_OPINION = 0.2;

/** Returns whether the records are so much like functions that a second model is worth its time. */
export function wantsSecondOpinion(codeShare: number): boolean {
  return codeShare > CODE_SHARES[0];
}

/**
 * Returns points for the cosines of a second model: none for the least similar record, most for the most similar one, and the fewer the
 * more the records are prose. The models were trained on different texts, and fail on different functions.
 */
export function secondOpinion(cosines: readonly number[], codeShare: number): number[] {
  const floor = Math.min(...cosines);
  const range = Math.max(...cosines) - floor;
  const most = SECOND_OPINION * ramp(codeShare, CODE_SHARES);
  return cosines.map((cosine) => (range > 0 ? (most * (cosine - floor)) / range : 0));
}

/** Words below which a record is short: a greeting resembles any question, because nothing in it differs. */
const SHORT_WORDS = 12;
const SHORT_SHARE = 0.4;

/** Returns the part that a short text loses of its semantic score, 0 for texts of ordinary length. */
export function shortness(text: string): number {
  if (text.length > 12 * SHORT_WORDS) return 0;
  const unspaced = text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu)?.length ?? 0;
  const words = (text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0) + unspaced / 2;
  return SHORT_SHARE * Math.max(0, 1 - words / SHORT_WORDS);
}

/** The largest part of a neighbour's score that a record gets. */
const NEIGHBOUR_SHARE = 0.3;
const LIFTS = [0, 0.3] as const;

/** How often the best records have a candidate before or after them in the order of insertion. */
export interface Adjacency {
  /** Share of the best records with such a neighbour, 0…1. */
  readonly observed: number;
  readonly candidates: number;
  /** Records among which the candidates are. */
  readonly records: number;
}

/**
 * Returns the part of its neighbour's score that a record gets. A neighbour among the candidates says the more, the less likely it is there
 * by chance, and most where the best records have neighbours more often than that. Prose continues in the next record; the order of
 * functions means little.
 */
export function neighbourShare({ observed, candidates, records }: Adjacency, codeShare: number): number {
  const byChance = 1 - (1 - Math.min(1, (candidates - 1) / Math.max(1, records))) ** 2;
  return NEIGHBOUR_SHARE * Math.max(1 - byChance, ramp(observed - byChance, LIFTS)) * (1 - ramp(codeShare, CODE_SHARES));
}

/** Recognises questions about the state of the work, for which the newest records are the best answers. */
export function asksForRecent(query: string): boolean {
  return RECENT.test(query);
}

/** Weights of being the newest record: where the query asks for the state of the work alone, and where it also has a subject. */
const STATE_ALONE = 10;
const STATE_OF_SUBJECT = 0.6;

/** Returns the weight of being the newest record against a fused score of at most 1. */
export function recencyWeight(query: string): number {
  if (!asksForRecent(query)) return 0;
  const rest =
    query
      .replace(new RegExp(RECENT.source, "giu"), " ")
      .toLowerCase()
      .match(/[\p{L}\p{N}]{3,}/gu) ?? [];
  return rest.every((word) => isCommonWord(word, "en")) ? STATE_ALONE : STATE_OF_SUBJECT;
}

const RECENT =
  /\bwhere (?:was|were|am|are) (?:i|we)\b|\bleft off\b|\bunfinished\b|\bin progress\b|\bwhat(?:'s| is| was| are| were)? (?:i|we)? ?(?:next|left|open|pending|doing|working on|still open|still to do)\b|\b(?:pick|picking) up\b|\b(?:last|previous) (?:session|time|checkpoint)\b|\b(?:latest|newest|most recent) (?:checkpoint|state|status|work|progress|changes?)\b|\bcurrent (?:state|status|work|task)\b|\bto-?dos?\b|\bwo war(?:en)? (?:ich|wir)\b|\bunfertig|\bwas ist (?:noch )?offen\b|\bzuletzt\b|\boù en (?:étais-je|étions-nous|suis-je)\b|\bdónde (?:estaba|estábamos|me quedé)\b|на чём (?:я|мы) остановил|на чем (?:я|мы) остановил|незаконченн|不完|未完成|上次做到|做到哪/iu;

/** Returns 0 below the first limit, 1 above the second, and a straight line between. */
export function ramp(value: number, [from, to]: readonly [number, number]): number {
  return Math.min(1, Math.max(0, (value - from) / (to - from)));
}

/** How well the best records answer the query. Hits are returned whatever it is. */
export type Match = "high" | "medium" | "low" | "none";

export interface MatchEvidence {
  /** Best cosine; absent without a semantic ranking. */
  readonly cosine?: number | undefined;
  /** Share of the query that the model's vocabulary knows. */
  readonly coverage: number;
  /** Share of the query's terms that the best keyword match has; absent without a keyword ranking. */
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
/** Shares of matched terms of an unrelated and of a related record. */
const MATCHED = [0.15, 0.6] as const;
const STRONGER_SHARE = 0.65;
const LIMITS = { high: 0.55, medium: 0.35, low: 0.15 } as const;

/** Judges the answer by the calibrated evidence of both rankings. The stronger one counts more: either ranking may have no match. */
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

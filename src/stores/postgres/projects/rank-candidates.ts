import type { KeywordRanked } from "../../../ports/recall-store.ts";
import type { PgValue, PostgresTx } from "../driver/driver.ts";
import type { WhereFrom } from "./full-text.ts";
import { estimateThreshold, thresholdQuery, totalWeight, type WeightedTerm } from "./match-threshold.ts";

export interface AskedTerm extends WeightedTerm {
  /** The place of its word in the query. */
  readonly word: number;
}

export interface KeywordQuery {
  readonly records: string;
  /** The terms that records contain, the rarest first. */
  readonly terms: readonly AskedTerm[];
  readonly words: number;
  /** Records of the collection, and terms per record on average. */
  readonly size: number;
  readonly length: number;
  readonly where: WhereFrom;
  readonly limit: number;
}

/** Terms of records that one statement scores, at most: scoring a term of a record takes some microseconds. */
const SCORED_TERMS_MAX = 40_000;
/** The least number of records that one statement may score, as a multiple of the records requested. */
const SCORED_FACTOR_MIN = 4;
/** Statements for one query, at most, that look for a threshold which enough records and not too many reach. */
const ATTEMPTS_MAX = 6;
/** The best records that the ranking must not miss. */
const BEST = 20;
/** The score of a term in BM25, as a multiple of its weight, that records of almost any length and frequency do not exceed. */
const SCORE_PER_WEIGHT = 2;

/** Scores all records that contain a term of the query, best first. */
export async function rankAll(tx: PostgresTx, query: KeywordQuery): Promise<KeywordRanked[]> {
  const { hits } = await score(tx, query, thresholdQuery(query.terms, 0)!, undefined);
  return hits;
}

/**
 * Scores the records that can be among the best, best first: those whose terms have a summed weight above a threshold, which the index
 * finds without reading records. This bounds the number of scored records. It is an approximation: a record with frequent common
 * terms may be missing.
 */
export async function rankCandidates(tx: PostgresTx, query: KeywordQuery): Promise<KeywordRanked[]> {
  const { terms, limit } = query;
  const scoredMax = Math.max(SCORED_FACTOR_MIN * limit, Math.floor(SCORED_TERMS_MAX / terms.length));
  const total = totalWeight(terms);
  const asked = new Map<string, Scored>();
  const scoreFrom = async (threshold: number): Promise<Scored> => {
    const match = thresholdQuery(terms, threshold) ?? thresholdQuery(terms, total)!;
    const scored = asked.get(match) ?? (await score(tx, query, match, scoredMax + 1));
    asked.set(match, scored);
    return scored;
  };

  let tooLow: number | undefined; // more records than may be scored reach it
  let settled: { readonly threshold: number; readonly scored: Scored } | undefined;
  let threshold = estimateThreshold(terms, query.size, 2 * limit);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const scored = await scoreFrom(threshold);
    const high = settled?.threshold ?? total;
    if (scored.count > scoredMax) {
      tooLow = threshold;
      if (threshold >= total - terms.at(-1)!.weight || high - threshold < 0.02 * total) break;
      threshold = (threshold + high) / 2;
      continue;
    }
    settled = { threshold, scored };
    if (scored.count >= limit || threshold === 0 || threshold - (tooLow ?? 0) < 0.02 * total) break;
    threshold = tooLow !== undefined ? (tooLow + threshold) / 2 : threshold < 0.15 * total ? 0 : threshold / 2;
  }
  if (settled) {
    const last = settled.scored.hits[BEST - 1]?.score ?? 0;
    const sufficient = last / SCORE_PER_WEIGHT;
    if (sufficient < settled.threshold && sufficient > (tooLow ?? -1)) await scoreFrom(sufficient);
  }
  const hits = new Map([...asked.values()].flatMap((scored) => scored.hits.map((hit) => [hit.id, hit])));
  return [...hits.values()].sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)).slice(0, limit);
}

interface Scored {
  readonly hits: KeywordRanked[];
  /** The records that were scored. */
  readonly count: number;
}

/**
 * The occurrences of a term in a record, from `ts_rank`: with equal weights it is 0.1 times the sum of 1/i² over the occurrences, divided
 * by π²/6. The rest of that series is close to 1 / (n + 0.5), so rounding yields the exact number, and 0 for no occurrence. Unnesting
 * the lexemes would take ten times as long.
 */
const occurrences = (term: string) => `round(1 / (1.644934 - 16.4493406685 * ts_rank(r.terms, ${term})::float8) - 0.5)`;
/** Stands for a term that no record contains. */
const NO_TERM = "'$'";

/** Scores up to `max` of the records that match, by the BM25 of SQLite's FTS5. */
async function score(tx: PostgresTx, query: KeywordQuery, match: string, max: number | undefined): Promise<Scored> {
  const { terms, words, records, length, limit } = query;
  const size = statementSize(terms.length);
  const places = Array.from({ length: size }, (_, place) => place);
  const lexemes = places.map((place) => terms[place]?.lexeme ?? NO_TERM);
  const weights = places.map((place) => terms[place]?.weight ?? 0);
  const params: PgValue[] = [match, length, max ?? null, limit, ...lexemes, ...weights];
  const where = query.where(params.length + 1);
  const counted = places.map((place) => `${occurrences(`$${5 + place}::tsquery`)} AS n${place}`);
  const scores = places.map((place) => `$${5 + size + place}::float8 * n${place} * 2.2 / (n${place} + damping)`);
  const rows = await tx.all<{ key: number; id: string; score: number; found: number[]; count: number }>(
    `SELECT key, id, ${scores.join(" + ")} AS score, ARRAY[${places.map((place) => `n${place}`).join(", ")}] AS found, count(*) OVER () AS count
       FROM (SELECT r.key, r.id, 1.2 * (0.25 + 0.75 * r.term_count / $2::float8) AS damping, ${counted.join(", ")}
               FROM ${records} r WHERE r.terms @@ $1::tsquery AND ${where?.sql ?? "true"} LIMIT $3::bigint) AS candidate
      ORDER BY score DESC, id LIMIT $4`,
    ...params,
    ...(where?.params ?? []),
  );
  const hits = rows.map(({ key, id, score, found }) => {
    const matched = new Set(terms.flatMap(({ word }, place) => (found[place]! > 0 ? [word] : [])));
    return { key, id, score, matched: matched.size / words };
  });
  return { hits, count: rows[0]?.count ?? 0 };
}

/** Returns the number of terms of a statement for this many: few different ones, because each is prepared once per connection. */
function statementSize(terms: number): number {
  let size = 1;
  while (size < terms) size = size < 4 ? size + 1 : (size & (size - 1)) === 0 ? size * 1.5 : (size * 4) / 3;
  return size;
}

import type { KeywordRanked } from "../../../ports/recall-store.ts";
import type { Language } from "../../../text/language.ts";
import { languageMarker, MARKED_LANGUAGES, queryTerms } from "../../../text/terms.ts";
import type { PgValue, PostgresTx } from "../driver/driver.ts";
import type { ProjectTables } from "./project-tables.ts";
import { rankAll, rankCandidates } from "./rank-candidates.ts";

/** A condition on the records of a collection (`r`), with the caller's values as parameters, numbered from `firstParam`. */
export interface Where {
  readonly sql: string;
  readonly params: readonly PgValue[];
}

/** Builds a condition whose parameters follow the existing ones. */
export type WhereFrom = (firstParam: number) => Where | undefined;

/** Longest lexeme of a tsvector, in bytes; PostgreSQL refuses 2,047. */
const LEXEME_BYTES = 2_000;
/** Most positions that a tsvector stores per lexeme. */
const POSITIONS_MAX = 255;

/** Returns terms as the text of a tsvector: each with as many positions as it has occurrences. */
export function tsvectorOf(terms: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const term of terms) counts.set(term, Math.min(POSITIONS_MAX, (counts.get(term) ?? 0) + 1));
  return [...counts]
    .filter(([term]) => Buffer.byteLength(term) <= LEXEME_BYTES)
    .map(([term, count]) => `${quoteLexeme(term)}:${Array.from({ length: count }, (_, index) => index + 1).join(",")}`)
    .join(" ");
}

/** Quotes a term, so that user input is never query syntax. */
export function quoteLexeme(term: string): string {
  return `'${term.replace(/['\\]/g, "$&$&")}'`;
}

/** Up to this many records, a query scores all matching records with current figures; above, it scores candidates. */
const SCORE_ALL_MAX = 5_000;

/** Returns the records whose text has terms of the query, by the BM25 of SQLite's FTS5, best first. */
export async function rankByKeywords(
  tx: PostgresTx,
  { statistics, exactMax }: Pick<ProjectTables, "statistics" | "exactMax">,
  records: string,
  query: string,
  where: WhereFrom,
  limit: number,
): Promise<KeywordRanked[]> {
  const words = queryTerms(query, await indexedLanguages(tx, records));
  if (words.length === 0) return [];
  const asked = words.flatMap((terms, word) => terms.map((term) => ({ word, lexeme: quoteLexeme(term) })));
  const scoreAllMax = exactMax === Number.POSITIVE_INFINITY ? exactMax : Math.min(exactMax, SCORE_ALL_MAX);
  const figures = await statistics.read(
    tx,
    records,
    asked.map(({ lexeme }) => lexeme),
    scoreAllMax,
  );
  const size = figures.records;
  const terms = asked
    .map((term, index) => ({ ...term, count: figures.counts[index]! }))
    .filter(({ count }) => count > 0)
    .map(({ count, ...term }) => ({ ...term, weight: inverseFrequency(size, count), share: Math.min(1, count / size) }))
    .sort((a, b) => b.weight - a.weight);
  if (terms.length === 0) return [];
  const rank = size <= scoreAllMax ? rankAll : rankCandidates;
  return rank(tx, { records, terms, words: words.length, size, length: figures.length, where, limit });
}

function inverseFrequency(records: number, count: number): number {
  return Math.max(Math.log(Math.max(0, records - count + 0.5) / (count + 0.5)), 1e-6);
}

const MARKERS = MARKED_LANGUAGES.map((language) => quoteLexeme(languageMarker(language)));

/** Returns the languages whose stems the index contains. */
async function indexedLanguages(tx: PostgresTx, records: string): Promise<Language[]> {
  const found = await tx.all<{ place: number }>(
    `SELECT place::int FROM unnest($1::text[]) WITH ORDINALITY AS marked (marker, place)
      WHERE EXISTS (SELECT 1 FROM ${records} r WHERE r.terms @@ marker::tsquery)`,
    MARKERS,
  );
  return found.map(({ place }) => MARKED_LANGUAGES[place - 1]!);
}

import type { KeywordRanked } from "../../../ports/recall-store.ts";
import type { Language } from "../../../text/language.ts";
import { languageMarker, MARKED_LANGUAGES, queryTerms } from "../../../text/terms.ts";
import type { PgValue, PostgresTx } from "../driver/driver.ts";

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

/**
 * The occurrences of a term in a record, from `ts_rank`: with equal weights it is 0.1 times the sum of 1/i² over the occurrences, divided
 * by π²/6. The rest of that series is close to 1 / (n + 0.5), so rounding yields the exact number. Unnesting the lexemes would take
 * ten times as long.
 */
const OCCURRENCES = "round(1 / (1.644934 - 16.4493406685 * ts_rank(r.terms, term)::float8) - 0.5)";

/** Returns the records whose text has terms of the query, by the BM25 of SQLite's FTS5, best first. */
export async function rankByKeywords(
  tx: PostgresTx,
  records: string,
  query: string,
  whereFrom: WhereFrom,
  limit: number,
): Promise<KeywordRanked[]> {
  const words = queryTerms(query, await indexedLanguages(tx, records));
  if (words.length === 0) return [];
  const asked = words.flatMap((terms, word) => terms.map((term) => ({ word, term: quoteLexeme(term) })));
  const where = whereFrom(4);
  return tx.all<KeywordRanked>(
    `WITH collection AS (SELECT count(*)::float8 AS records, greatest(avg(term_count), 1)::float8 AS length FROM ${records}),
          weighed AS (
            SELECT word, term, length, greatest(ln((records - found.count + 0.5) / (found.count + 0.5)), 1e-6) AS weight
              FROM unnest($1::int[], $2::text[]) AS asked (word, lexeme), LATERAL (SELECT lexeme::tsquery AS term) AS parsed, collection,
                   LATERAL (SELECT count(*) FROM ${records} r WHERE r.terms @@ term) AS found
          ),
          occurring AS (
            SELECT r.key, r.id, word, weight, ${OCCURRENCES} AS n, 1.2 * (0.25 + 0.75 * r.term_count / length) AS damping
              FROM weighed JOIN ${records} r ON r.terms @@ term WHERE ${where?.sql ?? "true"}
          )
     SELECT key, id, sum(weight * n * 2.2 / (n + damping))::float8 AS score, count(DISTINCT word)::float8 / ${words.length} AS matched
       FROM occurring GROUP BY key, id ORDER BY score DESC, id LIMIT $3`,
    asked.map(({ word }) => word),
    asked.map(({ term }) => term),
    limit,
    ...(where?.params ?? []),
  );
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

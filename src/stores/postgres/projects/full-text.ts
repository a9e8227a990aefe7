import type { KeywordRanked } from "../../../ports/recall-store.ts";
import { extractQueryTerms, extractTerms } from "../../../text/terms.ts";
import type { PgValue, PostgresTx } from "../driver/driver.ts";

/** A condition on the records of a collection (`r`), with the person's values bound; `$n` counts on from `first`. */
export interface Where {
  readonly sql: string;
  readonly params: readonly PgValue[];
}

/** Builds a condition whose parameters follow the existing ones. */
export type WhereFrom = (firstParam: number) => Where | undefined;

/** What goes into a record's `terms` column, through to_tsvector. */
export function wordsText(text: string): string {
  return extractTerms(text).join(" ");
}

/**
 * The records whose text has words of the query, best first. PostgreSQL's own rank knows nothing of how rare a word is, so each
 * word's rank is weighted by it here, as BM25 does.
 */
export async function rankByKeywords(
  tx: PostgresTx,
  records: string,
  query: string,
  whereFrom: WhereFrom,
  limit: number,
): Promise<KeywordRanked[]> {
  const words = extractQueryTerms(query);
  if (words.length === 0) return [];
  const where = whereFrom(3);
  return tx.all<KeywordRanked>(
    `WITH asked AS (SELECT DISTINCT plainto_tsquery('english', word) AS term FROM unnest($1::text[]) AS word),
          weighed AS (
            SELECT term, ln(1 + (all_records.count - found.count + 0.5) / (found.count + 0.5)) AS weight
              FROM asked, (SELECT count(*) FROM ${records}) AS all_records, LATERAL (SELECT count(*) FROM ${records} r WHERE r.terms @@ term) AS found
             WHERE numnode(term) > 0
          )
     SELECT r.id, sum(weight * ts_rank(r.terms, term, 1))::float8 AS score, count(*)::float8 / (SELECT count(*) FROM weighed) AS matched
       FROM weighed JOIN ${records} r ON r.terms @@ term
      WHERE ${where?.sql ?? "true"}
      GROUP BY r.id ORDER BY score DESC, r.id LIMIT $2`,
    words,
    limit,
    ...(where?.params ?? []),
  );
}

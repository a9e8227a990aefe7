import type { KeywordRanked } from "../../../ports/recall-store.ts";
import { extractQueryTerms, extractTerms } from "../../../text/terms.ts";
import type { PgValue, PostgresTx } from "../driver/driver.ts";

/** A condition on the records of a collection (`r`), with the caller's values as parameters, numbered from `firstParam`. */
export interface Where {
  readonly sql: string;
  readonly params: readonly PgValue[];
}

/** Builds a condition whose parameters follow the existing ones. */
export type WhereFrom = (firstParam: number) => Where | undefined;

/** Returns the terms of a text, from which to_tsvector makes the `terms` column. */
export function searchTerms(text: string): string {
  return extractTerms(text).join(" ");
}

/**
 * Returns the records whose text has terms of the query, best first. ts_rank ignores how rare a term is, so the rank of each term is
 * multiplied by its inverse document frequency, as BM25 does.
 */
export async function rankByKeywords(
  tx: PostgresTx,
  records: string,
  query: string,
  whereFrom: WhereFrom,
  limit: number,
): Promise<KeywordRanked[]> {
  const terms = extractQueryTerms(query);
  if (terms.length === 0) return [];
  const where = whereFrom(3);
  return tx.all<KeywordRanked>(
    `WITH asked AS (SELECT DISTINCT plainto_tsquery('english', one) AS term FROM unnest($1::text[]) AS one),
          weighed AS (
            SELECT term, ln(1 + (all_records.count - found.count + 0.5) / (found.count + 0.5)) AS weight
              FROM asked, (SELECT count(*) FROM ${records}) AS all_records, LATERAL (SELECT count(*) FROM ${records} r WHERE r.terms @@ term) AS found
             WHERE numnode(term) > 0
          )
     SELECT r.id, sum(weight * ts_rank(r.terms, term, 1))::float8 AS score, count(*)::float8 / (SELECT count(*) FROM weighed) AS matched
       FROM weighed JOIN ${records} r ON r.terms @@ term
      WHERE ${where?.sql ?? "true"}
      GROUP BY r.id ORDER BY score DESC, r.id LIMIT $2`,
    terms,
    limit,
    ...(where?.params ?? []),
  );
}

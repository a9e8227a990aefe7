import type { PostgresTx } from "../driver/driver.ts";

/** What BM25 needs to know of a collection. */
export interface CollectionFigures {
  readonly records: number;
  /** Terms per record, on average. */
  readonly length: number;
  /** The records that contain each of the terms asked for, in their order. */
  readonly counts: readonly number[];
}

/** Figures of the collections of one project. */
export interface TermStatistics {
  /** Returns current figures up to `exactMax` records. Above, figures of common terms may be as old as `TTL_MS`. */
  read(tx: PostgresTx, records: string, lexemes: readonly string[], exactMax: number): Promise<CollectionFigures>;
}

/** Milliseconds for which figures of a large collection are cached. Counting takes longer than ranking there. */
const TTL_MS = 60_000;
/** Terms in at least this many records are cached. Others are counted quickly, and a new record must be found at once. */
const COMMON_MIN = 1_000;
/** Common terms that are cached per collection. */
const COMMON_MAX = 10_000;

interface Cached {
  readonly records: number;
  readonly length: number;
  readonly countedAt: number;
  readonly common: Map<string, number>;
}

/** Counts records and terms, and caches the counts of large collections: the ranking of a query must not count the whole table. */
export function termStatistics(now: () => number = () => performance.now()): TermStatistics {
  const cache = new Map<string, Cached>();

  /** Returns the figures of a large collection, or `undefined` for one that is small enough to be counted for each query. */
  async function readLarge(tx: PostgresTx, records: string, exactMax: number): Promise<Cached | undefined> {
    const known = cache.get(records);
    if (known && now() - known.countedAt < TTL_MS) return known;
    const sql = `SELECT count(*) > $1::bigint AS large FROM (SELECT 1 FROM ${records} r LIMIT $1::bigint + 1) AS counted`;
    if (!(await tx.get<{ large: boolean }>(sql, exactMax))!.large) return undefined;
    const counted = { ...(await countRecords(tx, records)), countedAt: now(), common: new Map<string, number>() };
    cache.set(records, counted);
    return counted;
  }

  return {
    async read(tx, records, lexemes, exactMax) {
      const large = exactMax === Number.POSITIVE_INFINITY ? undefined : await readLarge(tx, records, exactMax);
      if (!large) return { ...(await countRecords(tx, records)), counts: await countTerms(tx, records, lexemes) };
      const unknown = lexemes.filter((lexeme) => !large.common.has(lexeme));
      const counted = new Map(large.common);
      for (const [index, count] of (await countTerms(tx, records, unknown)).entries()) {
        counted.set(unknown[index]!, count);
        if (count >= COMMON_MIN && large.common.size < COMMON_MAX) large.common.set(unknown[index]!, count);
      }
      return { records: large.records, length: large.length, counts: lexemes.map((lexeme) => counted.get(lexeme)!) };
    },
  };
}

async function countRecords(tx: PostgresTx, records: string): Promise<{ readonly records: number; readonly length: number }> {
  const sql = `SELECT count(*)::float8 AS records, greatest(avg(term_count), 1)::float8 AS length FROM ${records}`;
  return (await tx.get<{ records: number; length: number }>(sql))!;
}

async function countTerms(tx: PostgresTx, records: string, lexemes: readonly string[]): Promise<number[]> {
  if (lexemes.length === 0) return [];
  const rows = await tx.all<{ count: number }>(
    `SELECT found.count FROM unnest($1::tsquery[]) WITH ORDINALITY AS asked (term, place),
            LATERAL (SELECT count(*) FROM ${records} r WHERE r.terms @@ term) AS found ORDER BY place`,
    lexemes,
  );
  return rows.map(({ count }) => count);
}

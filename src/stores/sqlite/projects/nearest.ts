import type { Ranked } from "../../../ports/recall-store.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import type { SqliteDatabase, SqliteTx } from "../driver/driver.ts";
import { findCollection } from "../vectors/collection.ts";
import type { VectorHit } from "../vectors/search.ts";
import type { VectorSearcher } from "../vectors/searcher.ts";
import type { EmbeddedRecords } from "./embeddings.ts";
import { type Where, withIds } from "./full-text.ts";

export type { VectorSearcher };

export interface NearestQuery {
  readonly versionId: number;
  readonly vector: Float32Array;
  readonly limit: number;
  readonly where: Where | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Returns the ids that pass the filter: `all` without a filter, `many` above the limit. */
export function matchingIds(
  db: SqliteDatabase,
  { table }: EmbeddedRecords,
  where: Where | undefined,
  limit: number,
): "all" | "many" | readonly string[] {
  if (!where) return "all";
  const rows = db.read((tx) =>
    tx.all<{ id: string }>(`SELECT r.id FROM ${table} r WHERE ${where.sql} LIMIT ?`, ...where.params, limit + 1),
  );
  return rows.length > limit ? "many" : rows.map(({ id }) => id);
}

export interface NearestRecords {
  /** Best first. */
  readonly ranked: readonly (Ranked & Keyed)[];
  /** True if a record was replaced during the scan: its old vector may have been found and its new one not. The caller searches again. */
  readonly incomplete: boolean;
}

/** Limit of vectors that a search reads to find enough records. */
const SEARCHED_MAX = 8_000;

/**
 * Ranks the records that pass the filter by cosine to the query. A record in several pieces counts by its best one. The filter
 * applies before the scan. Another thread scans the vectors, from a snapshot of its own, so the rows are compared with it afterwards.
 */
export async function nearest(
  opened: SqliteDatabase,
  database: DatabaseHandle,
  vectors: VectorSearcher,
  records: EmbeddedRecords,
  { versionId, vector, limit, where, signal }: NearestQuery,
): Promise<NearestRecords> {
  const { collection, table, slots } = records;
  const change = (tx: SqliteTx) => findCollection(tx, collection, versionId)?.change;
  const { allow, before, long } = opened.read((tx) => ({
    allow: where && matchingKeys(tx, records, where),
    before: change(tx),
    long: slots > 1 && tx.get(`SELECT 1 FROM ${table} WHERE pieces > 1 LIMIT 1`) !== undefined,
  }));
  signal?.throwIfAborted();
  if (allow?.length === 0) return { ranked: [], incomplete: false };
  let hits: readonly VectorHit[];
  let best: ReadonlyMap<number, number>;
  for (let wanted = long ? 2 * limit : limit; ; wanted = Math.min(SEARCHED_MAX, 4 * wanted)) {
    hits = await vectors.search({ collection, versionId, query: vector, limit: wanted, allow, signal });
    best = bestOfRecords(hits, slots);
    if (best.size >= limit || hits.length < wanted || wanted >= SEARCHED_MAX) break;
  }
  const db = await database(); // the scan may have taken long enough for an idle database to be closed
  return db.read((tx) => {
    const found = [...best].slice(0, limit).map(([key, score]) => ({ key, score }));
    const ranked = withIds(tx, table, found);
    // Keys are never reused: if the same keys pass the filter as before, the set did not change in between.
    const sameRecords = !where || change(tx) === before || sameKeys(allow!, matchingKeys(tx, records, where));
    return { ranked, incomplete: ranked.length < found.length || !sameRecords };
  });
}

/** Returns the score of each record's best piece, best first: the first hit of a record is its best. */
function bestOfRecords(hits: readonly VectorHit[], slots: number): ReadonlyMap<number, number> {
  const best = new Map<number, number>();
  for (const { key, score } of hits) {
    const record = Math.floor(key / slots);
    if (!best.has(record)) best.set(record, score);
  }
  return best;
}

/** Returns the keys of the vectors that records passing the filter may have, ascending. */
function matchingKeys(tx: SqliteTx, { table, slots }: EmbeddedRecords, where: Where): Int32Array {
  const rows = tx.all<{ key: number; pieces: number }>(
    `SELECT r.key, ${slots > 1 ? "r.pieces" : "1"} AS pieces FROM ${table} r WHERE ${where.sql} ORDER BY r.key`,
    ...where.params,
  );
  return Int32Array.from(rows.flatMap(({ key, pieces }) => Array.from({ length: pieces }, (_, piece) => key * slots + piece)));
}

function sameKeys(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((key, index) => key === b[index]);
}

/** A record with its key in the database. */
export interface Keyed {
  readonly key: number;
  readonly id: string;
}

/** Caches the keys of ids that a search has just found: a lookup by key is cheaper than one through the index of ids. */
export interface KnownKeys {
  note(records: readonly Keyed[]): void;
  /** Returns null for an unknown id. A key is never reused, but its record may have another id by now. */
  of(id: string): number | null;
}

const KEYS_MAX = 2_000;

export function knownKeys(): KnownKeys {
  const keys = new Map<string, number>();
  return {
    note(records) {
      if (keys.size + records.length > KEYS_MAX) keys.clear();
      for (const { key, id } of records) keys.set(id, key);
    },
    of: (id) => keys.get(id) ?? null,
  };
}

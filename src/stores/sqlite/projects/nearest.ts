import type { Ranked } from "../../../ports/recall-store.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import type { SqliteDatabase, SqliteTx } from "../driver/driver.ts";
import type { VectorSearcher } from "../vectors/searcher.ts";
import { findCollection } from "../vectors/writer.ts";
import type { EmbeddedRecords } from "./embeddings.ts";
import type { Where } from "./full-text.ts";

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

/**
 * Ranks the records that pass the filter by cosine to the query. The filter applies before the scan. Another thread scans the
 * vectors, from a snapshot of its own, so the rows are compared with it afterwards.
 */
export async function nearest(
  opened: SqliteDatabase,
  database: DatabaseHandle,
  vectors: VectorSearcher,
  { collection, table }: EmbeddedRecords,
  { versionId, vector, limit, where, signal }: NearestQuery,
): Promise<NearestRecords> {
  const change = (tx: SqliteTx) => findCollection(tx, collection, versionId)?.change;
  const { allow, before } = opened.read((tx) => ({ allow: where && matchingKeys(tx, table, where), before: change(tx) }));
  signal?.throwIfAborted();
  if (allow?.length === 0) return { ranked: [], incomplete: false };
  const hits = await vectors.search({ collection, versionId, query: vector, limit, allow, signal });
  const db = await database(); // the scan may have taken long enough for an idle database to be closed
  return db.read((tx) => {
    const ranked = hits.flatMap(({ key, score }) => {
      const row = tx.get<{ id: string }>(`SELECT id FROM ${table} WHERE key = ?`, key);
      return row ? [{ key, id: row.id, score }] : [];
    });
    // Keys are never reused: if the same keys pass the filter as before, the set did not change in between.
    const sameRecords = !where || change(tx) === before || sameKeys(allow!, matchingKeys(tx, table, where));
    return { ranked, incomplete: ranked.length < hits.length || !sameRecords };
  });
}

function matchingKeys(tx: SqliteTx, table: string, where: Where): Int32Array {
  const rows = tx.all<{ key: number }>(`SELECT r.key FROM ${table} r WHERE ${where.sql} ORDER BY r.key`, ...where.params);
  return Int32Array.from(rows, ({ key }) => key);
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

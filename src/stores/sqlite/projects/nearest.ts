import type { Ranked } from "../../../ports/recall-store.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import type { SqliteDatabase, SqliteTx } from "../driver/driver.ts";
import type { Keyed } from "../driver/known-keys.ts";
import { findSpace } from "../vectors/collections.ts";
import type { VectorSearcher } from "../vectors/searcher.ts";
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

/** The ids that a filter lets through, or that there are too many to name. */
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

/** Against records that change without a pause, a search ends with what it has. */
const ATTEMPTS = 10;

/**
 * The records nearest to the query, best first, among those that the filter lets through: the filter is applied first. The vectors
 * are scanned by another thread, in a moment of its own; records that were replaced meanwhile are searched again, so that none is
 * missing because its old vector was found and its new one was not.
 */
export async function nearest(
  opened: SqliteDatabase,
  database: DatabaseHandle,
  vectors: VectorSearcher,
  { collection, table }: EmbeddedRecords,
  { versionId, vector, limit, where, signal }: NearestQuery,
): Promise<(Ranked & Keyed)[]> {
  let db = opened;
  for (let attempt = 1; ; attempt++) {
    const change = (tx: SqliteTx) => findSpace(tx, collection, versionId)?.change;
    const { allow, before } = db.read((tx) => ({ allow: where && matchingKeys(tx, table, where), before: change(tx) }));
    signal?.throwIfAborted();
    if (allow?.length === 0) return [];
    const hits = await vectors.search({ collection, versionId, query: vector, limit, allow, signal });
    db = await database(); // the scan may have taken long enough for an idle database to be closed
    const { found, settled } = db.read((tx) => {
      const known = hits.flatMap(({ key, score }) => {
        const row = tx.get<{ id: string }>(`SELECT id FROM ${table} WHERE key = ?`, key);
        return row ? [{ key, id: row.id, score }] : [];
      });
      // Keys are never used again: if the same ones match as before, they did all the time.
      const same = !where || change(tx) === before || sameKeys(allow!, matchingKeys(tx, table, where));
      return { found: known, settled: known.length === hits.length && same };
    });
    if (settled || attempt === ATTEMPTS) return found;
  }
}

function matchingKeys(tx: SqliteTx, table: string, where: Where): Int32Array {
  const rows = tx.all<{ key: number }>(`SELECT r.key FROM ${table} r WHERE ${where.sql} ORDER BY r.key`, ...where.params);
  return Int32Array.from(rows, ({ key }) => key);
}

function sameKeys(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((key, index) => key === b[index]);
}

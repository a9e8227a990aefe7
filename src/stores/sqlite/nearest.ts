import type { Ranked } from "../../ports/recall-store.ts";
import type { SqliteDatabase } from "./driver.ts";
import type { EmbeddedRecords } from "./embeddings.ts";
import type { VectorSearcher } from "./vectors/searcher.ts";
import type { Where } from "./words.ts";

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

/** The records nearest to the query, best first, among those that the filter lets through: the filter is applied first. */
export async function nearest(
  db: SqliteDatabase,
  vectors: VectorSearcher,
  { collection, table }: EmbeddedRecords,
  { versionId, vector, limit, where, signal }: NearestQuery,
): Promise<Ranked[]> {
  const allow =
    where &&
    db.read((tx) =>
      Int32Array.from(
        tx.all<{ key: number }>(`SELECT r.key FROM ${table} r WHERE ${where.sql} ORDER BY r.key`, ...where.params),
        ({ key }) => key,
      ),
    );
  signal?.throwIfAborted();
  if (allow?.length === 0) return [];
  const hits = await vectors.search({ collection, versionId, query: vector, limit, allow, signal });
  return db.read((tx) =>
    hits.flatMap(({ key, score }) => {
      const row = tx.get<{ id: string }>(`SELECT id FROM ${table} WHERE key = ?`, key);
      return row ? [{ id: row.id, score }] : []; // deleted since
    }),
  );
}

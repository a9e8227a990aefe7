import type { DatabaseSync } from "node:sqlite";
import type { DatabaseShape } from "../../../ports/migration.ts";
import type { SqliteTx, SqlValue } from "../driver/driver.ts";
import { readCollection } from "../vectors/collection.ts";
import { rebuild } from "../vectors/rebuild.ts";
import { CENTROIDS } from "../vectors/segments.ts";

/** Rebuilds and checks the vector codes of a file that is being built. Undefined for a database without vectors. */
export function vectorCodes(db: DatabaseSync, shape: DatabaseShape): { rebuildCodes(): void; problems(): string[] } | undefined {
  if (!shape.tables.some(({ name }) => name === "vectors")) return undefined;
  const tx: SqliteTx = {
    run(sql, ...params) {
      const { changes, lastInsertRowid } = db.prepare(sql).run(...params);
      return { changes: Number(changes), lastId: Number(lastInsertRowid) };
    },
    get: <Row>(sql: string, ...params: readonly SqlValue[]) => db.prepare(sql).get(...params) as Row | undefined,
    all: <Row>(sql: string, ...params: readonly SqlValue[]) => db.prepare(sql).all(...params) as Row[],
    exec: (sql) => db.exec(sql),
  };
  const collections = () => tx.all<{ id: number }>("SELECT id FROM vector_collections").flatMap(({ id }) => readCollection(tx, id) ?? []);
  return {
    rebuildCodes() {
      for (const collection of collections()) rebuild(tx, collection);
    },
    problems: () =>
      collections().flatMap(({ id }) => {
        const { vectors } = tx.get<{ vectors: number }>("SELECT count(*) AS vectors FROM vectors WHERE collection_id = ?", id)!;
        // A delta row overrides codes in segments.
        const { codes } = tx.get<{ codes: number }>(
          `SELECT coalesce((SELECT sum(count) FROM vector_segments WHERE collection_id = ?1 AND ready = 1 AND list IS NOT ?2), 0)
             + coalesce((SELECT sum((code IS NOT NULL) - stale) FROM vector_delta WHERE collection_id = ?1), 0) AS codes`,
          id,
          CENTROIDS,
        )!;
        return vectors === codes ? [] : [`${vectors} vectors of collection ${id} have ${codes} codes.`];
      }),
  };
}

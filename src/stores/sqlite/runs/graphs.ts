import type { Clock } from "../../../model/ids.ts";
import type { GraphCatalog } from "../../../ports/run-queue.ts";
import type { SqliteDatabase } from "../driver/driver.ts";

interface ShapeRow {
  shape: string;
}

/** The shapes of graphs, one row per graph and fingerprint. */
export function sqliteGraphCatalog(database: () => Promise<SqliteDatabase>, now: Clock): GraphCatalog {
  return {
    async saveGraph(shape) {
      const db = await database();
      const { graph, fingerprint } = shape;
      if (db.read((tx) => tx.get("SELECT 1 FROM graphs WHERE graph = ? AND fingerprint = ?", graph, fingerprint))) return;
      await db.write((tx) =>
        tx.run(
          "INSERT INTO graphs (graph, fingerprint, shape, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
          graph,
          fingerprint,
          JSON.stringify(shape),
          now(),
        ),
      );
    },

    async getGraph(graph, fingerprint) {
      const db = await database();
      const row = db.read((tx) => tx.get<ShapeRow>("SELECT shape FROM graphs WHERE graph = ? AND fingerprint = ?", graph, fingerprint));
      return row && JSON.parse(row.shape);
    },

    async listGraphs({ graph, limit }) {
      const db = await database();
      const sql = `SELECT shape FROM graphs WHERE ?1 IS NULL OR graph = ?1 ORDER BY created_at DESC, graph, fingerprint LIMIT ?2`;
      return db.read((tx) => tx.all<ShapeRow>(sql, graph ?? null, limit)).map(({ shape }) => JSON.parse(shape));
    },
  };
}

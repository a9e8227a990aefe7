import type { GraphCatalog } from "../../../ports/run-queue.ts";
import type { RunStatements } from "./statements.ts";

interface ShapeRow {
  shape: string;
}

/** The shapes of graphs, one row per graph and fingerprint. */
export function postgresGraphCatalog({ ask }: RunStatements): GraphCatalog {
  return {
    async saveGraph(shape) {
      const text =
        "INSERT INTO runs.graphs (graph, fingerprint, shape, created_at) VALUES ($1, $2, $3, clock_timestamp()) ON CONFLICT DO NOTHING";
      await ask(text, [shape.graph, shape.fingerprint, JSON.stringify(shape)]);
    },

    async getGraph(graph, fingerprint) {
      const [row] = await ask<ShapeRow>("SELECT shape FROM runs.graphs WHERE graph = $1 AND fingerprint = $2", [graph, fingerprint]);
      return row && JSON.parse(row.shape);
    },

    async listGraphs({ graph, limit }) {
      const text = `SELECT shape FROM runs.graphs WHERE $1::text IS NULL OR graph = $1 ORDER BY created_at DESC, graph, fingerprint LIMIT $2`;
      return (await ask<ShapeRow>(text, [graph ?? null, limit])).map(({ shape }) => JSON.parse(shape));
    },
  };
}

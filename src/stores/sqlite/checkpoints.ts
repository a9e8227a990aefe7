import type { Checkpoint, CheckpointSort } from "../../model/checkpoint.ts";
import type { CheckpointStore } from "../../ports/checkpoint-store.ts";
import type { DatabaseHandle } from "./databases.ts";
import type { SqliteTx } from "./driver.ts";

/** The checkpoints of one project in its SQLite file. */
export function sqliteCheckpoints(projectPath: string, database: DatabaseHandle): CheckpointStore {
  const toCheckpoint = (tx: SqliteTx, row: Row): Checkpoint => ({
    id: row.id,
    projectPath,
    summary: row.summary,
    description: row.description,
    context: JSON.parse(row.context),
    tags: tx
      .all<{ tag: string }>("SELECT tag FROM checkpoint_tags WHERE checkpoint_key = ? ORDER BY position", row.key)
      .map(({ tag }) => tag),
    tokenCount: row.token_count,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  });

  return {
    async put(checkpoint) {
      const db = await database();
      await db.write((tx) => {
        const { changes, lastId } = tx.run(
          `INSERT INTO checkpoints (id, summary, description, context, token_count, created_at, updated_at)
           VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
          checkpoint.id,
          checkpoint.summary,
          checkpoint.description,
          JSON.stringify(checkpoint.context),
          checkpoint.tokenCount,
          checkpoint.createdAt,
          checkpoint.updatedAt,
        );
        if (changes === 0) return;
        for (const [position, tag] of checkpoint.tags.entries())
          tx.run(
            "INSERT INTO checkpoint_tags (checkpoint_key, position, tag, folded) VALUES (?, ?, ?, ?)",
            lastId,
            position,
            tag,
            tag.toLowerCase(),
          );
      });
    },

    async get(id) {
      const db = await database();
      return db.read((tx) => {
        const row = tx.get<Row>("SELECT * FROM checkpoints WHERE id = ?", id);
        return row && toCheckpoint(tx, row);
      });
    },

    async list({ limit, offset, sortBy, after }) {
      const db = await database();
      const column = SORT_COLUMN[sortBy];
      return db.read((tx) => {
        const { total } = tx.get<{ total: number }>("SELECT count(*) AS total FROM checkpoints")!;
        const rows = after
          ? tx.all<Row>(
              `SELECT * FROM checkpoints WHERE ${column} < ? OR (${column} = ? AND id > ?) ORDER BY ${column} DESC, id LIMIT ? OFFSET ?`,
              after.at,
              after.at,
              after.id,
              limit,
              offset,
            )
          : tx.all<Row>(`SELECT * FROM checkpoints ORDER BY ${column} DESC, id LIMIT ? OFFSET ?`, limit, offset);
        return { checkpoints: rows.map((row) => toCheckpoint(tx, row)), total };
      });
    },

    async delete(id) {
      const db = await database();
      return db.write((tx) => tx.run("DELETE FROM checkpoints WHERE id = ?", id).changes > 0);
    },
  };
}

interface Row {
  key: number;
  id: string;
  summary: string;
  description: string;
  context: string;
  token_count: number;
  created_at: string;
  updated_at: string;
}

/** The only way a caller's choice of order reaches SQL. */
const SORT_COLUMN: Record<CheckpointSort, string> = { created_at: "created_at", updated_at: "updated_at" };

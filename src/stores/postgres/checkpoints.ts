import type { Checkpoint, CheckpointSort } from "../../model/checkpoint.ts";
import type { CheckpointStore } from "../../ports/checkpoint-store.ts";
import type { PostgresTx, WriteOptions } from "./driver.ts";
import { toTimestamp } from "./time.ts";

/** One project's schema. */
export interface ProjectTables {
  read<T>(work: (tx: PostgresTx) => Promise<T>): Promise<T>;
  write<T>(work: (tx: PostgresTx) => Promise<T>, options?: WriteOptions): Promise<T>;
}

/** The checkpoints of one project in its PostgreSQL schema. */
export function postgresCheckpoints(projectPath: string, tables: ProjectTables): CheckpointStore {
  const toCheckpoint = (row: Row): Checkpoint => ({
    id: row.id,
    projectPath,
    summary: row.summary,
    description: row.description,
    context: JSON.parse(row.context),
    tags: row.tags,
    tokenCount: row.token_count,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  });

  return {
    async put(checkpoint) {
      await tables.write(
        (tx) =>
          tx.run(
            `INSERT INTO checkpoints (id, summary, description, context, tags, folded_tags, token_count, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING`,
            checkpoint.id,
            checkpoint.summary,
            checkpoint.description,
            JSON.stringify(checkpoint.context),
            checkpoint.tags,
            checkpoint.tags.map((tag) => tag.toLowerCase()),
            checkpoint.tokenCount,
            toTimestamp(checkpoint.createdAt),
            toTimestamp(checkpoint.updatedAt),
          ),
        { idempotent: true },
      );
    },

    async get(id) {
      const row = await tables.read((tx) => tx.get<Row>(`SELECT ${COLUMNS} FROM checkpoints WHERE id = $1`, id));
      return row && toCheckpoint(row);
    },

    async list({ limit, offset, sortBy, after }) {
      const column = SORT_COLUMN[sortBy];
      return tables.read(async (tx) => {
        const counted = await tx.get<{ total: number }>("SELECT count(*) AS total FROM checkpoints");
        const order = `ORDER BY ${column} DESC, id LIMIT $1 OFFSET $2`;
        const rows = after
          ? await tx.all<Row>(
              `SELECT ${COLUMNS} FROM checkpoints WHERE ${column} <= $3 AND (${column} < $3 OR id > $4) ${order}`,
              limit,
              offset,
              toTimestamp(after.at),
              after.id,
            )
          : await tx.all<Row>(`SELECT ${COLUMNS} FROM checkpoints ${order}`, limit, offset);
        return { checkpoints: rows.map(toCheckpoint), total: counted!.total };
      });
    },

    async delete(id) {
      return (await tables.write((tx) => tx.run("DELETE FROM checkpoints WHERE id = $1", id))) > 0;
    },
  };
}

const COLUMNS = "id, summary, description, context, tags, token_count, created_at, updated_at";

interface Row {
  id: string;
  summary: string;
  description: string;
  context: string;
  tags: string[];
  token_count: number;
  created_at: string;
  updated_at: string;
}

/** The only way a caller's choice of order reaches SQL. */
const SORT_COLUMN: Record<CheckpointSort, string> = { created_at: "created_at", updated_at: "updated_at" };

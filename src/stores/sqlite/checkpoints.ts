import type { Checkpoint, CheckpointSort } from "../../model/checkpoint.ts";
import type { CheckpointFilter, CheckpointStore } from "../../ports/checkpoint-store.ts";
import type { VersionedVector } from "../../ports/embedding-store.ts";
import { checkpointText } from "../../text/embedding-text.ts";
import type { DatabaseHandle } from "./databases.ts";
import type { SqliteTx, SqlValue } from "./driver.ts";
import { cosines, type EmbeddedRecords, putRecordVectors, removeRecordVectors, sqliteEmbeddings } from "./embeddings.ts";
import { matchingIds, nearest, type VectorSearcher } from "./nearest.ts";
import { putWords, rankByWords, removeWords, type Where } from "./words.ts";

const RECORDS: EmbeddedRecords = {
  collection: "checkpoints",
  table: "checkpoints",
  textColumns: ["summary", "description"],
  textOf: ({ summary = "", description = "" }) => checkpointText({ summary, description }),
};
const WORDS = "checkpoint_words";

/** The checkpoints of one project in its SQLite file. */
export function sqliteCheckpoints(projectPath: string, database: DatabaseHandle, vectors: VectorSearcher): CheckpointStore {
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
    revision: row.revision,
  });

  const byId = (tx: SqliteTx, id: string) => tx.get<Row>("SELECT * FROM checkpoints WHERE id = ?", id);

  return {
    embeddings: sqliteEmbeddings(RECORDS, database),

    async put(checkpoint, recordVectors = []) {
      await (await database()).write((tx) => {
        const { changes, lastId } = tx.run(
          `INSERT INTO checkpoints (id, summary, description, context, token_count, created_at, updated_at, revision)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
          checkpoint.id,
          checkpoint.summary,
          checkpoint.description,
          JSON.stringify(checkpoint.context),
          checkpoint.tokenCount,
          checkpoint.createdAt,
          checkpoint.updatedAt,
          checkpoint.revision,
        );
        if (changes > 0) putDerived(tx, lastId, checkpoint, recordVectors);
      });
    },

    async replace(checkpoint, recordVectors = []) {
      const db = await database();
      const replaced = await db.write((tx) => {
        const row = byId(tx, checkpoint.id);
        if (row?.revision !== checkpoint.revision - 1) return false;
        tx.run(
          "UPDATE checkpoints SET summary = ?, description = ?, context = ?, token_count = ?, updated_at = ?, revision = ? WHERE key = ?",
          checkpoint.summary,
          checkpoint.description,
          JSON.stringify(checkpoint.context),
          checkpoint.tokenCount,
          checkpoint.updatedAt,
          checkpoint.revision,
          row.key,
        );
        tx.run("DELETE FROM checkpoint_tags WHERE checkpoint_key = ?", row.key);
        removeRecordVectors(tx, "checkpoints", [row.key]);
        putDerived(tx, row.key, checkpoint, recordVectors);
        return true;
      });
      if (replaced) db.eraseLogLater();
      return replaced;
    },

    async get(id) {
      return (await database()).read((tx) => {
        const row = byId(tx, id);
        return row && toCheckpoint(tx, row);
      });
    },

    async getMany(ids) {
      return (await database()).read((tx) =>
        ids.flatMap((id) => {
          const row = byId(tx, id);
          return row ? [toCheckpoint(tx, row)] : [];
        }),
      );
    },

    async list({ filter = {}, limit, offset, sortBy, after }) {
      const column = SORT_COLUMN[sortBy];
      const where = whereOf(filter);
      return (await database()).read((tx) => {
        const { total } = tx.get<{ total: number }>(
          `SELECT count(*) AS total FROM checkpoints r WHERE ${where?.sql ?? "true"}`,
          ...(where?.params ?? []),
        )!;
        const rows = tx.all<Row>(
          `SELECT r.* FROM checkpoints r
            WHERE ${where?.sql ?? "true"} ${after ? `AND (r.${column} < ? OR (r.${column} = ? AND r.id > ?))` : ""}
            ORDER BY r.${column} DESC, r.id LIMIT ? OFFSET ?`,
          ...(where?.params ?? []),
          ...(after ? [after.at, after.at, after.id] : []),
          limit,
          offset,
        );
        return { checkpoints: rows.map((row) => toCheckpoint(tx, row)), total };
      });
    },

    async delete(id) {
      const db = await database();
      const removed = await db.write((tx) => remove(tx, [id]));
      if (removed > 0) await db.eraseLog();
      return removed > 0;
    },

    async deleteMany(ids) {
      const db = await database();
      const removed = await db.write((tx) => remove(tx, ids));
      if (removed > 0) await db.eraseLog();
      return removed;
    },

    async candidates({ filter, limit, denseLimit = limit, words, dense, signal }) {
      const where = whereOf(filter);
      const db = await database();
      const near = dense && nearest(db, database, vectors, RECORDS, { ...dense, limit: denseLimit, where, signal });
      const lexical = words === undefined ? [] : db.read((tx) => rankByWords(tx, WORDS, "checkpoints", words, where, limit));
      return { lexical, dense: (await near) ?? [] };
    },

    async matching(filter, limit) {
      return matchingIds(await database(), RECORDS, whereOf(filter), limit);
    },

    async similarities(versionId, vector, ids) {
      return (await database()).read((tx) => cosines(tx, RECORDS, versionId, vector, ids));
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
  revision: number;
}

/** The only way a caller's choice of order reaches SQL. */
const SORT_COLUMN: Record<CheckpointSort, string> = { created_at: "created_at", updated_at: "updated_at" };

/** Everything that follows from the record: tags, words, vectors. */
function putDerived(tx: SqliteTx, key: number, checkpoint: Checkpoint, vectors: readonly VersionedVector[]): void {
  for (const [position, tag] of checkpoint.tags.entries())
    tx.run(
      "INSERT INTO checkpoint_tags (checkpoint_key, position, tag, folded) VALUES (?, ?, ?, ?)",
      key,
      position,
      tag,
      tag.toLowerCase(),
    );
  putWords(tx, WORDS, key, `${checkpointText(checkpoint)} ${checkpoint.tags.join(" ")}`);
  putRecordVectors(tx, "checkpoints", key, vectors);
}

function remove(tx: SqliteTx, ids: readonly string[]): number {
  const keys = ids.flatMap((id) => tx.get<{ key: number }>("SELECT key FROM checkpoints WHERE id = ?", id)?.key ?? []);
  removeRecordVectors(tx, "checkpoints", keys);
  for (const key of keys) {
    removeWords(tx, WORDS, key);
    tx.run("DELETE FROM checkpoints WHERE key = ?", key);
  }
  return keys.length;
}

/** The filter as a condition on `checkpoints r`; absent when everything matches. */
function whereOf({ tags = [], tagMatch = "exact", createdFrom, createdBefore }: CheckpointFilter): Where | undefined {
  const conditions: string[] = [];
  const params: SqlValue[] = [];
  for (const tag of tags) {
    const matches = tagMatch === "exact" ? "t.folded = ?" : "instr(t.folded, ?) > 0";
    conditions.push(`EXISTS (SELECT 1 FROM checkpoint_tags t WHERE t.checkpoint_key = r.key AND ${matches})`);
    params.push(tag.toLowerCase());
  }
  if (createdFrom !== undefined) {
    conditions.push("r.created_at >= ?");
    params.push(createdFrom);
  }
  if (createdBefore !== undefined) {
    conditions.push("r.created_at < ?");
    params.push(createdBefore);
  }
  return conditions.length === 0 ? undefined : { sql: conditions.join(" AND "), params };
}

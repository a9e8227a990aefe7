import { supersede } from "../../../model/anchor.ts";
import type { Checkpoint, CheckpointSort } from "../../../model/checkpoint.ts";
import { damagedRecordError } from "../../../model/damaged-record.ts";
import { orderTime } from "../../../model/record-order.ts";
import {
  CHECKPOINT_COLUMNS,
  checkpointChecksum,
  checkpointText,
  contextPairs,
  countPieces,
  PIECES_MAX,
  type RawRow,
  readCheckpoint,
  splitStored,
} from "../../../model/stored-record.ts";
import type { CheckpointFilter, CheckpointStore, DayCount, TagCount } from "../../../ports/checkpoint-store.ts";
import type { VersionedVector } from "../../../ports/embedding-store.ts";
import { MARKED_LANGUAGES, queryTerms, recordTerms } from "../../../text/terms.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import type { SqliteTx, SqlValue } from "../driver/driver.ts";
import { sqliteDeletable } from "./deleted-records.ts";
import { cosines, cosinesByKey, type EmbeddedRecords, putRecordVectors, removeRecordVectors, sqliteEmbeddings } from "./embeddings.ts";
import { putTerms, quoteTerm, rankByKeywords, removeTerms, type Where } from "./full-text.ts";
import { claimKey, recordOfKey } from "./idempotency.ts";
import { matchingIds, nearest, type VectorSearcher } from "./nearest.ts";
import { columnList, readPage, reorderFutureRecords } from "./record-rows.ts";

const RECORDS: EmbeddedRecords = {
  collection: "checkpoints",
  table: "checkpoints",
  textColumns: ["summary", "description"],
  textOf: ({ summary = "", description = "" }) => checkpointText({ summary, description }),
  slots: PIECES_MAX,
};
const FULL_TEXT = { table: "checkpoint_fts", records: "checkpoints", hasLanguages: true };

/** The checkpoints of one project in its SQLite file. */
export function sqliteCheckpoints(projectPath: string, database: DatabaseHandle, vectors: VectorSearcher): CheckpointStore {
  const read = (tx: SqliteTx) => (row: RawRow) => readCheckpoint(withTags(tx, row), projectPath);
  const byId = (tx: SqliteTx, id: string) => tx.get<RawRow>(`SELECT ${COLUMNS} FROM checkpoints r WHERE id = ?`, id);
  const markSuperseded = (tx: SqliteTx, ids: readonly string[] = [], by: string) => {
    for (const id of ids) {
      const row = id === by ? undefined : byId(tx, id);
      const stored = row && read(tx)(row);
      if (!stored || "damaged" in stored) continue;
      const { revision, ...after } = supersede(stored.record, by);
      const checksum = checkpointChecksum({ ...after, revision });
      tx.run("UPDATE checkpoints SET superseded_by = ?, revision = ?, checksum = ? WHERE id = ?", by, revision, checksum, id);
    }
  };

  return {
    embeddings: sqliteEmbeddings(RECORDS, database),

    ...sqliteDeletable({
      collection: "checkpoints",
      database,
      rowOf(tx, id) {
        const row = byId(tx, id);
        return row && withTags(tx, row);
      },
      read: (row) => readCheckpoint(row, projectPath),
      add,
      remove,
    }),

    async put(checkpoint, recordVectors = [], { savedAt, supersedes, once } = {}) {
      return (await database()).write((tx) => {
        if (once && !claimKey(tx, once, checkpoint.id)) return false;
        if (savedAt !== undefined) for (const reorder of Object.values(REORDER)) tx.run(reorder, savedAt);
        if (add(tx, checkpoint, recordVectors)) markSuperseded(tx, supersedes, checkpoint.id);
        return true;
      });
    },

    async replace(checkpoint, recordVectors = [], { supersedes } = {}) {
      const db = await database();
      const replaced = await db.write((tx) => {
        const row = byId(tx, checkpoint.id);
        if (row?.revision !== checkpoint.revision - 1) return false;
        const key = row.key as number;
        tx.run(REORDER.updated_at, checkpoint.updatedAt);
        tx.run(
          `UPDATE checkpoints SET summary = ?, description = ?, context = ?, anchors = ?, superseded_by = ?, token_count = ?, pieces = ?, updated_at = ?, updated_order = ?, revision = ?,
             checksum = ? WHERE key = ?`,
          ...editable(checkpoint),
          key,
        );
        tx.run("DELETE FROM checkpoint_tags WHERE checkpoint_key = ?", key);
        removeRecordVectors(tx, "checkpoints", [key]);
        putDerived(tx, key, checkpoint, recordVectors);
        markSuperseded(tx, supersedes, checkpoint.id);
        return true;
      });
      if (replaced) db.eraseLogLater();
      return replaced;
    },

    async get(id) {
      return (await database()).read((tx) => {
        const row = byId(tx, id);
        if (!row) return undefined;
        const stored = read(tx)(row);
        if ("damaged" in stored) throw damagedRecordError(stored.damaged);
        return stored.record;
      });
    },

    recordOfKey: async (key) => (await database()).read((tx) => recordOfKey(tx, key)),

    async getMany(ids) {
      return (await database()).read((tx) =>
        splitStored(
          ids.flatMap((id) => {
            const row = byId(tx, id);
            return row ? [read(tx)(row)] : [];
          }),
        ),
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
        const from = after && { at: minPlace(tx, column, after), id: after.id };
        const page = readPage(
          limit,
          (count, skipped) =>
            tx.all<RawRow>(
              `SELECT ${COLUMNS} FROM checkpoints r
                WHERE ${where?.sql ?? "true"} ${from ? `AND (r.${column} < ? OR (r.${column} = ? AND r.id > ?))` : ""}
                ORDER BY r.${column} DESC, r.id LIMIT ? OFFSET ?`,
              ...(where?.params ?? []),
              ...(from ? [from.at, from.at, from.id] : []),
              count,
              offset + skipped,
            ),
          read(tx),
        );
        return { checkpoints: page.records, damaged: page.damaged, total };
      });
    },

    async days({ filter = {}, utcOffsetMinutes, limit }) {
      const where = whereOf(filter);
      return (await database()).read((tx) =>
        tx
          .all<DayCount>(
            `SELECT date(r.created_order, ? || ' minutes') AS day, count(*) AS count FROM checkpoints r
              WHERE ${where?.sql ?? "true"} GROUP BY day ORDER BY day DESC LIMIT ?`,
            utcOffsetMinutes,
            ...(where?.params ?? []),
            limit,
          )
          .map(({ day, count }) => ({ day, count })),
      );
    },

    async tags(limit) {
      return (await database()).read((tx) =>
        tx
          .all<TagCount>(
            `SELECT min(tag) AS tag, count(DISTINCT checkpoint_key) AS count FROM checkpoint_tags
              GROUP BY folded ORDER BY count DESC, folded LIMIT ?`,
            limit,
          )
          .map(({ tag, count }) => ({ tag, count })),
      );
    },

    async candidates({ filter, limit, semanticLimit = limit, text, semantic, signal }) {
      const where = whereOf(filter);
      const db = await database();
      const near = semantic && nearest(db, database, vectors, RECORDS, { ...semantic, limit: semanticLimit, where, signal });
      near?.catch(() => {}); // awaited below, unless something else fails first
      const { keyword, similarities } = db.read((tx) => {
        const found = text === undefined ? [] : rankByKeywords(tx, FULL_TEXT, text, where, limit);
        // Usually the scan thread is still working.
        return { keyword: found, similarities: semantic && cosinesByKey(tx, RECORDS, semantic.versionId, semantic.vector, found) };
      });
      const { ranked = [], incomplete } = (await near) ?? {};
      return { keyword, semantic: ranked, similarities, incomplete };
    },

    async matching(filter, limit) {
      return matchingIds(await database(), RECORDS, whereOf(filter), limit);
    },

    async similarities(versionId, vector, ids) {
      return (await database()).read((tx) => cosines(tx, RECORDS, versionId, vector, ids));
    },
  };
}

const COLUMNS = columnList(CHECKPOINT_COLUMNS);

/** Returns the tags of a record in order, also from damaged rows. */
export function tagsOf(tx: Pick<SqliteTx, "all">, key: number): unknown[] {
  return tx.all<{ tag: unknown }>("SELECT tag FROM checkpoint_tags WHERE checkpoint_key = ? ORDER BY position", key).map(({ tag }) => tag);
}

function withTags(tx: SqliteTx, row: RawRow): RawRow {
  return { ...row, tags: tagsOf(tx, row.key as number) };
}

/** Maps the caller's sort order to SQL; no other text reaches the statement. */
const SORT_COLUMN: Record<CheckpointSort, string> = { created_at: "created_order", updated_at: "updated_order" };
const REORDER: Record<CheckpointSort, string> = {
  created_at: reorderFutureRecords("checkpoints", SORT_COLUMN.created_at),
  updated_at: reorderFutureRecords("checkpoints", SORT_COLUMN.updated_at),
};

function add(tx: SqliteTx, checkpoint: Checkpoint, vectors: readonly VersionedVector[]): boolean {
  const { changes, lastId } = tx.run(
    `INSERT INTO checkpoints (id, created_at, created_order, summary, description, context, anchors, superseded_by, token_count, pieces, updated_at, updated_order, revision, checksum)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    checkpoint.id,
    checkpoint.createdAt,
    checkpoint.createdOrder,
    ...editable(checkpoint),
  );
  if (changes > 0) putDerived(tx, lastId, checkpoint, vectors);
  return changes > 0;
}

/** In the order in which both statements above name the columns. */
function editable(checkpoint: Checkpoint): SqlValue[] {
  const { summary, description, context, anchors, supersededBy, tokenCount, updatedAt, updatedOrder, revision } = checkpoint;
  const texts = [summary, description, JSON.stringify(context), JSON.stringify(anchors), supersededBy];
  return [...texts, tokenCount, countPieces(checkpointText(checkpoint)), updatedAt, updatedOrder, revision, checkpointChecksum(checkpoint)];
}

/** The current position of the cursor's record, if it was moved down since: the list continues from there. */
function minPlace(tx: SqliteTx, column: string, { at, id }: { readonly at: string; readonly id: string }): string {
  return orderTime(at, tx.get<{ at: string }>(`SELECT ${column} AS at FROM checkpoints WHERE id = ?`, id)?.at ?? at);
}

/** Writes the data derived from the record: tags, full-text terms and vectors. */
function putDerived(tx: SqliteTx, key: number, checkpoint: Checkpoint, vectors: readonly VersionedVector[]): void {
  for (const [position, tag] of checkpoint.tags.entries())
    tx.run(
      "INSERT INTO checkpoint_tags (checkpoint_key, position, tag, folded) VALUES (?, ?, ?, ?)",
      key,
      position,
      tag,
      tag.toLowerCase(),
    );
  putTerms(tx, FULL_TEXT.table, key, recordTerms(`${checkpointText(checkpoint)} ${checkpoint.tags.join(" ")}`).join(" "));
  putRecordVectors(tx, "checkpoints", key, vectors);
}

function remove(tx: SqliteTx, ids: readonly string[]): number {
  const keys = ids.flatMap((id) => tx.get<{ key: number }>("SELECT key FROM checkpoints WHERE id = ?", id)?.key ?? []);
  removeRecordVectors(tx, "checkpoints", keys);
  for (const key of keys) {
    removeTerms(tx, FULL_TEXT.table, key);
    tx.run("DELETE FROM checkpoints WHERE key = ?", key);
  }
  return keys.length;
}

/** The filter as a condition on `checkpoints r`; absent when everything matches. */
function whereOf(filter: CheckpointFilter): Where | undefined {
  const { tags = [], tagMatch = "exact", createdFrom, createdBefore, context = {}, text = "" } = filter;
  const conditions: string[] = [];
  const params: SqlValue[] = [];
  for (const pair of contextPairs(context)) {
    conditions.push("instr(r.context, ?) > 0");
    params.push(pair);
  }
  for (const tag of tags) {
    const matches = tagMatch === "exact" ? "t.folded = ?" : "instr(t.folded, ?) > 0";
    conditions.push(`EXISTS (SELECT 1 FROM checkpoint_tags t WHERE t.checkpoint_key = r.key AND ${matches})`);
    params.push(tag.toLowerCase());
  }
  if (createdFrom !== undefined) {
    conditions.push("r.created_order >= ?");
    params.push(createdFrom);
  }
  if (createdBefore !== undefined) {
    conditions.push("r.created_order < ?");
    params.push(createdBefore);
  }
  const words = text === "" ? [] : queryTerms(text, MARKED_LANGUAGES);
  if (words.length > 0) {
    conditions.push(`r.key IN (SELECT rowid FROM ${FULL_TEXT.table} WHERE ${FULL_TEXT.table} MATCH ?)`);
    params.push(words.map((forms) => `(${forms.map(quoteTerm).join(" OR ")})`).join(" AND "));
  }
  return conditions.length === 0 ? undefined : { sql: conditions.join(" AND "), params };
}

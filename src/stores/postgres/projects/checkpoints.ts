import type { Checkpoint, CheckpointSort } from "../../../model/checkpoint.ts";
import { damagedRecordError } from "../../../model/damaged-record.ts";
import {
  CHECKPOINT_COLUMNS,
  checkpointChecksum,
  checkpointText,
  type RawRow,
  readCheckpoint,
  splitStored,
} from "../../../model/stored-record.ts";
import type { CheckpointFilter, CheckpointStore, TagCount } from "../../../ports/checkpoint-store.ts";
import { recordTerms } from "../../../text/terms.ts";
import type { PgValue, PostgresTx } from "../driver/driver.ts";
import { toTimestamp } from "../driver/time.ts";
import { cosines, type EmbeddedRecords, matchingIds, nearest, postgresEmbeddings, putRecordVectors } from "./embeddings.ts";
import { rankByKeywords, tsvectorOf, type Where } from "./full-text.ts";
import type { ProjectTables } from "./project-tables.ts";
import { minPlace, readPage, reorderFutureRecords } from "./record-rows.ts";

const RECORDS: EmbeddedRecords = {
  collection: "checkpoints",
  table: "checkpoints",
  textColumns: ["summary", "description"],
  textOf: ({ summary = "", description = "" }) => checkpointText({ summary, description }),
};

/** The checkpoints of one project in its PostgreSQL schema. */
export function postgresCheckpoints(projectPath: string, tables: ProjectTables): CheckpointStore {
  const read = (row: RawRow) => readCheckpoint(row, projectPath);

  return {
    embeddings: postgresEmbeddings(RECORDS, tables),

    async put(checkpoint, vectors = [], { savedAt } = {}) {
      await tables.write(
        async (tx) => {
          if (savedAt !== undefined) await reorderFutureRecords(tx, "checkpoints", Object.values(SORT_COLUMN), savedAt);
          const added = await tx.run(
            `INSERT INTO checkpoints (id, created_at, created_order, ${EDITABLE})
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14::tsvector) ON CONFLICT (id) DO NOTHING`,
            checkpoint.id,
            toTimestamp(checkpoint.createdAt),
            toTimestamp(checkpoint.createdOrder),
            ...editable(checkpoint),
          );
          if (added > 0) await putRecordVectors(tx, tables, checkpoint.id, "checkpoints", vectors);
        },
        { idempotent: true },
      );
    },

    async replace(checkpoint, vectors = []) {
      return tables.write(async (tx) => {
        await reorderFutureRecords(tx, "checkpoints", ["updated_order"], checkpoint.updatedAt);
        const changed = await tx.run(
          `UPDATE checkpoints SET (${EDITABLE}) = ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::tsvector) WHERE id = $1 AND revision = $2`,
          checkpoint.id,
          checkpoint.revision - 1,
          ...editable(checkpoint),
        );
        if (changed === 0) return false;
        await tx.run(
          "DELETE FROM vectors v USING checkpoints r WHERE r.id = $1 AND v.key = r.key AND v.collection = 'checkpoints'",
          checkpoint.id,
        );
        await putRecordVectors(tx, tables, checkpoint.id, "checkpoints", vectors);
        return true;
      });
    },

    async get(id) {
      const row = await tables.read((tx) => tx.get<RawRow>(`SELECT ${COLUMNS} FROM checkpoints WHERE id = $1`, id));
      if (!row) return undefined;
      const stored = read(row);
      if ("damaged" in stored) throw damagedRecordError(stored.damaged);
      return stored.record;
    },

    async getMany(ids) {
      const rows = await tables.read((tx) => tx.all<RawRow>(`SELECT ${COLUMNS} FROM checkpoints WHERE id = ANY ($1::text[])`, ids));
      const byId = new Map(rows.map((row) => [row.id, read(row)]));
      return splitStored(ids.flatMap((id) => byId.get(id) ?? []));
    },

    async list({ filter = {}, limit, offset, sortBy, after }) {
      const column = SORT_COLUMN[sortBy];
      return tables.read(async (tx) => {
        const counting = whereOf(filter, 1);
        const counted = await tx.get<{ total: number }>(
          `SELECT count(*) AS total FROM checkpoints r WHERE ${counting?.sql ?? "true"}`,
          ...(counting?.params ?? []),
        );
        const where = whereOf(filter, after ? 5 : 3);
        const from = minPlace("checkpoints", column, "$3", "$4");
        const page = await readPage(
          limit,
          (count, skipped) =>
            tx.all<RawRow>(
              `SELECT ${COLUMNS} FROM checkpoints r WHERE ${where?.sql ?? "true"} ${after ? `AND ${column} <= ${from} AND (${column} < ${from} OR id > $4)` : ""}
                ORDER BY ${column} DESC, id LIMIT $1 OFFSET $2`,
              count,
              offset + skipped,
              ...(after ? [toTimestamp(after.at), after.id] : []),
              ...(where?.params ?? []),
            ),
          read,
        );
        return { checkpoints: page.records, damaged: page.damaged, total: counted!.total };
      });
    },

    tags: (limit) =>
      tables.read((tx) =>
        tx.all<TagCount>(
          `SELECT min(tag COLLATE "C") AS tag, count(DISTINCT r.key) AS count FROM checkpoints r, unnest(r.tags, r.folded_tags) AS u (tag, folded)
            GROUP BY folded ORDER BY count(DISTINCT r.key) DESC, folded COLLATE "C" LIMIT $1`,
          limit,
        ),
      ),

    async delete(id) {
      return (await tables.write((tx) => remove(tx, [id]))) > 0;
    },

    deleteMany: (ids) => tables.write((tx) => remove(tx, ids)),

    async candidates({ filter, limit, semanticLimit = limit, text, semantic }) {
      return tables.read(async (tx) => ({
        keyword: text === undefined ? [] : await rankByKeywords(tx, "checkpoints", text, (first) => whereOf(filter, first), limit),
        semantic: semantic
          ? await nearest(tx, tables, RECORDS, { ...semantic, limit: semanticLimit, where: (first) => whereOf(filter, first) })
          : [],
      }));
    },

    matching: (filter, limit) => tables.read((tx) => matchingIds(tx, RECORDS, (first) => whereOf(filter, first), limit)),

    similarities: (versionId, vector, ids) => tables.read((tx) => cosines(tx, tables, "checkpoints", versionId, vector, ids)),
  };
}

const EDITABLE = "summary, description, context, tags, folded_tags, token_count, updated_at, updated_order, revision, checksum, terms";
const COLUMNS = ["tags", ...Object.keys(CHECKPOINT_COLUMNS)].join(", ");

/** In the order of EDITABLE. */
function editable(checkpoint: Checkpoint): PgValue[] {
  return [
    checkpoint.summary,
    checkpoint.description,
    JSON.stringify(checkpoint.context),
    checkpoint.tags,
    checkpoint.tags.map((tag) => tag.toLowerCase()),
    checkpoint.tokenCount,
    toTimestamp(checkpoint.updatedAt),
    toTimestamp(checkpoint.updatedOrder),
    checkpoint.revision,
    checkpointChecksum(checkpoint),
    checkpointTerms(checkpoint),
  ];
}

/** The text under whose terms a checkpoint is found. */
export function checkpointTerms(checkpoint: Checkpoint): string {
  return tsvectorOf(recordTerms(`${checkpointText(checkpoint)} ${checkpoint.tags.join(" ")}`));
}

/** Maps the caller's sort order to SQL; no other text reaches the statement. */
const SORT_COLUMN: Record<CheckpointSort, string> = { created_at: "created_order", updated_at: "updated_order" };

async function remove(tx: PostgresTx, ids: readonly string[]): Promise<number> {
  await tx.run("SELECT 1 FROM checkpoints WHERE id = ANY ($1::text[]) ORDER BY key FOR UPDATE", ids); // no vector is filled in meanwhile
  await tx.run(
    "DELETE FROM vectors v USING checkpoints r WHERE r.id = ANY ($1::text[]) AND v.key = r.key AND v.collection = 'checkpoints'",
    ids,
  );
  return tx.run("DELETE FROM checkpoints WHERE id = ANY ($1::text[])", ids);
}

/** The filter as a condition on `checkpoints r`, its parameters counted from `first`; absent when everything matches. */
function whereOf({ tags = [], tagMatch = "exact", createdFrom, createdBefore }: CheckpointFilter, first: number): Where | undefined {
  const conditions: string[] = [];
  const params: PgValue[] = [];
  const bind = (value: PgValue) => `$${first + params.push(value) - 1}`;
  const folded = tags.map((tag) => tag.toLowerCase());
  if (folded.length > 0 && tagMatch === "exact") conditions.push(`r.folded_tags @> ${bind(folded)}::text[]`);
  if (tagMatch === "substring")
    for (const tag of folded) conditions.push(`EXISTS (SELECT 1 FROM unnest(r.folded_tags) AS tag WHERE strpos(tag, ${bind(tag)}) > 0)`);
  if (createdFrom !== undefined) conditions.push(`r.created_order >= ${bind(toTimestamp(createdFrom))}::timestamptz`);
  if (createdBefore !== undefined) conditions.push(`r.created_order < ${bind(toTimestamp(createdBefore))}::timestamptz`);
  return conditions.length === 0 ? undefined : { sql: conditions.join(" AND "), params };
}

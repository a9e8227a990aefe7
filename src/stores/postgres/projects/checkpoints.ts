import { supersede } from "../../../model/anchor.ts";
import type { Checkpoint, CheckpointSort } from "../../../model/checkpoint.ts";
import { damagedRecordError } from "../../../model/damaged-record.ts";
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
import type { PgValue, PostgresTx } from "../driver/driver.ts";
import { toTimestamp } from "../driver/time.ts";
import { postgresDeletable } from "./deleted-records.ts";
import {
  cosines,
  type EmbeddedRecords,
  matchingIds,
  nearest,
  postgresEmbeddings,
  putRecordVectors,
  removeRecordVectors,
} from "./embeddings.ts";
import { quoteLexeme, rankByKeywords, tsvectorOf, type Where } from "./full-text.ts";
import { claimKey, recordOfKey } from "./idempotency.ts";
import type { ProjectTables } from "./project-tables.ts";
import { minPlace, readPage, reorderFutureRecords } from "./record-rows.ts";

const RECORDS: EmbeddedRecords = {
  collection: "checkpoints",
  table: "checkpoints",
  textColumns: ["summary", "description"],
  textOf: ({ summary = "", description = "" }) => checkpointText({ summary, description }),
  slots: PIECES_MAX,
  parts: [],
};

/** The checkpoints of one project in its PostgreSQL schema. */
export function postgresCheckpoints(projectPath: string, tables: ProjectTables): CheckpointStore {
  const read = (row: RawRow) => readCheckpoint(row, projectPath);
  const markSuperseded = async (tx: PostgresTx, ids: readonly string[] = [], by: string) => {
    for (const id of [...ids].sort()) {
      const row = id === by ? undefined : await tx.get<RawRow>(`SELECT ${COLUMNS} FROM checkpoints WHERE id = $1 FOR UPDATE`, id);
      const stored = row && read(row);
      if (!stored || "damaged" in stored) continue;
      const after = supersede(stored.record, by);
      const sql = "UPDATE checkpoints SET superseded_by = $2, revision = $3, checksum = $4 WHERE id = $1";
      await tx.run(sql, id, by, after.revision, checkpointChecksum(after));
    }
  };

  return {
    embeddings: postgresEmbeddings(RECORDS, tables),

    ...postgresDeletable({
      collection: "checkpoints",
      tables,
      parts: [],
      columns: COLUMNS,
      read,
      add: (tx, checkpoint, vectors) => add(tx, tables, checkpoint, vectors),
      remove: (tx, ids) => remove(tx, tables, ids),
    }),

    put: (checkpoint, vectors = [], { savedAt, supersedes, once } = {}) =>
      tables.write(
        async (tx) => {
          if (once && (await claimKey(tx, once, checkpoint.id)) === "used") return false;
          if (savedAt !== undefined) await reorderFutureRecords(tx, "checkpoints", Object.values(SORT_COLUMN), savedAt);
          if (await add(tx, tables, checkpoint, vectors)) await markSuperseded(tx, supersedes, checkpoint.id);
          return true;
        },
        { idempotent: true },
      ),

    async replace(checkpoint, vectors = [], { supersedes } = {}) {
      return tables.write(async (tx) => {
        await reorderFutureRecords(tx, "checkpoints", ["updated_order"], checkpoint.updatedAt);
        const changed = await tx.run(
          `UPDATE checkpoints SET (${EDITABLE}) = ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16::tsvector) WHERE id = $1 AND revision = $2`,
          checkpoint.id,
          checkpoint.revision - 1,
          ...editable(checkpoint),
        );
        if (changed === 0) return false;
        await removeRecordVectors(tx, tables, RECORDS, [checkpoint.id]);
        await putRecordVectors(tx, tables, checkpoint.id, "checkpoints", vectors);
        await markSuperseded(tx, supersedes, checkpoint.id);
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

    recordOfKey: (key) => tables.read((tx) => recordOfKey(tx, key)),

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

    days: ({ filter = {}, utcOffsetMinutes, limit }) =>
      tables.read((tx) => {
        const where = whereOf(filter, 3);
        return tx.all<DayCount>(
          `SELECT to_char((r.created_order AT TIME ZONE 'UTC') + make_interval(mins => $1), 'YYYY-MM-DD') AS day, count(*) AS count
             FROM checkpoints r WHERE ${where?.sql ?? "true"} GROUP BY 1 ORDER BY 1 DESC LIMIT $2`,
          utcOffsetMinutes,
          limit,
          ...(where?.params ?? []),
        );
      }),

    tags: (limit) =>
      tables.read((tx) =>
        tx.all<TagCount>(
          `SELECT min(tag COLLATE "C") AS tag, count(DISTINCT r.key) AS count FROM checkpoints r, unnest(r.tags, r.folded_tags) AS u (tag, folded)
            GROUP BY folded ORDER BY count(DISTINCT r.key) DESC, folded COLLATE "C" LIMIT $1`,
          limit,
        ),
      ),

    async candidates({ filter, limit, semanticLimit = limit, text, semantic }) {
      return tables.read(async (tx) => ({
        keyword: text === undefined ? [] : await rankByKeywords(tx, tables, "checkpoints", text, (first) => whereOf(filter, first), limit),
        semantic: semantic
          ? await nearest(tx, tables, RECORDS, { ...semantic, limit: semanticLimit, where: (first) => whereOf(filter, first) })
          : [],
      }));
    },

    matching: (filter, limit) => tables.read((tx) => matchingIds(tx, RECORDS, (first) => whereOf(filter, first), limit)),

    similarities: (versionId, vector, ids) => tables.read((tx) => cosines(tx, tables, RECORDS, versionId, vector, ids)),
  };
}

const EDITABLE =
  "summary, description, context, anchors, superseded_by, tags, folded_tags, token_count, pieces, updated_at, updated_order, revision, checksum, terms";
const COLUMNS = ["tags", ...Object.keys(CHECKPOINT_COLUMNS)].join(", ");

async function add(tx: PostgresTx, tables: ProjectTables, checkpoint: Checkpoint, vectors: readonly VersionedVector[]): Promise<boolean> {
  const added = await tx.run(
    `INSERT INTO checkpoints (id, created_at, created_order, ${EDITABLE})
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17::tsvector) ON CONFLICT (id) DO NOTHING`,
    checkpoint.id,
    toTimestamp(checkpoint.createdAt),
    toTimestamp(checkpoint.createdOrder),
    ...editable(checkpoint),
  );
  if (added > 0) await putRecordVectors(tx, tables, checkpoint.id, "checkpoints", vectors);
  return added > 0;
}

/** In the order of EDITABLE. */
function editable(checkpoint: Checkpoint): PgValue[] {
  return [
    checkpoint.summary,
    checkpoint.description,
    JSON.stringify(checkpoint.context),
    JSON.stringify(checkpoint.anchors),
    checkpoint.supersededBy,
    checkpoint.tags,
    checkpoint.tags.map((tag) => tag.toLowerCase()),
    checkpoint.tokenCount,
    countPieces(checkpointText(checkpoint)),
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

async function remove(tx: PostgresTx, tables: ProjectTables, ids: readonly string[]): Promise<number> {
  await tx.run("SELECT 1 FROM checkpoints WHERE id = ANY ($1::text[]) ORDER BY key FOR UPDATE", ids); // no vector is filled in meanwhile
  await removeRecordVectors(tx, tables, RECORDS, ids);
  return tx.run("DELETE FROM checkpoints WHERE id = ANY ($1::text[])", ids);
}

/** The filter as a condition on `checkpoints r`, its parameters counted from `first`; absent when everything matches. */
export function whereOf(
  { tags = [], tagMatch = "exact", createdFrom, createdBefore, context = {}, text = "" }: CheckpointFilter,
  first: number,
): Where | undefined {
  const conditions: string[] = [];
  const params: PgValue[] = [];
  const bind = (value: PgValue) => `$${first + params.push(value) - 1}`;
  for (const pair of contextPairs(context)) conditions.push(`strpos(r.context, ${bind(pair)}) > 0`);
  const folded = tags.map((tag) => tag.toLowerCase());
  if (folded.length > 0 && tagMatch === "exact") conditions.push(`r.folded_tags @> ${bind(folded)}::text[]`);
  if (tagMatch === "substring")
    for (const tag of folded) conditions.push(`EXISTS (SELECT 1 FROM unnest(r.folded_tags) AS tag WHERE strpos(tag, ${bind(tag)}) > 0)`);
  if (createdFrom !== undefined) conditions.push(`r.created_order >= ${bind(toTimestamp(createdFrom))}::timestamptz`);
  if (createdBefore !== undefined) conditions.push(`r.created_order < ${bind(toTimestamp(createdBefore))}::timestamptz`);
  const words = text === "" ? [] : queryTerms(text, MARKED_LANGUAGES);
  if (words.length > 0)
    conditions.push(`r.terms @@ ${bind(words.map((forms) => `(${forms.map(quoteLexeme).join("|")})`).join("&"))}::tsquery`);
  return conditions.length === 0 ? undefined : { sql: conditions.join(" AND "), params };
}

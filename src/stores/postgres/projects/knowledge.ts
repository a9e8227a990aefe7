import { supersede } from "../../../model/anchor.ts";
import { damagedRecordError } from "../../../model/damaged-record.ts";
import { countUse, type Knowledge } from "../../../model/knowledge.ts";
import {
  countPieces,
  KNOWLEDGE_COLUMNS,
  knowledgeChecksum,
  PIECES_MAX,
  type RawRow,
  readKnowledge,
  splitStored,
} from "../../../model/stored-record.ts";
import type { KnowledgeFilter, KnowledgeMark, KnowledgePage, KnowledgeStore, KnowledgeWrite } from "../../../ports/knowledge-store.ts";
import type { Candidates } from "../../../ports/recall-store.ts";
import { knowledgeTerms, knowledgeText } from "../../../text/knowledge-text.ts";
import { errorSignature } from "../../../text/normalise-error.ts";
import { recordTerms } from "../../../text/terms.ts";
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
import { rankByKeywords, tsvectorOf, type Where } from "./full-text.ts";
import { claimKey, recordOfKey, releaseKey } from "./idempotency.ts";
import type { ProjectTables } from "./project-tables.ts";
import { minPlace, readPage, reorderFutureRecords } from "./record-rows.ts";

const RECORDS: EmbeddedRecords = {
  collection: "knowledge",
  table: "knowledge",
  textColumns: ["kind", "question"],
  textOf: ({ kind = "", question = "" }) => knowledgeText({ kind, question }),
  slots: PIECES_MAX,
  parts: ["knowledge"],
};

/** The knowledge in one PostgreSQL schema: a project's, or the shared one. */
export function postgresKnowledge(tables: ProjectTables): KnowledgeStore {
  const part = tables.part("knowledge");
  return {
    embeddings: postgresEmbeddings(RECORDS, tables),

    ...postgresDeletable({
      collection: "knowledge",
      tables,
      parts: RECORDS.parts,
      columns: COLUMNS,
      read: readKnowledge,
      add: (tx, record, vectors) => add(tx, tables, { record, vectors }),
      remove: (tx, ids) => remove(tx, tables, ids),
    }),

    // Without a key it is unknown after a lost answer whether this call took the id, so the call is not repeated.
    put: (record, vectors = [], { savedAt, supersedes, once } = {}) =>
      part.write(
        async (tx) => {
          const claim = once && (await claimKey(tx, once, record.id));
          if (claim === "used" || claim === "repeated") return claim === "repeated";
          if (savedAt !== undefined) await reorderFutureRecords(tx, "knowledge", ["created_order"], savedAt);
          const added = await add(tx, tables, { record, vectors });
          if (added) await markSuperseded(tx, supersedes, record.id);
          else if (once) await releaseKey(tx, once);
          return added;
        },
        { idempotent: once !== undefined },
      ),

    replace: (record, vectors, { supersedes } = {}) =>
      part.change(false, async (tx) => {
        const replaced = await replace(tx, tables, { record, vectors });
        if (replaced) await markSuperseded(tx, supersedes, record.id);
        return replaced;
      }),

    async get(id) {
      const row = await part.read(undefined, (tx) => tx.get<RawRow>(`SELECT ${COLUMNS} FROM knowledge WHERE id = $1`, id));
      return row && requireSound(row);
    },

    recordOfKey: (key) => tables.read((tx) => recordOfKey(tx, key)),

    async getMany(ids) {
      const rows = await part.read<RawRow[]>([], (tx) => tx.all(`SELECT ${COLUMNS} FROM knowledge WHERE id = ANY ($1::text[])`, ids));
      const found = new Map(rows.map((row) => [row.id, readKnowledge(row)]));
      return splitStored(ids.flatMap((id) => found.get(id) ?? []));
    },

    async list({ filter = {}, limit, after }) {
      return part.read<KnowledgePage>({ records: [], damaged: [], total: 0 }, async (tx) => {
        const counting = whereOf(filter, 1);
        const counted = await tx.get<{ total: number }>(
          `SELECT count(*) AS total FROM knowledge r WHERE ${counting?.sql ?? "true"}`,
          ...(counting?.params ?? []),
        );
        const where = whereOf(filter, after ? 5 : 3);
        const from = minPlace("knowledge", "created_order", "$3", "$4");
        const page = await readPage(
          limit,
          (count, skipped) =>
            tx.all<RawRow>(
              `SELECT ${COLUMNS} FROM knowledge r
                WHERE ${where?.sql ?? "true"} ${after ? `AND created_order <= ${from} AND (created_order < ${from} OR id > $4)` : ""}
                ORDER BY created_order DESC, id LIMIT $1 OFFSET $2`,
              count,
              skipped,
              ...(after ? [toTimestamp(after.at), after.id] : []),
              ...(where?.params ?? []),
            ),
          readKnowledge,
        );
        return { ...page, total: counted!.total };
      });
    },

    // Without a key, a use whose commit was cut off is reported instead of being counted twice.
    feedback: (id, report, once) =>
      part.change<Knowledge | undefined>(
        undefined,
        async (tx) => {
          const sql = `SELECT ${COLUMNS} FROM knowledge WHERE id = $1 FOR UPDATE`;
          const row = await tx.get<RawRow>(sql, id);
          if (!row) return undefined;
          if (once && (await claimKey(tx, once, id)) !== "claimed") {
            const first = await tx.get<RawRow>(sql, (await recordOfKey(tx, once))!);
            return first && requireSound(first);
          }
          const before = requireSound(row);
          const record = countUse(before, report);
          await tx.run(
            "UPDATE knowledge SET uses = $2, successes = $3, outdated = $4, checksum = $5 WHERE id = $1",
            id,
            record.uses,
            record.successes,
            record.outdated,
            knowledgeChecksum(record),
          );
          return record;
        },
        { idempotent: once !== undefined },
      ),

    async withSignature(signature, filter, limit) {
      const where = whereOf(filter, 3);
      const rows = await part.read<{ id: string }[]>([], (tx) =>
        tx.all(
          `SELECT r.id FROM knowledge r WHERE r.signature = $1 AND r.signature <> '' AND ${where?.sql ?? "true"} ORDER BY r.created_order, r.id DESC LIMIT $2`,
          signature,
          limit,
          ...(where?.params ?? []),
        ),
      );
      return rows.map(({ id }) => id);
    },

    marks: () =>
      part.read<KnowledgeMark[]>([], (tx) =>
        tx.all('SELECT id, source, content_hash AS "contentHash", revision FROM knowledge ORDER BY id'),
      ),

    apply: (batch) =>
      part
        .write(async (tx) => {
          const ids = [...batch.add, ...batch.replace].map(({ record }) => record.id).concat(batch.remove.map(({ id }) => id));
          const rows = await tx.all<{ id: string; revision: number }>(
            "SELECT id, revision FROM knowledge WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE",
            ids,
          );
          const revisions = new Map(rows.map(({ id, revision }) => [id, revision]));
          const asExpected =
            batch.add.every(({ record }) => !revisions.has(record.id)) &&
            batch.replace.every(({ record }) => revisions.get(record.id) === record.revision - 1) &&
            batch.remove.every(({ id, revision }) => revisions.get(id) === revision);
          if (!asExpected) return "changed meanwhile";
          if (batch.savedAt !== undefined) await reorderFutureRecords(tx, "knowledge", ["created_order"], batch.savedAt);
          // Another import may add the same id at this moment; the unique index lets one of them through, and the other one fails whole.
          for (const write of batch.add) if (!(await add(tx, tables, write))) throw new AddedMeanwhile();
          for (const write of batch.replace) await replace(tx, tables, write);
          await remove(
            tx,
            tables,
            batch.remove.map(({ id }) => id),
          );
          return "applied" as const;
        })
        .catch((error: unknown) => {
          if (error instanceof AddedMeanwhile || (error as Error).cause instanceof AddedMeanwhile) return "changed meanwhile" as const;
          throw error;
        }),

    async candidates({ filter, limit, semanticLimit = limit, text, semantic }) {
      return part.read<Candidates>({ keyword: [], semantic: [] }, async (tx) => ({
        keyword: text === undefined ? [] : await rankByKeywords(tx, tables, "knowledge", text, (first) => whereOf(filter, first), limit),
        semantic: semantic
          ? await nearest(tx, tables, RECORDS, { ...semantic, limit: semanticLimit, where: (first) => whereOf(filter, first) })
          : [],
      }));
    },

    matching: (filter, limit) =>
      part.read<"all" | "many" | readonly string[]>([], (tx) => matchingIds(tx, RECORDS, (first) => whereOf(filter, first), limit)),

    similarities: (versionId, vector, ids) => part.read(new Map(), (tx) => cosines(tx, tables, RECORDS, versionId, vector, ids)),
  };
}

/** Undoes the whole transaction. */
class AddedMeanwhile extends Error {}

const COLUMNS = Object.keys(KNOWLEDGE_COLUMNS).join(", ");
const WRITTEN =
  "kind, category, subcategory, question, answer, content_hash, signature, pieces, successes, uses, outdated, source, anchors, superseded_by, created_at, updated_at, created_order, revision, checksum, terms";

function requireSound(row: RawRow): Knowledge {
  const stored = readKnowledge(row);
  if ("damaged" in stored) throw damagedRecordError(stored.damaged);
  return stored.record;
}

async function add(tx: PostgresTx, tables: ProjectTables, { record, vectors = [] }: KnowledgeWrite): Promise<boolean> {
  const added = await tx.run(
    `INSERT INTO knowledge (id, ${WRITTEN})
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21::tsvector) ON CONFLICT (id) DO NOTHING`,
    record.id,
    ...valuesOf(record),
  );
  if (added > 0) await putRecordVectors(tx, tables, record.id, "knowledge", vectors);
  return added > 0;
}

/** Keeps the fields that only feedback and the first save may set, unless the stored record is damaged. */
async function replace(tx: PostgresTx, tables: ProjectTables, { record, vectors }: KnowledgeWrite): Promise<boolean> {
  const row = await tx.get<RawRow>(
    `SELECT ${COLUMNS} FROM knowledge WHERE id = $1 AND revision = $2 FOR UPDATE`,
    record.id,
    record.revision - 1,
  );
  if (!row) return false;
  const before = readKnowledge(row);
  const { successes, uses, createdAt, createdOrder } = "record" in before ? before.record : record;
  await tx.run(
    `UPDATE knowledge SET (${WRITTEN}) = ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21::tsvector) WHERE id = $1`,
    record.id,
    ...valuesOf({ ...record, successes, uses, createdAt, createdOrder }),
  );
  if (vectors) {
    await removeRecordVectors(tx, tables, RECORDS, [record.id]);
    await putRecordVectors(tx, tables, record.id, "knowledge", vectors);
  }
  return true;
}

async function markSuperseded(tx: PostgresTx, ids: readonly string[] = [], by: string): Promise<void> {
  for (const id of [...ids].sort()) {
    const row = id === by ? undefined : await tx.get<RawRow>(`SELECT ${COLUMNS} FROM knowledge WHERE id = $1 FOR UPDATE`, id);
    const stored = row && readKnowledge(row);
    if (!stored || "damaged" in stored) continue;
    const after = supersede(stored.record, by);
    const sql = "UPDATE knowledge SET superseded_by = $2, revision = $3, checksum = $4 WHERE id = $1";
    await tx.run(sql, id, by, after.revision, knowledgeChecksum(after));
  }
}

/** In the order of WRITTEN. */
function valuesOf(record: Knowledge): PgValue[] {
  const { kind, category, subcategory, question, answer, contentHash, successes, uses, outdated, source, anchors, supersededBy, revision } =
    record;
  const signature = kind === "remediation" ? errorSignature(question) : "";
  const content = [kind, category, subcategory, question, answer, contentHash, signature, countPieces(knowledgeText(record))];
  const times = [record.createdAt, record.updatedAt, record.createdOrder].map(toTimestamp);
  return [
    ...content,
    successes,
    uses,
    outdated,
    source,
    JSON.stringify(anchors),
    supersededBy,
    ...times,
    revision,
    knowledgeChecksum(record),
    tsvectorOf(recordTerms(knowledgeTerms(record))),
  ];
}

async function remove(tx: PostgresTx, tables: ProjectTables, ids: readonly string[]): Promise<number> {
  await tx.run("SELECT 1 FROM knowledge WHERE id = ANY ($1::text[]) ORDER BY key FOR UPDATE", ids); // no vector is filled in meanwhile
  await removeRecordVectors(tx, tables, RECORDS, ids);
  return tx.run("DELETE FROM knowledge WHERE id = ANY ($1::text[])", ids);
}

/** The filter as a condition on `knowledge r`, its parameters counted from `first`; absent when everything matches. */
function whereOf(filter: KnowledgeFilter, first: number): Where | undefined {
  const given = FILTERS.filter((field) => filter[field] !== undefined);
  if (given.length === 0) return undefined;
  return {
    sql: given.map((field, index) => `r.${field} = $${first + index}`).join(" AND "),
    params: given.map((field) => filter[field]!),
  };
}

const FILTERS = ["kind", "category", "subcategory", "source"] as const;

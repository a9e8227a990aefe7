import type { Knowledge, KnowledgeKind } from "../../model/knowledge.ts";
import type { KnowledgeFilter, KnowledgeMark, KnowledgeStore, KnowledgeWrite } from "../../ports/knowledge-store.ts";
import { knowledgeText, knowledgeWords } from "../../text/embedding-text.ts";
import { errorSignature } from "../../text/normalise-error.ts";
import type { PgValue, PostgresTx } from "./driver.ts";
import { cosines, type EmbeddedRecords, matchingIds, nearest, postgresEmbeddings, putRecordVectors } from "./embeddings.ts";
import type { ProjectTables } from "./project-tables.ts";
import { toTimestamp } from "./time.ts";
import { rankByWords, type Where, wordsText } from "./words.ts";

const RECORDS: EmbeddedRecords = {
  collection: "knowledge",
  table: "knowledge",
  textColumns: ["kind", "question"],
  textOf: ({ kind = "", question = "" }) => knowledgeText({ kind, question }),
};

/** The knowledge in one PostgreSQL schema: a project's, or the shared one. */
export function postgresKnowledge(tables: ProjectTables): KnowledgeStore {
  return {
    embeddings: postgresEmbeddings(RECORDS, tables),

    // Whether the id was taken before or by this very call cannot be told after a lost answer, so neither is repeated.
    put: (record, vectors = []) => tables.write((tx) => add(tx, tables, { record, vectors })),

    replace: (record, vectors) => tables.write((tx) => replace(tx, tables, { record, vectors })),

    async get(id) {
      const row = await tables.read((tx) => tx.get<Row>(`SELECT ${COLUMNS} FROM knowledge WHERE id = $1`, id));
      return row && toKnowledge(row);
    },

    async getMany(ids) {
      const rows = await tables.read((tx) => tx.all<Row>(`SELECT ${COLUMNS} FROM knowledge WHERE id = ANY ($1::text[])`, ids));
      const found = new Map(rows.map((row) => [row.id, toKnowledge(row)]));
      return ids.flatMap((id) => found.get(id) ?? []);
    },

    async list({ filter = {}, limit, after }) {
      return tables.read(async (tx) => {
        const counting = whereOf(filter, 1);
        const counted = await tx.get<{ total: number }>(
          `SELECT count(*) AS total FROM knowledge r WHERE ${counting?.sql ?? "true"}`,
          ...(counting?.params ?? []),
        );
        const where = whereOf(filter, after ? 4 : 2);
        const rows = await tx.all<Row>(
          `SELECT ${COLUMNS} FROM knowledge r WHERE ${where?.sql ?? "true"} ${after ? "AND created_at <= $2 AND (created_at < $2 OR id > $3)" : ""}
            ORDER BY created_at DESC, id LIMIT $1`,
          limit,
          ...(after ? [toTimestamp(after.at), after.id] : []),
          ...(where?.params ?? []),
        );
        return { records: rows.map(toKnowledge), total: counted!.total };
      });
    },

    delete: (id) => tables.write((tx) => remove(tx, id)),

    async feedback(id, success) {
      // Not idempotent: a use whose commit was cut off is reported instead of being counted twice.
      const row = await tables.write((tx) =>
        tx.get<Row>(
          `UPDATE knowledge SET uses = uses + 1, successes = successes + $2 WHERE id = $1 RETURNING ${COLUMNS}`,
          id,
          success ? 1 : 0,
        ),
      );
      return row && toKnowledge(row);
    },

    async withSignature(signature, filter, limit) {
      const where = whereOf(filter, 3);
      const rows = await tables.read((tx) =>
        tx.all<{ id: string }>(
          `SELECT r.id FROM knowledge r WHERE r.signature = $1 AND r.signature <> '' AND ${where?.sql ?? "true"} ORDER BY r.created_at, r.id DESC LIMIT $2`,
          signature,
          limit,
          ...(where?.params ?? []),
        ),
      );
      return rows.map(({ id }) => id);
    },

    marks: () =>
      tables.read((tx) => tx.all<KnowledgeMark>('SELECT id, source, content_hash AS "contentHash", revision FROM knowledge ORDER BY id')),

    apply: (batch) =>
      tables
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
          // Another import may add the same id at this moment; the unique index lets one of them through, and the other one fails whole.
          for (const write of batch.add) if (!(await add(tx, tables, write))) throw new AddedMeanwhile();
          for (const write of batch.replace) await replace(tx, tables, write);
          for (const { id } of batch.remove) await remove(tx, id);
          return "applied" as const;
        })
        .catch((error: unknown) => {
          if (error instanceof AddedMeanwhile || (error as Error).cause instanceof AddedMeanwhile) return "changed meanwhile" as const;
          throw error;
        }),

    async candidates({ filter, limit, denseLimit = limit, words, dense }) {
      return tables.read(async (tx) => ({
        lexical: words === undefined ? [] : await rankByWords(tx, "knowledge", words, (first) => whereOf(filter, first), limit),
        dense: dense ? await nearest(tx, tables, RECORDS, { ...dense, limit: denseLimit, where: (first) => whereOf(filter, first) }) : [],
      }));
    },

    matching: (filter, limit) => tables.read((tx) => matchingIds(tx, RECORDS, (first) => whereOf(filter, first), limit)),

    similarities: (versionId, vector, ids) => tables.read((tx) => cosines(tx, tables, "knowledge", versionId, vector, ids)),
  };
}

/** Undoes the whole transaction. */
class AddedMeanwhile extends Error {}

const COLUMNS =
  "id, kind, category, subcategory, question, answer, content_hash, successes, uses, source, created_at, updated_at, revision";
const EDITABLE = "kind, category, subcategory, question, answer, content_hash, signature, source, updated_at, revision, words";

interface Row {
  id: string;
  kind: KnowledgeKind;
  category: string;
  subcategory: string;
  question: string;
  answer: string;
  content_hash: string;
  successes: number;
  uses: number;
  source: string;
  created_at: string;
  updated_at: string;
  revision: number;
}

function toKnowledge(row: Row): Knowledge {
  const { id, kind, category, subcategory, question, answer, successes, uses, source, revision } = row;
  const times = { createdAt: row.created_at, updatedAt: row.updated_at };
  return { id, kind, category, subcategory, question, answer, contentHash: row.content_hash, successes, uses, source, ...times, revision };
}

async function add(tx: PostgresTx, tables: ProjectTables, { record, vectors = [] }: KnowledgeWrite): Promise<boolean> {
  const added = await tx.run(
    `INSERT INTO knowledge (id, successes, uses, created_at, ${EDITABLE})
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, to_tsvector('english', $15)) ON CONFLICT (id) DO NOTHING`,
    record.id,
    record.successes,
    record.uses,
    toTimestamp(record.createdAt),
    ...editable(record),
  );
  if (added > 0) await putRecordVectors(tx, tables, record.id, "knowledge", vectors);
  return added > 0;
}

async function replace(tx: PostgresTx, tables: ProjectTables, { record, vectors }: KnowledgeWrite): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE knowledge SET (${EDITABLE}) = ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, to_tsvector('english', $13)) WHERE id = $1 AND revision = $2`,
    record.id,
    record.revision - 1,
    ...editable(record),
  );
  if (changed === 0) return false;
  if (vectors) {
    await removeVectors(tx, record.id);
    await putRecordVectors(tx, tables, record.id, "knowledge", vectors);
  }
  return true;
}

/** In the order of EDITABLE. */
function editable(record: Knowledge): PgValue[] {
  const { kind, category, subcategory, question, answer, contentHash, source, updatedAt, revision } = record;
  const signature = kind === "remediation" ? errorSignature(question) : "";
  const words = wordsText(knowledgeWords(record));
  return [kind, category, subcategory, question, answer, contentHash, signature, source, toTimestamp(updatedAt), revision, words];
}

async function removeVectors(tx: PostgresTx, id: string): Promise<void> {
  await tx.run("DELETE FROM vectors v USING knowledge r WHERE r.id = $1 AND v.key = r.key AND v.collection = 'knowledge'", id);
}

async function remove(tx: PostgresTx, id: string): Promise<boolean> {
  await tx.run("SELECT 1 FROM knowledge WHERE id = $1 FOR UPDATE", id); // no vector is filled in meanwhile
  await removeVectors(tx, id);
  return (await tx.run("DELETE FROM knowledge WHERE id = $1", id)) > 0;
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

import { CairnError, type ErrorCode, type ErrorOptions } from "../../model/errors.ts";
import type { Knowledge, KnowledgeKind } from "../../model/knowledge.ts";
import type { VersionedVector } from "../../ports/embedding-store.ts";
import type { KnowledgeBatch, KnowledgeFilter, KnowledgeMark, KnowledgeStore, KnowledgeWrite } from "../../ports/knowledge-store.ts";
import { knowledgeText, knowledgeWords } from "../../text/embedding-text.ts";
import { errorSignature } from "../../text/normalise-error.ts";
import type { DatabaseHandle } from "./databases.ts";
import type { SqliteTx, SqlValue } from "./driver.ts";
import { cosines, type EmbeddedRecords, putRecordVectors, removeRecordVectors, sqliteEmbeddings } from "./embeddings.ts";
import { matchingIds, nearest, type VectorSearcher } from "./nearest.ts";
import { inThread } from "./thread.ts";
import { putWords, rankByWords, removeWords, type Where } from "./words.ts";

const RECORDS: EmbeddedRecords = {
  collection: "knowledge",
  table: "knowledge",
  textColumns: ["kind", "question"],
  textOf: ({ kind = "", question = "" }) => knowledgeText({ kind, question }),
};
const WORDS = "knowledge_words";

/** The knowledge in one SQLite file: a project's, or the shared one. */
export function sqliteKnowledge(database: DatabaseHandle, vectors: VectorSearcher): KnowledgeStore {
  return {
    embeddings: sqliteEmbeddings(RECORDS, database),

    async put(record, recordVectors = []) {
      return (await database()).write((tx) => add(tx, { record, vectors: recordVectors }));
    },

    async replace(record, recordVectors) {
      const db = await database();
      const replaced = await db.write((tx) => replace(tx, { record, vectors: recordVectors }));
      if (replaced) db.eraseLogLater();
      return replaced;
    },

    async get(id) {
      return (await database()).read((tx) => byId(tx, id));
    },

    async getMany(ids) {
      return (await database()).read((tx) => ids.flatMap((id) => byId(tx, id) ?? []));
    },

    async list({ filter = {}, limit, after }) {
      const where = whereOf(filter);
      return (await database()).read((tx) => {
        const { total } = tx.get<{ total: number }>(
          `SELECT count(*) AS total FROM knowledge r WHERE ${where?.sql ?? "true"}`,
          ...(where?.params ?? []),
        )!;
        const rows = tx.all<Row>(
          `SELECT r.* FROM knowledge r
            WHERE ${where?.sql ?? "true"} ${after ? "AND (r.created_at < ? OR (r.created_at = ? AND r.id > ?))" : ""}
            ORDER BY r.created_at DESC, r.id LIMIT ?`,
          ...(where?.params ?? []),
          ...(after ? [after.at, after.at, after.id] : []),
          limit,
        );
        return { records: rows.map(toKnowledge), total };
      });
    },

    async delete(id) {
      const db = await database();
      const removed = await db.write((tx) => remove(tx, id));
      if (removed) await db.eraseLog();
      return removed;
    },

    async feedback(id, success) {
      return (await database()).write((tx) => {
        tx.run("UPDATE knowledge SET uses = uses + 1, successes = successes + ? WHERE id = ?", success ? 1 : 0, id);
        return byId(tx, id);
      });
    },

    async withSignature(signature, filter, limit) {
      const where = whereOf(filter);
      return (await database()).read((tx) =>
        tx
          .all<{ id: string }>(
            `SELECT r.id FROM knowledge r WHERE r.signature = ? AND r.signature <> '' AND ${where?.sql ?? "true"} ORDER BY r.created_at, r.id DESC LIMIT ?`,
            signature,
            ...(where?.params ?? []),
            limit,
          )
          .map(({ id }) => id),
      );
    },

    async marks() {
      return (await database()).read((tx) =>
        tx.all<KnowledgeMark>("SELECT id, source, content_hash AS contentHash, revision FROM knowledge ORDER BY id"),
      );
    },

    async apply(batch) {
      const opened = await database();
      const records = batch.add.length + batch.replace.length + batch.remove.length;
      const outcome = await (records > THREAD_RECORDS ? applyInThread(opened.path, batch) : opened.write((tx) => applyBatch(tx, batch)));
      if (outcome === "applied" && batch.remove.length + batch.replace.length > 0) await opened.eraseLog();
      return outcome;
    },

    async candidates({ filter, limit, denseLimit = limit, words, dense, signal }) {
      const where = whereOf(filter);
      const db = await database();
      const near = dense && nearest(db, database, vectors, RECORDS, { ...dense, limit: denseLimit, where, signal });
      const lexical = words === undefined ? [] : db.read((tx) => rankByWords(tx, WORDS, "knowledge", words, where, limit));
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

/** Records; a larger batch would keep the event loop for longer than a few milliseconds. */
const THREAD_RECORDS = 100;

/** Applies the batch if its records are still as expected: all of it or nothing. */
export function applyBatch(tx: SqliteTx, batch: KnowledgeBatch): "applied" | "changed meanwhile" {
  const revisionOf = (id: string) => tx.get<{ revision: number }>("SELECT revision FROM knowledge WHERE id = ?", id)?.revision;
  const asExpected =
    batch.add.every(({ record }) => revisionOf(record.id) === undefined) &&
    batch.replace.every(({ record }) => revisionOf(record.id) === record.revision - 1) &&
    batch.remove.every(({ id, revision }) => revisionOf(id) === revision);
  if (!asExpected) return "changed meanwhile";
  for (const write of batch.add) add(tx, write);
  for (const write of batch.replace) replace(tx, write);
  for (const { id } of batch.remove) remove(tx, id);
  return "applied";
}

type ApplyMessage =
  | { readonly outcome: "applied" | "changed meanwhile" }
  | { readonly failure: ErrorOptions & { readonly code: ErrorCode; readonly message: string } };

async function applyInThread(path: string, batch: KnowledgeBatch): Promise<"applied" | "changed meanwhile"> {
  const message = await inThread<ApplyMessage>("knowledge-worker.js", { path, batch });
  if ("outcome" in message) return message.outcome;
  const { code, message: text, ...options } = message.failure;
  throw new CairnError(code, text, options);
}

interface Row {
  key: number;
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

function byId(tx: SqliteTx, id: string): Knowledge | undefined {
  const row = tx.get<Row>("SELECT * FROM knowledge WHERE id = ?", id);
  return row && toKnowledge(row);
}

function add(tx: SqliteTx, { record, vectors = [] }: KnowledgeWrite): boolean {
  const { changes, lastId } = tx.run(
    `INSERT INTO knowledge (id, successes, uses, created_at, kind, category, subcategory, question, answer, content_hash, signature, source, updated_at, revision)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    record.id,
    record.successes,
    record.uses,
    record.createdAt,
    ...editable(record),
  );
  if (changes === 0) return false;
  putDerived(tx, lastId, record, vectors);
  return true;
}

function replace(tx: SqliteTx, { record, vectors }: KnowledgeWrite): boolean {
  const row = tx.get<{ key: number }>("SELECT key FROM knowledge WHERE id = ? AND revision = ?", record.id, record.revision - 1);
  if (!row) return false;
  if (vectors) removeRecordVectors(tx, "knowledge", [row.key]);
  tx.run(
    `UPDATE knowledge SET kind = ?, category = ?, subcategory = ?, question = ?, answer = ?, content_hash = ?, signature = ?, source = ?,
       updated_at = ?, revision = ? WHERE key = ?`,
    ...editable(record),
    row.key,
  );
  putDerived(tx, row.key, record, vectors ?? []);
  return true;
}

function editable(record: Knowledge): SqlValue[] {
  const { kind, category, subcategory, question, answer, contentHash, source, updatedAt, revision } = record;
  const signature = kind === "remediation" ? errorSignature(question) : "";
  return [kind, category, subcategory, question, answer, contentHash, signature, source, updatedAt, revision];
}

function putDerived(tx: SqliteTx, key: number, record: Knowledge, vectors: readonly VersionedVector[]): void {
  putWords(tx, WORDS, key, knowledgeWords(record));
  putRecordVectors(tx, "knowledge", key, vectors);
}

function remove(tx: SqliteTx, id: string): boolean {
  const row = tx.get<{ key: number }>("SELECT key FROM knowledge WHERE id = ?", id);
  if (!row) return false;
  removeRecordVectors(tx, "knowledge", [row.key]);
  removeWords(tx, WORDS, row.key);
  tx.run("DELETE FROM knowledge WHERE key = ?", row.key);
  return true;
}

/** The filter as a condition on `knowledge r`; absent when everything matches. */
function whereOf(filter: KnowledgeFilter): Where | undefined {
  const given = FILTERS.filter((field) => filter[field] !== undefined);
  if (given.length === 0) return undefined;
  return { sql: given.map((field) => `r.${field} = ?`).join(" AND "), params: given.map((field) => filter[field]!) };
}

const FILTERS = ["kind", "category", "subcategory", "source"] as const;

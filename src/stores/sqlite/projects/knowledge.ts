import { supersede } from "../../../model/anchor.ts";
import { damagedRecordError } from "../../../model/damaged-record.ts";
import { countUse, type Knowledge } from "../../../model/knowledge.ts";
import { orderTime } from "../../../model/record-order.ts";
import {
  countPieces,
  KNOWLEDGE_COLUMNS,
  knowledgeChecksum,
  PIECES_MAX,
  type RawRow,
  readKnowledge,
  type StoredRecord,
  splitStored,
} from "../../../model/stored-record.ts";
import type { VersionedVector } from "../../../ports/embedding-store.ts";
import type { KnowledgeBatch, KnowledgeFilter, KnowledgeMark, KnowledgeStore, KnowledgeWrite } from "../../../ports/knowledge-store.ts";
import { runInThread } from "../../../scheduling/run-in-thread.ts";
import { knowledgeTerms, knowledgeText } from "../../../text/knowledge-text.ts";
import { errorSignature } from "../../../text/normalise-error.ts";
import { recordTerms } from "../../../text/terms.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import type { SqliteTx, SqlValue } from "../driver/driver.ts";
import { sqliteDeletable } from "./deleted-records.ts";
import { cosines, cosinesByKey, type EmbeddedRecords, putRecordVectors, removeRecordVectors, sqliteEmbeddings } from "./embeddings.ts";
import { putTerms, rankByKeywords, removeTerms, type Where } from "./full-text.ts";
import { claimKey, recordOfKey, releaseKey } from "./idempotency.ts";
import { matchingIds, nearest, type VectorSearcher } from "./nearest.ts";
import { columnList, readPage, reorderFutureRecords, safeInteger } from "./record-rows.ts";

const RECORDS: EmbeddedRecords = {
  collection: "knowledge",
  table: "knowledge",
  textColumns: ["kind", "question"],
  textOf: ({ kind = "", question = "" }) => knowledgeText({ kind, question }),
  slots: PIECES_MAX,
};
const FULL_TEXT = { table: "knowledge_fts", records: "knowledge", hasLanguages: true };
const REORDER = reorderFutureRecords("knowledge", "created_order");

/** The knowledge in one SQLite file: a project's, or the shared one. */
export function sqliteKnowledge(database: DatabaseHandle, vectors: VectorSearcher): KnowledgeStore {
  return {
    embeddings: sqliteEmbeddings(RECORDS, database),

    ...sqliteDeletable({
      collection: "knowledge",
      database,
      rowOf: (tx, id) => tx.get<RawRow>(`SELECT ${COLUMNS} FROM knowledge r WHERE id = ?`, id),
      read: readKnowledge,
      add: (tx, record, recordVectors) => add(tx, { record, vectors: recordVectors }),
      remove: (tx, ids) => ids.filter((id) => remove(tx, id)).length,
    }),

    async put(record, recordVectors = [], { savedAt, supersedes, once } = {}) {
      return (await database()).write((tx) => {
        if (once && !claimKey(tx, once, record.id)) return false;
        if (savedAt !== undefined) tx.run(REORDER, savedAt);
        const added = add(tx, { record, vectors: recordVectors });
        if (added) markSuperseded(tx, supersedes, record.id);
        else if (once) releaseKey(tx, once);
        return added;
      });
    },

    async replace(record, recordVectors, { supersedes } = {}) {
      const db = await database();
      const replaced = await db.write((tx) => {
        const done = replace(tx, { record, vectors: recordVectors });
        if (done) markSuperseded(tx, supersedes, record.id);
        return done;
      });
      if (replaced) db.eraseLogLater();
      return replaced;
    },

    async get(id) {
      return (await database()).read((tx) => requireSound(byId(tx, id)));
    },

    recordOfKey: async (key) => (await database()).read((tx) => recordOfKey(tx, key)),

    async getMany(ids) {
      return (await database()).read((tx) => splitStored(ids.flatMap((id) => byId(tx, id) ?? [])));
    },

    async list({ filter = {}, limit, after }) {
      const where = whereOf(filter);
      return (await database()).read((tx) => {
        const { total } = tx.get<{ total: number }>(
          `SELECT count(*) AS total FROM knowledge r WHERE ${where?.sql ?? "true"}`,
          ...(where?.params ?? []),
        )!;
        const from = after && { at: minPlace(tx, after), id: after.id };
        const page = readPage(
          limit,
          (count, skipped) =>
            tx.all<RawRow>(
              `SELECT ${COLUMNS} FROM knowledge r
                WHERE ${where?.sql ?? "true"} ${from ? "AND (r.created_order < ? OR (r.created_order = ? AND r.id > ?))" : ""}
                ORDER BY r.created_order DESC, r.id LIMIT ? OFFSET ?`,
              ...(where?.params ?? []),
              ...(from ? [from.at, from.at, from.id] : []),
              count,
              skipped,
            ),
          readKnowledge,
        );
        return { ...page, total };
      });
    },

    async feedback(id, report, once) {
      return (await database()).write((tx) => {
        const before = requireSound(byId(tx, id));
        if (once && before && !claimKey(tx, once, id)) return requireSound(byId(tx, recordOfKey(tx, once)!));
        if (!before) return undefined;
        const record = countUse(before, report);
        tx.run(
          "UPDATE knowledge SET uses = ?, successes = ?, outdated = ?, checksum = ? WHERE id = ?",
          record.uses,
          record.successes,
          record.outdated,
          knowledgeChecksum(record),
          id,
        );
        return record;
      });
    },

    async withSignature(signature, filter, limit) {
      const where = whereOf(filter);
      return (await database()).read((tx) =>
        tx
          .all<{ id: string }>(
            `SELECT r.id FROM knowledge r WHERE r.signature = ? AND r.signature <> '' AND ${where?.sql ?? "true"} ORDER BY r.created_order, r.id DESC LIMIT ?`,
            signature,
            ...(where?.params ?? []),
            limit,
          )
          .map(({ id }) => id),
      );
    },

    async marks() {
      return (await database()).read((tx) =>
        tx.all<KnowledgeMark>(
          `SELECT id, source, content_hash AS contentHash, ${safeInteger("revision")} AS revision FROM knowledge ORDER BY id`,
        ),
      );
    },

    async apply(batch) {
      const opened = await database();
      const records = batch.add.length + batch.replace.length + batch.remove.length;
      const outcome = await (records > THREAD_RECORDS
        ? runInThread<"applied" | "changed meanwhile">("stores/sqlite/projects/knowledge-worker.js", { path: opened.path, batch })
        : opened.write((tx) => applyBatch(tx, batch)));
      if (outcome === "applied" && batch.remove.length + batch.replace.length > 0) await (await database()).eraseLog(); // opened again: it may have been closed as idle meanwhile
      return outcome;
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

/** Records per batch on the main thread. A larger batch would block the event loop for more than a few milliseconds. */
const THREAD_RECORDS = 100;

/** Applies the batch if its records are still as expected: all of it or nothing. */
export function applyBatch(tx: SqliteTx, batch: KnowledgeBatch): "applied" | "changed meanwhile" {
  const revisionOf = (id: string) => tx.get<{ revision: number }>("SELECT revision FROM knowledge WHERE id = ?", id)?.revision;
  const asExpected =
    batch.add.every(({ record }) => revisionOf(record.id) === undefined) &&
    batch.replace.every(({ record }) => revisionOf(record.id) === record.revision - 1) &&
    batch.remove.every(({ id, revision }) => revisionOf(id) === revision);
  if (!asExpected) return "changed meanwhile";
  if (batch.savedAt !== undefined) tx.run(REORDER, batch.savedAt);
  for (const write of batch.add) add(tx, write);
  for (const write of batch.replace) replace(tx, write);
  for (const { id } of batch.remove) remove(tx, id);
  return "applied";
}

const COLUMNS = columnList(KNOWLEDGE_COLUMNS);

function byId(tx: SqliteTx, id: string): StoredRecord<Knowledge> | undefined {
  const row = tx.get<RawRow>(`SELECT ${COLUMNS} FROM knowledge r WHERE id = ?`, id);
  return row && readKnowledge(row);
}

function requireSound(stored: StoredRecord<Knowledge> | undefined): Knowledge | undefined {
  if (stored && "damaged" in stored) throw damagedRecordError(stored.damaged);
  return stored?.record;
}

/** The current position of the cursor's record, if it was moved down since: the list continues from there. */
function minPlace(tx: SqliteTx, { at, id }: { readonly at: string; readonly id: string }): string {
  return orderTime(at, tx.get<{ at: string }>("SELECT created_order AS at FROM knowledge WHERE id = ?", id)?.at ?? at);
}

function add(tx: SqliteTx, { record, vectors = [] }: KnowledgeWrite): boolean {
  const { changes, lastId } = tx.run(
    `INSERT INTO knowledge (id, ${WRITTEN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    record.id,
    ...valuesOf(record),
  );
  if (changes === 0) return false;
  putDerived(tx, lastId, record, vectors);
  return true;
}

/** Keeps the fields that only feedback and the first save may set, unless the stored record is damaged. */
function replace(tx: SqliteTx, { record, vectors }: KnowledgeWrite): boolean {
  const row = tx.get<RawRow>(`SELECT ${COLUMNS} FROM knowledge r WHERE id = ? AND revision = ?`, record.id, record.revision - 1);
  if (!row) return false;
  const before = readKnowledge(row);
  const { successes, uses, createdAt, createdOrder } = "record" in before ? before.record : record;
  const after = { ...record, successes, uses, createdAt, createdOrder };
  const key = row.key as number;
  if (vectors) removeRecordVectors(tx, "knowledge", [key]);
  tx.run(
    `UPDATE knowledge SET (${WRITTEN}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE key = ?`,
    ...valuesOf(after),
    key,
  );
  putDerived(tx, key, after, vectors ?? []);
  return true;
}

function markSuperseded(tx: SqliteTx, ids: readonly string[] = [], by: string): void {
  for (const id of ids) {
    const stored = id === by ? undefined : byId(tx, id);
    if (!stored || "damaged" in stored) continue;
    const after = supersede(stored.record, by);
    const sql = "UPDATE knowledge SET superseded_by = ?, revision = ?, checksum = ? WHERE id = ?";
    tx.run(sql, by, after.revision, knowledgeChecksum(after), id);
  }
}

const WRITTEN =
  "kind, category, subcategory, question, answer, content_hash, signature, pieces, successes, uses, outdated, source, anchors, superseded_by, created_at, updated_at, created_order, revision, checksum";

/** In the order of WRITTEN. */
function valuesOf(record: Knowledge): SqlValue[] {
  const { kind, category, subcategory, question, answer, contentHash, successes, uses, outdated, source, anchors, supersededBy, revision } =
    record;
  const signature = kind === "remediation" ? errorSignature(question) : "";
  const content = [kind, category, subcategory, question, answer, contentHash, signature, countPieces(knowledgeText(record))];
  const { createdAt, updatedAt, createdOrder } = record;
  const state = [successes, uses, outdated, source, JSON.stringify(anchors), supersededBy];
  return [...content, ...state, createdAt, updatedAt, createdOrder, revision, knowledgeChecksum(record)];
}

function putDerived(tx: SqliteTx, key: number, record: Knowledge, vectors: readonly VersionedVector[]): void {
  putTerms(tx, FULL_TEXT.table, key, recordTerms(knowledgeTerms(record)).join(" "));
  putRecordVectors(tx, "knowledge", key, vectors);
}

function remove(tx: SqliteTx, id: string): boolean {
  const row = tx.get<{ key: number }>("SELECT key FROM knowledge WHERE id = ?", id);
  if (!row) return false;
  removeRecordVectors(tx, "knowledge", [row.key]);
  removeTerms(tx, FULL_TEXT.table, row.key);
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

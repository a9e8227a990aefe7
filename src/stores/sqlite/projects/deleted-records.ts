import { damagedRecordError, type RecordCollection } from "../../../model/damaged-record.ts";
import { deletedRow, readDeleted } from "../../../model/deleted-record.ts";
import type { RawRow, StoredRecord } from "../../../model/stored-record.ts";
import type { DeletableRecords } from "../../../ports/deletable-records.ts";
import type { VersionedVector } from "../../../ports/embedding-store.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { readPage } from "./record-rows.ts";

/** The rows of deleted records as JSON. A trigger of `EVENT_SCHEMA` removes one when a record is stored under its id, so that an id exists once. */
export const DELETED_SCHEMA = `
CREATE TABLE deleted_records (
  collection TEXT NOT NULL,
  id TEXT NOT NULL,
  deleted_at TIMESTAMP NOT NULL,
  record TEXT NOT NULL,
  checksum TEXT NOT NULL,
  PRIMARY KEY (collection, id)
);
CREATE INDEX deleted_records_time ON deleted_records (collection, deleted_at DESC, id);
`;

export interface Deletable<RecordType> {
  readonly collection: RecordCollection;
  readonly database: DatabaseHandle;
  /** Returns the row of a visible record with everything that `read` needs. */
  readonly rowOf: (tx: SqliteTx, id: string) => RawRow | undefined;
  readonly read: (row: RawRow) => StoredRecord<RecordType>;
  /** Stores a record as visible unless its id exists; returns whether it did. */
  readonly add: (tx: SqliteTx, record: RecordType, vectors: readonly VersionedVector[]) => boolean;
  /** Erases visible records with everything derived from them. */
  readonly remove: (tx: SqliteTx, ids: readonly string[]) => number;
}

/** Returns the verbs that delete, restore and purge the records of one collection. */
export function sqliteDeletable<RecordType extends { readonly id: string; readonly revision: number }>(
  deletable: Deletable<RecordType>,
): DeletableRecords<RecordType> {
  const { collection, database, rowOf, read, add, remove } = deletable;
  const readRow = (row: RawRow) => readDeleted(collection, row, read);

  function getDeleted(tx: SqliteTx, id: string) {
    const row = tx.get<RawRow>(`SELECT ${COLUMNS} FROM deleted_records r WHERE collection = ? AND id = ?`, collection, id);
    if (!row) return undefined;
    const stored = readRow(row);
    if ("damaged" in stored) throw damagedRecordError(stored.damaged);
    return stored.record;
  }

  function moveToDeleted(tx: SqliteTx, id: string, at: string): boolean {
    const row = rowOf(tx, id);
    if (!row) return false;
    const stored = read(row);
    if ("damaged" in stored) throw damagedRecordError(stored.damaged);
    const { deletedAt, record, checksum } = deletedRow(collection, row, at);
    tx.run(
      "INSERT OR REPLACE INTO deleted_records (collection, id, deleted_at, record, checksum) VALUES (?, ?, ?, ?, ?)",
      collection,
      id,
      deletedAt,
      record,
      checksum,
    );
    remove(tx, [id]);
    return true;
  }

  async function erase(work: (tx: SqliteTx) => number): Promise<number> {
    const db = await database();
    const erased = await db.write(work);
    if (erased > 0) await db.eraseLog();
    return erased;
  }

  return {
    async delete(ids, deletedAt) {
      return (await database()).write((tx) => ids.filter((id) => moveToDeleted(tx, id, deletedAt)).length);
    },

    async restore(deleted, vectors = []) {
      return (await database()).write((tx) => {
        const found = getDeleted(tx, deleted.record.id);
        if (found?.deletedAt !== deleted.deletedAt || found.record.revision !== deleted.record.revision) return false;
        return add(tx, found.record, vectors);
      });
    },

    purge: (ids) =>
      erase((tx) => {
        const deleted = ids.map((id) => tx.run("DELETE FROM deleted_records WHERE collection = ? AND id = ?", collection, id).changes);
        return deleted.reduce((sum, count) => sum + count, remove(tx, ids));
      }),

    purgeDeleted: (before, limit) =>
      erase(
        (tx) =>
          tx.run(
            `DELETE FROM deleted_records WHERE collection = ?1 AND id IN
               (SELECT id FROM deleted_records WHERE collection = ?1 AND deleted_at < ?2 ORDER BY deleted_at LIMIT ?3)`,
            collection,
            before,
            limit,
          ).changes,
      ),

    async listDeleted({ limit, after }) {
      return (await database()).read((tx) => {
        const { total } = tx.get<{ total: number }>("SELECT count(*) AS total FROM deleted_records WHERE collection = ?", collection)!;
        const page = readPage(
          limit,
          (count, skipped) =>
            tx.all<RawRow>(
              `SELECT ${COLUMNS} FROM deleted_records r WHERE collection = ?
                 ${after ? "AND (deleted_at < ? OR (deleted_at = ? AND id > ?))" : ""} ORDER BY deleted_at DESC, id LIMIT ? OFFSET ?`,
              collection,
              ...(after ? [after.at, after.at, after.id] : []),
              count,
              skipped,
            ),
          readRow,
        );
        return { ...page, total };
      });
    },

    async getDeleted(id) {
      return (await database()).read((tx) => getDeleted(tx, id));
    },

    async putDeleted(record, deletedAt) {
      return (await database()).write((tx) => {
        if (tx.get("SELECT 1 FROM deleted_records WHERE collection = ? AND id = ?", collection, record.id)) return false;
        return add(tx, record, []) && moveToDeleted(tx, record.id, deletedAt);
      });
    },
  };
}

const COLUMNS = "id, deleted_at, record, checksum";

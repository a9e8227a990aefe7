import { damagedRecordError, type RecordCollection } from "../../../model/damaged-record.ts";
import { deletedRow, readDeleted } from "../../../model/deleted-record.ts";
import type { RawRow, StoredRecord } from "../../../model/stored-record.ts";
import type { DeletableRecords, DeletedPage } from "../../../ports/deletable-records.ts";
import type { VersionedVector } from "../../../ports/embedding-store.ts";
import type { PostgresTx } from "../driver/driver.ts";
import { toTimestamp } from "../driver/time.ts";
import type { ProjectPart } from "./project-schema.ts";
import type { ProjectTables } from "./project-tables.ts";
import { readPage } from "./record-rows.ts";

/** The rows of deleted records as JSON. A trigger of `EVENT_SCHEMA` removes one when a record is stored under its id, so that an id exists once. */
export const DELETED_SCHEMA = `
CREATE TABLE deleted_records (
  collection text NOT NULL,
  id text COLLATE "C" NOT NULL,
  deleted_at timestamptz NOT NULL,
  record text NOT NULL,
  checksum text NOT NULL,
  PRIMARY KEY (collection, id)
);
CREATE INDEX deleted_records_time ON deleted_records (collection, deleted_at DESC, id);
`;

export interface Deletable<RecordType> {
  readonly collection: RecordCollection;
  readonly tables: ProjectTables;
  /** The parts with the table of visible records; none where every project has it. */
  readonly parts: readonly ProjectPart[];
  /** The columns of a visible record, for `read`. */
  readonly columns: string;
  readonly read: (row: RawRow) => StoredRecord<RecordType>;
  /** Stores a record as visible unless its id exists; returns whether it did. */
  readonly add: (tx: PostgresTx, record: RecordType, vectors: readonly VersionedVector[]) => Promise<boolean>;
  /** Erases visible records with everything derived from them. */
  readonly remove: (tx: PostgresTx, ids: readonly string[]) => Promise<number>;
}

/** Returns the verbs that delete, restore and purge the records of one collection. */
export function postgresDeletable<RecordType extends { readonly id: string; readonly revision: number }>(
  deletable: Deletable<RecordType>,
): DeletableRecords<RecordType> {
  const { collection, tables, parts, columns, read, add, remove } = deletable;
  const deletion = tables.part("deletion");
  const readRow = (row: RawRow) => readDeleted(collection, row, read);
  const select = `SELECT ${COLUMNS} FROM deleted_records WHERE collection = '${collection}' AND id = $1`;

  function requireSound(row: RawRow) {
    const stored = readRow(row);
    if ("damaged" in stored) throw damagedRecordError(stored.damaged);
    return stored.record;
  }

  async function moveToDeleted(tx: PostgresTx, ids: readonly string[], at: string): Promise<number> {
    const rows = await tx.all<RawRow>(`SELECT ${columns} FROM ${collection} WHERE id = ANY ($1::text[]) ORDER BY key FOR UPDATE`, ids);
    if (rows.length === 0) return 0;
    for (const row of rows) {
      const stored = read(row);
      if ("damaged" in stored) throw damagedRecordError(stored.damaged);
      const { id, deletedAt, record, checksum } = deletedRow(collection, row, at);
      await tx.run(
        `INSERT INTO deleted_records (collection, id, deleted_at, record, checksum) VALUES ('${collection}', $1, $2, $3, $4)
         ON CONFLICT (collection, id) DO UPDATE SET deleted_at = excluded.deleted_at, record = excluded.record, checksum = excluded.checksum`,
        id,
        toTimestamp(deletedAt),
        record,
        checksum,
      );
    }
    return remove(tx, ids);
  }

  return {
    delete: (ids, deletedAt) => deletion.write(async (tx) => ((await tables.has(tx, ...parts)) ? moveToDeleted(tx, ids, deletedAt) : 0)),

    restore: (deleted, vectors = []) =>
      deletion.change(false, async (tx) => {
        const row = await tx.get<RawRow>(`${select} FOR UPDATE`, deleted.record.id);
        const found = row && requireSound(row);
        if (found?.deletedAt !== deleted.deletedAt || found.record.revision !== deleted.record.revision) return false;
        return add(tx, found.record, vectors);
      }),

    purge: (ids) =>
      tables.write(async (tx) => {
        const sql = `DELETE FROM deleted_records WHERE collection = '${collection}' AND id = ANY ($1::text[])`;
        const deleted = (await tables.has(tx, "deletion")) ? await tx.run(sql, ids) : 0;
        return deleted + ((await tables.has(tx, ...parts)) ? await remove(tx, ids) : 0);
      }),

    purgeDeleted: (before, limit) =>
      deletion.change(0, (tx) =>
        tx.run(
          `DELETE FROM deleted_records WHERE collection = '${collection}' AND id IN
             (SELECT id FROM deleted_records WHERE collection = '${collection}' AND deleted_at < $1
               ORDER BY deleted_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
          toTimestamp(before),
          limit,
        ),
      ),

    listDeleted: ({ limit, after }) =>
      deletion.read<DeletedPage<RecordType>>({ records: [], damaged: [], total: 0 }, async (tx) => {
        const counted = await tx.get<{ total: number }>(`SELECT count(*) AS total FROM deleted_records WHERE collection = '${collection}'`);
        const page = await readPage(
          limit,
          (count, skipped) =>
            tx.all<RawRow>(
              `SELECT ${COLUMNS} FROM deleted_records WHERE collection = '${collection}'
                 ${after ? "AND deleted_at <= $3 AND (deleted_at < $3 OR id > $4)" : ""} ORDER BY deleted_at DESC, id LIMIT $1 OFFSET $2`,
              count,
              skipped,
              ...(after ? [toTimestamp(after.at), after.id] : []),
            ),
          readRow,
        );
        return { ...page, total: counted!.total };
      }),

    async getDeleted(id) {
      const row = await deletion.read(undefined, (tx) => tx.get<RawRow>(select, id));
      return row && requireSound(row);
    },

    putDeleted: (record, deletedAt) =>
      tables.part(...parts, "deletion").write(async (tx) => {
        if (await tx.get(`${select} FOR UPDATE`, record.id)) return false;
        return (await add(tx, record, [])) && (await moveToDeleted(tx, [record.id], deletedAt)) > 0;
      }),
  };
}

const COLUMNS = "id, deleted_at, record, checksum";

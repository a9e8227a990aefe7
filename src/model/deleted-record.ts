import type { Checkpoint } from "./checkpoint.ts";
import type { RecordCollection } from "./damaged-record.ts";
import { framedHash } from "./ids.ts";
import type { Knowledge } from "./knowledge.ts";
import { damagedRow, isTime, type RawRow, readCheckpoint, readKnowledge, type StoredRecord } from "./stored-record.ts";

/** The columns that identify a deleted record and hold it. */
export const DELETED_COLUMNS = { collection: "text", id: "text", deleted_at: "time", record: "text", checksum: "text" } as const;

/** A record that was deleted and can be restored until its retention ends. */
export interface DeletedRecord<RecordType> {
  readonly record: RecordType;
  readonly deletedAt: string;
}

/** A row of `deleted_records`. `record` is the record's own row as JSON, in the same form on every engine. */
export interface DeletedRow {
  readonly id: string;
  readonly deletedAt: string;
  readonly record: string;
  readonly checksum: string;
}

/** Returns the row under which a record's row is stored after its deletion. */
export function deletedRow(collection: RecordCollection, { key: _, ...row }: RawRow, deletedAt: string): DeletedRow {
  const id = String(row.id);
  const record = JSON.stringify(row);
  return { id, deletedAt, record, checksum: checksumOf(collection, id, deletedAt, record) };
}

/** Reads a row of `deleted_records`, and verifies it and the record in it. */
export function readDeleted<RecordType extends { readonly id: string }>(
  collection: RecordCollection,
  row: RawRow,
  read: (row: RawRow) => StoredRecord<RecordType>,
): StoredRecord<DeletedRecord<RecordType>> {
  const { id, deleted_at: deletedAt, record, checksum } = row;
  const damaged = (reason: string) => ({ damaged: damagedRow(collection, row, reason) });
  if (typeof id !== "string" || typeof record !== "string") return damaged("its deleted row is not text");
  if (typeof deletedAt !== "string" || !isTime(deletedAt)) return damaged("deleted_at is not a time");
  if (checksum !== checksumOf(collection, id, deletedAt, record)) return damaged("its deleted row does not match its checksum");
  const stored = read(JSON.parse(record));
  return "record" in stored ? { record: { record: stored.record, deletedAt } } : stored;
}

/** Reads a row of `deleted_records` of either collection, and verifies it. */
export function readDeletedRow(row: RawRow): StoredRecord<DeletedRecord<Checkpoint | Knowledge>> {
  if (row.collection === "checkpoints") return readDeleted("checkpoints", row, (record) => readCheckpoint(record, ""));
  return readDeleted<Checkpoint | Knowledge>("knowledge", row, readKnowledge);
}

function checksumOf(collection: RecordCollection, id: string, deletedAt: string, record: string): string {
  return framedHash("deleted", collection, id, deletedAt, record);
}

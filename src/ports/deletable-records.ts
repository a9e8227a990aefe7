import type { DamagedRecord } from "../model/damaged-record.ts";
import type { DeletedRecord } from "../model/deleted-record.ts";
import type { VersionedVector } from "./embedding-store.ts";

export interface DeletedQuery {
  readonly limit: number;
  /** Only records after this one: the latest deletion first, ties by id. */
  readonly after?: { readonly at: string; readonly id: string } | undefined;
}

export interface DeletedPage<RecordType> {
  readonly records: readonly DeletedRecord<RecordType>[];
  /** Unreadable records within the page; they count in `total`, and further records fill the page. */
  readonly damaged: readonly DamagedRecord[];
  readonly total: number;
}

/**
 * Deletion with undo. A deleted record leaves every list, count and search at once, with its terms and vectors; its content stays
 * until it is restored or purged. An id is visible or deleted, never both: storing a record under a deleted id replaces the deleted one.
 */
export interface DeletableRecords<RecordType> {
  /** Deletes these in one transaction and returns how many were visible. Raises `conflict` if one is damaged. */
  delete(ids: readonly string[], deletedAt: string): Promise<number>;
  /** Makes a deleted record visible again with these vectors. Returns false if it is not deleted any more, or was deleted again since. */
  restore(deleted: DeletedRecord<RecordType>, vectors?: readonly VersionedVector[]): Promise<boolean>;
  /** Erases these in one transaction, visible or deleted, and returns how many existed. Their text leaves the files too. */
  purge(ids: readonly string[]): Promise<number>;
  /** Erases up to `limit` records that were deleted before this time, and returns how many. */
  purgeDeleted(before: string, limit: number): Promise<number>;
  listDeleted(query: DeletedQuery): Promise<DeletedPage<RecordType>>;
  /** Raises `conflict` if the record is damaged. */
  getDeleted(id: string): Promise<DeletedRecord<RecordType> | undefined>;
  /** Stores a record as deleted, for an import; returns false and changes nothing if its id exists, visible or deleted. */
  putDeleted(record: RecordType, deletedAt: string): Promise<boolean>;
}

import type { DeletedRecord } from "../model/deleted-record.ts";
import { CairnError } from "../model/errors.ts";
import type { Clock } from "../model/ids.ts";
import type { DeletableRecords } from "../ports/deletable-records.ts";
import type { VersionedVector } from "../ports/embedding-store.ts";

/** A record that was deleted, now or earlier. */
export interface Deletion {
  readonly id: string;
  readonly deleted: true;
  readonly deletedAt: string;
  /** The end of its retention: until then it can be restored. */
  readonly restorableUntil: string;
}

export interface DeletionRules {
  readonly now: Clock;
  /** Days that deleted records are kept. */
  readonly deletedDays: number;
}

const DAY_MS = 24 * 3_600_000;

/** Returns the time before which deleted records have reached the end of their retention. */
export function retentionStart({ now, deletedDays }: DeletionRules): string {
  return new Date(Date.parse(now()) - deletedDays * DAY_MS).toISOString();
}

/** Deletes a record. Deleting it again changes nothing and returns the first deletion. Raises `missing` for an unknown id. */
export async function deleteRecord(
  store: DeletableRecords<unknown> | undefined,
  id: string,
  rules: DeletionRules,
  missing: (id: string) => CairnError,
): Promise<Deletion> {
  const at = rules.now();
  const deletedAt = store && ((await store.delete([id], at)) > 0 ? at : (await store.getDeleted(id))?.deletedAt);
  if (deletedAt === undefined) throw missing(id);
  const restorableUntil = new Date(Date.parse(deletedAt) + rules.deletedDays * DAY_MS).toISOString();
  return { id, deleted: true, deletedAt, restorableUntil };
}

export interface RestoreRecord<RecordType> {
  readonly store: DeletableRecords<RecordType> & { get(id: string): Promise<RecordType | undefined> };
  readonly id: string;
  /** Embeds the record and calls `write`; returns `undefined` if the write was refused, else whether the record has a vector. */
  readonly embed: (record: RecordType, write: (vectors: readonly VersionedVector[]) => Promise<boolean>) => Promise<boolean | undefined>;
  readonly missing: (id: string) => CairnError;
}

/** Attempts to restore a record that others delete and restore at the same time. */
const ATTEMPTS = 20;

/** Makes a deleted record visible again. A visible record is returned as it is. Raises `missing` for a purged or unknown id. */
export async function restoreRecord<RecordType>({
  store,
  id,
  embed,
  missing,
}: RestoreRecord<RecordType>): Promise<RecordType & { readonly embedded: boolean }> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const deleted = await store.getDeleted(id);
    if (!deleted) {
      const visible = await store.get(id);
      if (!visible) throw missing(id);
      return { ...visible, embedded: true };
    }
    const embedded = await embed(deleted.record, (vectors) => store.restore(deleted, vectors));
    if (embedded !== undefined) return { ...deleted.record, embedded };
  }
  throw new CairnError("conflict", "Other callers keep deleting this record. Try again.", { retryAfterMs: 500 });
}

/** Stores records of an export that were deleted there. Ids that exist, visible or deleted, are skipped. */
export async function importDeleted<RecordType>(
  store: DeletableRecords<RecordType>,
  records: readonly DeletedRecord<RecordType>[],
  signal?: AbortSignal,
): Promise<{ readonly imported: number; readonly present: number }> {
  let imported = 0;
  for (const { record, deletedAt } of records) {
    signal?.throwIfAborted();
    if (await store.putDeleted(record, deletedAt)) imported++;
  }
  return { imported, present: records.length - imported };
}

/** Erases a record at once, visible or deleted. Raises `missing` for an unknown id. */
export async function purgeRecord(
  store: DeletableRecords<unknown> | undefined,
  id: string,
  missing: (id: string) => CairnError,
): Promise<{ readonly purged: true }> {
  if (!store || (await store.purge([id])) === 0) throw missing(id);
  return { purged: true };
}

/** Deleted records per transaction, few enough that other writers do not wait long. */
const BATCH = 200;

/** Erases the records of a store that were deleted before a time, in batches, and returns how many. */
export async function purgeExpired(store: DeletableRecords<unknown>, before: string, signal?: AbortSignal): Promise<number> {
  for (let purged = 0; ; ) {
    signal?.throwIfAborted();
    const count = await store.purgeDeleted(before, BATCH);
    purged += count;
    if (count < BATCH) return purged;
  }
}

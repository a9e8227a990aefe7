import { framedHash } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import type { ReadRecords } from "../ports/recall-store.ts";
import type { Page, Store } from "./record-pages.ts";

/** The fields of a record by which two copies are compared. */
interface Versioned {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly revision: number;
  /** Only knowledge has these. */
  readonly uses?: number;
  readonly successes?: number;
  readonly contentHash?: string;
  /** Only checkpoints have these. */
  readonly summary?: string;
  readonly description?: string;
}

/** The records of one kind, with the database that they leave and the one that receives them. */
export interface Move<RecordType extends Versioned> {
  readonly from: string;
  readonly into: string;
  readonly pages: AsyncIterable<Page<RecordType>>;
  readonly readSource: (ids: readonly string[]) => Promise<ReadRecords<RecordType>>;
  /** Reads the receiving database. It is absent until the first record is stored. */
  readonly readTarget: (ids: readonly string[]) => Promise<ReadRecords<RecordType>>;
  readonly store: Store;
  /** Deletes records of the source and returns how many were there. */
  readonly remove: (records: readonly RecordType[]) => Promise<number>;
  readonly signal?: AbortSignal | undefined;
  readonly count: (records: number) => void;
}

export interface Moved {
  readonly moved: number;
  /** Records that stay in the source, with the reasons. */
  readonly kept: number;
  readonly problems: readonly string[];
  /** Records whose id another record of the target has. */
  readonly renamed: readonly { readonly id: string; readonly newId: string }[];
}

/**
 * Moves records: each page is copied, read back, and only then deleted from the source. A kill in between leaves copies under the same
 * ids, which the next call finds and does not copy again.
 */
export async function moveRecords<RecordType extends Versioned>(move: Move<RecordType>): Promise<Moved> {
  const { from, into, pages, readSource, readTarget, store, remove, signal, count } = move;
  const sum = { moved: 0, kept: 0, problems: [] as string[], renamed: [] as { id: string; newId: string }[] };
  for await (const { records, damaged } of pages) {
    const before = byId(await readTarget(records.map(({ id }) => id)));
    const planned = records.map((record) => ({ record, newId: targetId(from, record, before) }));
    const copies = planned.flatMap(({ record, newId }) => (newId === undefined ? [] : [{ ...record, id: newId }]));
    const { problems } = copies.length > 0 ? await store(into, copies, { signal }) : { problems: [] };
    signal?.throwIfAborted();
    // The checksum of a record is verified when it is read.
    const after = byId(await readTarget(copies.map(({ id }) => id)));
    const present = byId(await readSource(records.map(({ id }) => id)));
    const settled = planned.filter(({ record, newId }) => {
      const copy = newId === undefined ? before.get(record.id) : after.get(newId);
      const now = present.get(record.id);
      return copy !== undefined && covers(copy, record, newId) && now !== undefined && isUnchanged(record, now);
    });
    const moved = settled.length > 0 ? await remove(settled.map(({ record }) => record)) : 0;
    sum.moved += moved;
    sum.kept += records.length - moved + damaged.length;
    sum.problems.push(...problems.map(({ problem }) => problem), ...damaged.map(({ id, reason }) => `${id} is damaged: ${reason}`));
    for (const { record, newId } of settled) if (newId !== undefined && newId !== record.id) sum.renamed.push({ id: record.id, newId });
    count(records.length);
  }
  return sum;
}

/** Returns the id of the copy: that of the record unless another record has it; `undefined` if the target has the same content already. */
function targetId<RecordType extends Versioned>(
  from: string,
  record: RecordType,
  existing: ReadonlyMap<string, RecordType | undefined>,
): string | undefined {
  const { id, createdAt, updatedAt, uses = 0, contentHash } = record;
  if (!existing.has(id)) return id;
  const other = existing.get(id);
  if (other && covers(other, record, id)) return id;
  if (other && contentHash !== undefined && other.contentHash === contentHash && uses === 0) return undefined;
  // The same version gets the same id in a repeated call.
  const mark = framedHash(from, id, createdAt, updatedAt, uses).slice(0, 8);
  return `${id.slice(0, LIMITS.idChars - mark.length - 1)}-${mark}`;
}

/** Returns whether a record of the target is this one, at the same version or a later one. */
function covers(copy: Versioned, record: Versioned, newId: string | undefined): boolean {
  if (newId === undefined) return copy.contentHash === record.contentHash;
  const counts = (copy.uses ?? 0) >= (record.uses ?? 0) && (copy.successes ?? 0) >= (record.successes ?? 0);
  const isLater = copy.updatedAt > record.updatedAt || (copy.updatedAt === record.updatedAt && hasSameContent(copy, record));
  return copy.createdAt === record.createdAt && isLater && counts;
}

/** Two records of one millisecond may share their times and, where callers choose it, their id. */
function hasSameContent(copy: Versioned, record: Versioned): boolean {
  return copy.contentHash === record.contentHash && copy.summary === record.summary && copy.description === record.description;
}

function isUnchanged(read: Versioned, now: Versioned): boolean {
  return read.revision === now.revision && read.uses === now.uses && read.successes === now.successes;
}

/** Damaged records have no value: their ids are taken. */
function byId<RecordType extends Versioned>({ records, damaged }: ReadRecords<RecordType>): ReadonlyMap<string, RecordType | undefined> {
  const found = new Map<string, RecordType | undefined>(damaged.map(({ id }) => [id, undefined]));
  for (const record of records) found.set(record.id, record);
  return found;
}

import type { DeletedRecord } from "../../model/deleted-record.ts";
import { newestFirst } from "../../model/record-order.ts";
import type { DeletableRecords } from "../../ports/deletable-records.ts";
import type { VersionedVector } from "../../ports/embedding-store.ts";
import type { ObservedRecords } from "./observed-records.ts";

interface Vectors {
  put(id: string, vectors: readonly VersionedVector[]): void;
  remove(id: string): void;
}

/** Returns the verbs that delete, restore and purge the records of this map, and a function that drops a deleted record whose id is stored again. */
export function memoryDeletable<RecordType extends { readonly id: string; readonly revision: number }>(
  visible: ObservedRecords<RecordType>,
  vectors: Vectors,
): { readonly deletable: DeletableRecords<RecordType>; readonly forget: (id: string) => void } {
  const deleted = new Map<string, DeletedRecord<RecordType>>();
  const remove = (id: string) => {
    vectors.remove(id);
    return visible.delete(id);
  };
  const purgeDeleted = (id: string) => {
    const existed = deleted.delete(id);
    if (existed) visible.report("purged", id);
    return existed;
  };
  const forget = (id: string) => {
    if (deleted.delete(id)) visible.forgetDeleted(id);
  };
  const place = ({ record, deletedAt }: DeletedRecord<RecordType>) => ({ at: deletedAt, id: record.id });

  const deletable: DeletableRecords<RecordType> = {
    async delete(ids, deletedAt) {
      return ids.filter((id) => {
        const record = visible.get(id);
        if (record) deleted.set(id, { record, deletedAt });
        vectors.remove(id);
        return visible.moveToDeleted(id);
      }).length;
    },
    async restore({ record: { id, revision }, deletedAt }, recordVectors = []) {
      const found = deleted.get(id);
      if (found?.deletedAt !== deletedAt || found.record.revision !== revision) return false;
      forget(id);
      visible.set(id, found.record);
      vectors.put(id, recordVectors);
      return true;
    },
    purge: async (ids) => ids.filter((id) => purgeDeleted(id) || remove(id)).length,
    async purgeDeleted(before, limit) {
      const expired = [...deleted.values()].filter(({ deletedAt }) => deletedAt < before).slice(0, limit);
      for (const { record } of expired) purgeDeleted(record.id);
      return expired.length;
    },
    async listDeleted({ limit, after }) {
      const all = [...deleted.values()].sort((a, b) => newestFirst(place(a), place(b)));
      const rest = after ? all.filter((one) => newestFirst(place(one), after) > 0) : all;
      return { records: structuredClone(rest.slice(0, limit)), damaged: [], total: all.length };
    },
    getDeleted: async (id) => structuredClone(deleted.get(id)),
    async putDeleted(record, deletedAt) {
      if (visible.has(record.id) || deleted.has(record.id)) return false;
      deleted.set(record.id, { record: structuredClone(record), deletedAt });
      for (const action of ["saved", "deleted"]) visible.report(action, record.id);
      return true;
    },
  };
  return { deletable, forget };
}

import { newestFirst } from "../model/record-order.ts";
import type { RecordStore } from "../ports/recall-store.ts";
import type { Found, Hydrated, Ranking } from "./search.ts";

export interface Hit<RecordType> {
  readonly record: RecordType;
  /** Cosine, clamped to 0…1; 0 where the record has no vector yet. */
  readonly score: number;
  readonly found: Found;
}

/** Reads the best `topK` records of a ranking; of equal scores the newer record comes first. */
export async function readRecordHits<RecordType extends { readonly id: string; readonly createdOrder: string }>(
  store: Pick<RecordStore<RecordType, never>, "getMany">,
  { order, cosine, found }: Pick<Ranking<unknown>, "order" | "cosine" | "found">,
  topK: number,
): Promise<Hydrated<Hit<RecordType>>> {
  const read = await store.getMany(order.slice(0, topK * 2).map(({ id }) => id));
  const records = new Map(read.records.map((record) => [record.id, record]));
  const hits = order
    .flatMap(({ id, score }) => {
      const record = records.get(id);
      return record ? [{ record, fused: score }] : [];
    })
    .sort((a, b) => b.fused - a.fused || newestFirst(listPosition(a.record), listPosition(b.record)))
    .slice(0, topK)
    .map(({ record }) => ({ record, score: Math.min(1, Math.max(0, cosine(record.id) ?? 0)), found: found(record.id) }));
  return { hits, damaged: read.damaged };
}

/** Returns where a record stands in a list by creation time. */
export function listPosition({ id, createdOrder }: { readonly id: string; readonly createdOrder: string }): { id: string; at: string } {
  return { id, at: createdOrder };
}

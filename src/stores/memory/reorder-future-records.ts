import { latestPlace, newestFirst, placeBefore } from "../../model/record-order.ts";

/** Moves records whose order lies in the future, because of a wrong clock, to just before a save. Keeps their order. */
export function reorderFutureRecords<Order extends string, Stored extends { readonly id: string } & { readonly [order in Order]: string }>(
  byId: Map<string, Stored>,
  order: Order,
  savedAt: string,
): void {
  const latest = latestPlace(savedAt);
  const ahead = [...byId.values()]
    .filter((record) => record[order] > latest)
    .sort((a, b) => newestFirst({ id: a.id, at: a[order] }, { id: b.id, at: b[order] }));
  for (const [index, record] of ahead.entries()) byId.set(record.id, { ...record, [order]: placeBefore(savedAt, index) });
}

import type { Checkpoint, CheckpointSort } from "../../model/checkpoint.ts";
import { newestFirst, orderTime, type Placed } from "../../model/record-order.ts";
import { checkpointText } from "../../model/stored-record.ts";
import type { CheckpointFilter, CheckpointStore } from "../../ports/checkpoint-store.ts";
import { bm25 } from "../../text/bm25.ts";
import { memoryEmbeddings } from "./embeddings.ts";
import { reorderFutureRecords } from "./reorder-future-records.ts";

export function memoryCheckpoints(): CheckpointStore {
  const byId = new Map<string, Checkpoint>();
  const embeddings = memoryEmbeddings(() =>
    [...byId.values()]
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map((checkpoint) => ({ id: checkpoint.id, revision: checkpoint.revision, text: checkpointText(checkpoint) })),
  );

  return {
    embeddings,
    async put(checkpoint, vectors = [], { savedAt } = {}) {
      if (byId.has(checkpoint.id)) return;
      if (savedAt !== undefined) for (const order of ["createdOrder", "updatedOrder"] as const) reorderFutureRecords(byId, order, savedAt);
      byId.set(checkpoint.id, structuredClone(checkpoint));
      embeddings.put(checkpoint.id, vectors);
    },
    async replace(checkpoint, vectors = []) {
      if (byId.get(checkpoint.id)?.revision !== checkpoint.revision - 1) return false;
      reorderFutureRecords(byId, "updatedOrder", checkpoint.updatedAt);
      byId.set(checkpoint.id, { ...structuredClone(checkpoint), createdOrder: byId.get(checkpoint.id)!.createdOrder });
      embeddings.remove(checkpoint.id);
      embeddings.put(checkpoint.id, vectors);
      return true;
    },
    get: async (id) => structuredClone(byId.get(id)),
    getMany: async (ids) => ({ records: structuredClone(ids.flatMap((id) => byId.get(id) ?? [])), damaged: [] }),
    async list({ filter = {}, limit, offset, sortBy, after }) {
      const order = ORDER[sortBy];
      const position = (checkpoint: Checkpoint): Placed => ({ at: checkpoint[order], id: checkpoint.id });
      const from = after && { ...after, at: orderTime(after.at, byId.get(after.id)?.[order] ?? after.at) };
      const matching = [...byId.values()].filter((checkpoint) => matches(checkpoint, filter));
      const rest = matching
        .sort((a, b) => newestFirst(position(a), position(b)))
        .filter((checkpoint) => !from || newestFirst(position(checkpoint), from) > 0);
      return { checkpoints: structuredClone(rest.slice(offset, offset + limit)), damaged: [], total: matching.length };
    },
    async tags(limit) {
      const counts = new Map<string, { tag: string; count: number }>();
      for (const { tags } of byId.values())
        for (const [folded, tag] of new Map(tags.map((one) => [one.toLowerCase(), one]))) {
          const known = counts.get(folded);
          counts.set(folded, { tag: known && known.tag < tag ? known.tag : tag, count: (known?.count ?? 0) + 1 });
        }
      return [...counts]
        .sort(([a, { count: most }], [b, { count: other }]) => other - most || (a < b ? -1 : 1))
        .slice(0, limit)
        .map(([, count]) => count);
    },
    async delete(id) {
      embeddings.remove(id);
      return byId.delete(id);
    },
    async deleteMany(ids) {
      for (const id of ids) embeddings.remove(id);
      return ids.filter((id) => byId.delete(id)).length;
    },
    async candidates({ filter, limit, semanticLimit = limit, text, semantic }) {
      const matching = [...byId.values()].filter((checkpoint) => matches(checkpoint, filter));
      const texts = new Map(matching.map((checkpoint) => [checkpoint.id, `${checkpointText(checkpoint)} ${checkpoint.tags.join(" ")}`]));
      const keys = new Map([...byId.keys()].map((id, key) => [id, key]));
      const numbered = <Found extends { readonly id: string }>(found: readonly Found[]) =>
        found.map((one) => ({ ...one, key: keys.get(one.id) }));
      return {
        keyword: numbered(text === undefined ? [] : bm25(texts, text).slice(0, limit)),
        semantic: numbered(semantic ? embeddings.nearest(semantic.versionId, semantic.vector, texts.keys(), semanticLimit) : []),
      };
    },
    async similarities(versionId, vector, ids) {
      return new Map(
        ids.flatMap((id) => {
          const cosine = embeddings.cosine(versionId, id, vector);
          return cosine === undefined ? [] : [[id, cosine] as const];
        }),
      );
    },
  };
}

function matches(checkpoint: Checkpoint, { tags = [], tagMatch = "exact", createdFrom, createdBefore }: CheckpointFilter): boolean {
  if (createdFrom !== undefined && checkpoint.createdOrder < createdFrom) return false;
  if (createdBefore !== undefined && checkpoint.createdOrder >= createdBefore) return false;
  const own = checkpoint.tags.map((tag) => tag.toLowerCase());
  return tags.every((tag) => own.some((has) => (tagMatch === "exact" ? has === tag.toLowerCase() : has.includes(tag.toLowerCase()))));
}

const ORDER: Record<CheckpointSort, "createdOrder" | "updatedOrder"> = { created_at: "createdOrder", updated_at: "updatedOrder" };

import { supersede } from "../../model/anchor.ts";
import type { Checkpoint, CheckpointSort } from "../../model/checkpoint.ts";
import { newestFirst, orderTime, type Placed } from "../../model/record-order.ts";
import { checkpointText } from "../../model/stored-record.ts";
import type { CheckpointFilter, CheckpointStore } from "../../ports/checkpoint-store.ts";
import { bm25 } from "../../text/bm25.ts";
import { splitPieces } from "../../text/pieces.ts";
import { MARKED_LANGUAGES, queryTerms, recordTerms } from "../../text/terms.ts";
import { memoryDeletable } from "./deleted-records.ts";
import { memoryEmbeddings } from "./embeddings.ts";
import type { MemoryEventLog } from "./event-log.ts";
import { MemoryKeys } from "./idempotency.ts";
import { ObservedRecords } from "./observed-records.ts";
import { reorderFutureRecords } from "./reorder-future-records.ts";

export function memoryCheckpoints(log: MemoryEventLog): CheckpointStore {
  const byId = new ObservedRecords<Checkpoint>(log, "checkpoint");
  const embeddings = memoryEmbeddings(
    () =>
      [...byId.values()]
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map((checkpoint) => ({ id: checkpoint.id, revision: checkpoint.revision, text: checkpointText(checkpoint) })),
    { split: splitPieces },
  );

  const keys = new MemoryKeys();
  const markSuperseded = (ids: readonly string[] = [], by: string) => {
    for (const id of ids) {
      const before = id === by ? undefined : byId.get(id);
      if (before) byId.set(id, supersede(before, by));
    }
  };

  const { deletable, forget } = memoryDeletable<Checkpoint>(byId, embeddings);

  return {
    embeddings,
    ...deletable,
    recordOfKey: async (key) => keys.recordOf(key),
    async put(checkpoint, vectors = [], { savedAt, supersedes, once } = {}) {
      if (once && !keys.claim(once, checkpoint.id)) return false;
      if (byId.has(checkpoint.id)) return true;
      if (savedAt !== undefined) for (const order of ["createdOrder", "updatedOrder"] as const) reorderFutureRecords(byId, order, savedAt);
      forget(checkpoint.id);
      byId.set(checkpoint.id, structuredClone(checkpoint));
      embeddings.put(checkpoint.id, vectors);
      markSuperseded(supersedes, checkpoint.id);
      return true;
    },
    async replace(checkpoint, vectors = [], { supersedes } = {}) {
      if (byId.get(checkpoint.id)?.revision !== checkpoint.revision - 1) return false;
      reorderFutureRecords(byId, "updatedOrder", checkpoint.updatedAt);
      byId.set(checkpoint.id, { ...structuredClone(checkpoint), createdOrder: byId.get(checkpoint.id)!.createdOrder });
      embeddings.remove(checkpoint.id);
      embeddings.put(checkpoint.id, vectors);
      markSuperseded(supersedes, checkpoint.id);
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
    async days({ filter = {}, utcOffsetMinutes, limit }) {
      const counts = new Map<string, number>();
      for (const checkpoint of byId.values()) {
        if (!matches(checkpoint, filter)) continue;
        const day = new Date(Date.parse(checkpoint.createdOrder) + utcOffsetMinutes * 60_000).toISOString().slice(0, 10);
        counts.set(day, (counts.get(day) ?? 0) + 1);
      }
      const days = [...counts].map(([day, count]) => ({ day, count }));
      return days.sort((a, b) => (a.day < b.day ? 1 : -1)).slice(0, limit);
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

function matches(
  checkpoint: Checkpoint,
  { tags = [], tagMatch = "exact", createdFrom, createdBefore, context = {}, text = "" }: CheckpointFilter,
): boolean {
  const words = text === "" ? [] : queryTerms(text, MARKED_LANGUAGES);
  const terms = new Set(words.length === 0 ? [] : recordTerms(`${checkpointText(checkpoint)} ${checkpoint.tags.join(" ")}`));
  if (!words.every((forms) => forms.some((form) => terms.has(form)))) return false;
  if (!Object.entries(context).every(([key, value]) => checkpoint.context[key] === value)) return false;
  if (createdFrom !== undefined && checkpoint.createdOrder < createdFrom) return false;
  if (createdBefore !== undefined && checkpoint.createdOrder >= createdBefore) return false;
  const own = checkpoint.tags.map((tag) => tag.toLowerCase());
  return tags.every((tag) => own.some((has) => (tagMatch === "exact" ? has === tag.toLowerCase() : has.includes(tag.toLowerCase()))));
}

const ORDER: Record<CheckpointSort, "createdOrder" | "updatedOrder"> = { created_at: "createdOrder", updated_at: "updatedOrder" };

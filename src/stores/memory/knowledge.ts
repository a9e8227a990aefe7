import { supersede } from "../../model/anchor.ts";
import { countUse, type Knowledge } from "../../model/knowledge.ts";
import { newestFirst, orderTime } from "../../model/record-order.ts";
import type { VersionedVector } from "../../ports/embedding-store.ts";
import type { KnowledgeFilter, KnowledgeStore } from "../../ports/knowledge-store.ts";
import { bm25 } from "../../text/bm25.ts";
import { knowledgeTerms, knowledgeText } from "../../text/knowledge-text.ts";
import { errorSignature } from "../../text/normalise-error.ts";
import { splitPieces } from "../../text/pieces.ts";
import { memoryDeletable } from "./deleted-records.ts";
import { memoryEmbeddings } from "./embeddings.ts";
import type { MemoryEventLog } from "./event-log.ts";
import { MemoryKeys } from "./idempotency.ts";
import { ObservedRecords } from "./observed-records.ts";
import { reorderFutureRecords } from "./reorder-future-records.ts";

export function memoryKnowledge(log: MemoryEventLog): KnowledgeStore {
  const byId = new ObservedRecords<Knowledge>(log, "knowledge");
  const inOrder = () => [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  const embeddings = memoryEmbeddings(
    () => inOrder().map((record) => ({ id: record.id, revision: record.revision, text: knowledgeText(record) })),
    { split: splitPieces },
  );
  const filterRecords = (filter: KnowledgeFilter) => [...byId.values()].filter((record) => matches(record, filter));

  const { deletable, forget } = memoryDeletable<Knowledge>(byId, embeddings);
  const write = (record: Knowledge, vectors: readonly VersionedVector[] | undefined) => {
    forget(record.id);
    byId.set(record.id, structuredClone(record));
    if (!vectors) return;
    embeddings.remove(record.id);
    embeddings.put(record.id, vectors);
  };
  const remove = (id: string) => {
    embeddings.remove(id);
    return byId.delete(id);
  };
  const withCounts = (record: Knowledge): Knowledge => {
    const { successes, uses, createdAt, createdOrder } = byId.get(record.id)!;
    return { ...record, successes, uses, createdAt, createdOrder };
  };

  const keys = new MemoryKeys();
  const markSuperseded = (ids: readonly string[] = [], by: string) => {
    for (const id of ids) {
      const before = id === by ? undefined : byId.get(id);
      if (before) byId.set(id, supersede(before, by));
    }
  };

  return {
    embeddings,
    ...deletable,
    recordOfKey: async (key) => keys.recordOf(key),
    async put(record, vectors = [], { savedAt, supersedes, once } = {}) {
      if (byId.has(record.id) || (once && !keys.claim(once, record.id))) return false;
      if (savedAt !== undefined) reorderFutureRecords(byId, "createdOrder", savedAt);
      write(record, vectors);
      markSuperseded(supersedes, record.id);
      return true;
    },
    async replace(record, vectors, { supersedes } = {}) {
      if (byId.get(record.id)?.revision !== record.revision - 1) return false;
      write(withCounts(record), vectors);
      markSuperseded(supersedes, record.id);
      return true;
    },
    get: async (id) => structuredClone(byId.get(id)),
    getMany: async (ids) => ({ records: structuredClone(ids.flatMap((id) => byId.get(id) ?? [])), damaged: [] }),
    async list({ filter = {}, limit, after }) {
      const all = filterRecords(filter).sort(byPlace);
      const from = after && { id: after.id, createdOrder: orderTime(after.at, byId.get(after.id)?.createdOrder ?? after.at) };
      const rest = from ? all.filter((record) => byPlace(record, from) > 0) : all;
      return { records: structuredClone(rest.slice(0, limit)), damaged: [], total: all.length };
    },
    async feedback(id, report, once) {
      const record = byId.get(id);
      if (!record) return undefined;
      if (once && !keys.claim(once, id)) return structuredClone(byId.get(keys.recordOf(once)!));
      const counted = countUse(record, report);
      byId.set(id, counted);
      return structuredClone(counted);
    },
    async withSignature(signature, filter, limit) {
      return filterRecords(filter)
        .filter(({ kind, question }) => kind === "remediation" && errorSignature(question) === signature)
        .sort((a, b) => byPlace(b, a))
        .slice(0, limit)
        .map(({ id }) => id);
    },
    marks: async () => inOrder().map(({ id, source, contentHash, revision }) => ({ id, source, contentHash, revision })),
    async apply(batch) {
      const asExpected =
        batch.add.every(({ record }) => !byId.has(record.id)) &&
        batch.replace.every(({ record }) => byId.get(record.id)?.revision === record.revision - 1) &&
        batch.remove.every(({ id, revision }) => byId.get(id)?.revision === revision);
      if (!asExpected) return "changed meanwhile";
      if (batch.savedAt !== undefined) reorderFutureRecords(byId, "createdOrder", batch.savedAt);
      for (const { record, vectors = [] } of batch.add) write(record, vectors);
      for (const { record, vectors } of batch.replace) write(withCounts(record), vectors);
      for (const { id } of batch.remove) remove(id);
      return "applied";
    },
    async candidates({ filter, limit, semanticLimit = limit, text, semantic }) {
      const texts = new Map(filterRecords(filter).map((record) => [record.id, knowledgeTerms(record)]));
      return {
        keyword: text === undefined ? [] : bm25(texts, text).slice(0, limit),
        semantic: semantic ? embeddings.nearest(semantic.versionId, semantic.vector, texts.keys(), semanticLimit) : [],
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

function matches(record: Knowledge, filter: KnowledgeFilter): boolean {
  return FILTERS.every((field) => filter[field] === undefined || record[field] === filter[field]);
}

const FILTERS = ["kind", "category", "subcategory", "source"] as const;

type Place = Pick<Knowledge, "id" | "createdOrder">;

const byPlace = (a: Place, b: Place) => newestFirst({ id: a.id, at: a.createdOrder }, { id: b.id, at: b.createdOrder });

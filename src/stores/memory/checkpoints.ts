import type { Checkpoint, CheckpointSort } from "../../model/checkpoint.ts";
import type { CheckpointFilter, CheckpointStore } from "../../ports/checkpoint-store.ts";
import { bm25 } from "../../text/bm25.ts";
import { checkpointText } from "../../text/embedding-text.ts";
import { memoryEmbeddings } from "./embeddings.ts";

export function memoryCheckpoints(): CheckpointStore {
  const byId = new Map<string, Checkpoint>();
  const embeddings = memoryEmbeddings(() =>
    [...byId.values()]
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map((checkpoint) => ({ id: checkpoint.id, revision: checkpoint.revision, text: checkpointText(checkpoint) })),
  );

  return {
    embeddings,
    async put(checkpoint, vectors = []) {
      if (byId.has(checkpoint.id)) return;
      byId.set(checkpoint.id, structuredClone(checkpoint));
      embeddings.put(checkpoint.id, vectors);
    },
    async replace(checkpoint, vectors = []) {
      if (byId.get(checkpoint.id)?.revision !== checkpoint.revision - 1) return false;
      byId.set(checkpoint.id, structuredClone(checkpoint));
      embeddings.remove(checkpoint.id);
      embeddings.put(checkpoint.id, vectors);
      return true;
    },
    get: async (id) => structuredClone(byId.get(id)),
    getMany: async (ids) => structuredClone(ids.flatMap((id) => byId.get(id) ?? [])),
    async list({ filter = {}, limit, offset, sortBy, after }) {
      const time = TIME[sortBy];
      const position = (checkpoint: Checkpoint): Position => ({ at: time(checkpoint), id: checkpoint.id });
      const matching = [...byId.values()].filter((checkpoint) => matches(checkpoint, filter));
      const rest = matching
        .sort((a, b) => newestFirst(position(a), position(b)))
        .filter((checkpoint) => !after || newestFirst(position(checkpoint), after) > 0);
      return { checkpoints: structuredClone(rest.slice(offset, offset + limit)), total: matching.length };
    },
    async delete(id) {
      embeddings.remove(id);
      return byId.delete(id);
    },
    async deleteMany(ids) {
      for (const id of ids) embeddings.remove(id);
      return ids.filter((id) => byId.delete(id)).length;
    },
    async candidates({ filter, limit, denseLimit = limit, words, dense }) {
      const matching = [...byId.values()].filter((checkpoint) => matches(checkpoint, filter));
      const texts = new Map(matching.map((checkpoint) => [checkpoint.id, `${checkpointText(checkpoint)} ${checkpoint.tags.join(" ")}`]));
      return {
        lexical: words === undefined ? [] : bm25(texts, words).slice(0, limit),
        dense: dense ? embeddings.nearest(dense.versionId, dense.vector, texts.keys(), denseLimit) : [],
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
  if (createdFrom !== undefined && checkpoint.createdAt < createdFrom) return false;
  if (createdBefore !== undefined && checkpoint.createdAt >= createdBefore) return false;
  const own = checkpoint.tags.map((tag) => tag.toLowerCase());
  return tags.every((tag) => own.some((has) => (tagMatch === "exact" ? has === tag.toLowerCase() : has.includes(tag.toLowerCase()))));
}

interface Position {
  readonly at: string;
  readonly id: string;
}

const newestFirst = (a: Position, b: Position) => (a.at === b.at ? (a.id < b.id ? -1 : a.id > b.id ? 1 : 0) : a.at < b.at ? 1 : -1);

const TIME: Record<CheckpointSort, (checkpoint: Checkpoint) => string> = {
  created_at: (checkpoint) => checkpoint.createdAt,
  updated_at: (checkpoint) => checkpoint.updatedAt,
};

import { CairnError } from "../../model/errors.ts";
import type { EmbeddingStore, EmbeddingVersion, Unembedded, VersionedVector } from "../../ports/embedding-store.ts";
import type { Ranked } from "../../ports/recall-store.ts";

/** Vectors of one collection, in memory: small collections, exact scan. */
export interface MemoryEmbeddings extends EmbeddingStore {
  put(id: string, vectors: readonly VersionedVector[]): void;
  remove(id: string): void;
  /** A record's vectors, in every version that has one. */
  of(id: string): VersionedVector[];
  cosine(versionId: number, id: string, query: Float32Array): number | undefined;
  nearest(versionId: number, query: Float32Array, ids: Iterable<string>, limit: number): Ranked[];
}

/** `records` gives all texts, in the order of their ids. */
export function memoryEmbeddings(
  records: () => readonly Unembedded[],
  now: () => string = () => new Date().toISOString(),
): MemoryEmbeddings {
  const versions: EmbeddingVersion[] = [];
  const vectors = new Map<number, Map<string, Float32Array>>();
  let lastVersion = 0;
  const of = (versionId: number): Map<string, Float32Array> => {
    const found = vectors.get(versionId);
    if (!found) throw new CairnError("not_found", `There is no embedding version ${versionId}.`);
    return found;
  };
  const findMissing = (versionId: number) => records().filter(({ id }) => !of(versionId).has(id));

  const store: MemoryEmbeddings = {
    versions: async () => [...versions],
    async addVersion({ model, version, dimension }) {
      const found = versions.find((known) => known.model === model && known.version === version && known.dimension === dimension);
      if (found) return found;
      const made = { versionId: ++lastVersion, model, version, dimension, isCurrent: versions.length === 0, createdAt: now() };
      versions.push(made);
      vectors.set(made.versionId, new Map());
      return made;
    },
    missing: async (versionId, limit, afterId = "") =>
      findMissing(versionId)
        .filter(({ id }) => id > afterId)
        .slice(0, limit),
    counts: async (versionId) => ({ records: records().length, vectors: of(versionId).size }),
    async putVectors(versionId, entries) {
      const revisions = new Map(records().map(({ id, revision }) => [id, revision]));
      const fresh = entries.filter(({ id, revision }) => revisions.get(id) === revision);
      for (const { id, vector } of fresh) of(versionId).set(id, vector.slice());
      return fresh.length;
    },
    async makeCurrent(versionId) {
      if (findMissing(versionId).length > 0) return "incomplete";
      for (const [index, version] of versions.entries()) versions[index] = { ...version, isCurrent: version.versionId === versionId };
      return "switched";
    },
    async dropVersion(versionId) {
      const index = versions.findIndex((version) => version.versionId === versionId);
      if (versions[index]?.isCurrent)
        throw new CairnError("conflict", "The current embedding version cannot be deleted. Switch to another first.");
      const size = of(versionId).size;
      versions.splice(index, 1);
      vectors.delete(versionId);
      return size;
    },
    dropDamaged: async () => [],
    put(id, entries) {
      for (const { versionId, vector } of entries) vectors.get(versionId)?.set(id, vector.slice());
    },
    remove(id) {
      for (const map of vectors.values()) map.delete(id);
    },
    of: (id) =>
      [...vectors].flatMap(([versionId, map]) => {
        const vector = map.get(id);
        return vector ? [{ versionId, vector: vector.slice() }] : [];
      }),
    cosine(versionId, id, query) {
      const vector = vectors.get(versionId)?.get(id);
      return vector && dot(vector, query);
    },
    nearest(versionId, query, ids, limit) {
      const ranked: Ranked[] = [];
      for (const id of ids) {
        const score = store.cosine(versionId, id, query);
        if (score !== undefined) ranked.push({ id, score });
      }
      return ranked.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)).slice(0, limit);
    },
  };
  return store;
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

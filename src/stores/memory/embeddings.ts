import { CairnError } from "../../model/errors.ts";
import type { EmbeddingStore, EmbeddingVersion, Unembedded, VersionedVector } from "../../ports/embedding-store.ts";
import type { Ranked } from "../../ports/recall-store.ts";

/** Vectors of one collection, in memory: small collections, exact scan. */
export interface MemoryEmbeddings extends EmbeddingStore {
  /** Stores the vectors of a record's whole text. */
  put(id: string, vectors: readonly VersionedVector[]): void;
  /** Removes the vectors of all pieces of a record. */
  remove(id: string): void;
  /** The vectors of a record's whole text, in every version that has one. */
  of(id: string): VersionedVector[];
  /** The cosine of the record's best piece. */
  cosine(versionId: number, id: string, query: Float32Array): number | undefined;
  nearest(versionId: number, query: Float32Array, ids: Iterable<string>, limit: number): Ranked[];
}

export interface MemoryEmbeddingOptions {
  /** Returns the pieces that a text is embedded in. Default: the whole text. */
  readonly split?: (text: string) => readonly string[];
  readonly now?: () => string;
}

/** `records` gives all texts, in the order of their ids. */
export function memoryEmbeddings(
  records: () => readonly Omit<Unembedded, "piece">[],
  { split = (text) => [text], now = () => new Date().toISOString() }: MemoryEmbeddingOptions = {},
): MemoryEmbeddings {
  const versions: EmbeddingVersion[] = [];
  const vectors = new Map<number, Map<string, Map<number, Float32Array>>>();
  let lastVersion = 0;
  const of = (versionId: number): Map<string, Map<number, Float32Array>> => {
    const found = vectors.get(versionId);
    if (!found) throw new CairnError("not_found", `There is no embedding version ${versionId}.`);
    return found;
  };
  const set = (versionId: number, id: string, piece: number, vector: Float32Array) => {
    const own = vectors.get(versionId)?.get(id) ?? new Map<number, Float32Array>();
    vectors.get(versionId)?.set(id, own.set(piece, vector.slice()));
  };
  const findPieces = (): Unembedded[] =>
    records()
      .flatMap((record) => split(record.text).map((text, piece) => ({ ...record, piece, text })))
      .sort((a, b) => a.piece - b.piece || (a.id < b.id ? -1 : 1));
  const findMissing = (versionId: number) => findPieces().filter(({ id, piece }) => !of(versionId).get(id)?.has(piece));

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
    missing: async (versionId, limit, after = { piece: 0, id: "" }) =>
      findMissing(versionId)
        .filter(({ id, piece }) => piece > after.piece || (piece === after.piece && id > after.id))
        .slice(0, limit),
    async counts(versionId) {
      const stored = [...of(versionId).values()].flatMap((pieces) => [...pieces.keys()]);
      const partVectors = stored.filter((piece) => piece > 0).length;
      const { length } = records();
      return { records: length, vectors: stored.length - partVectors, parts: findPieces().length - length, partVectors };
    },
    async putVectors(versionId, entries) {
      of(versionId);
      const current = new Map(records().map((record) => [record.id, record]));
      const fresh = entries.filter(({ id, revision, piece, text }) => {
        const record = current.get(id);
        return record?.revision === revision && split(record.text)[piece] === text;
      });
      for (const { id, piece, vector } of fresh) set(versionId, id, piece, vector);
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
      const count = [...of(versionId).values()].reduce((sum, { size }) => sum + size, 0);
      versions.splice(index, 1);
      vectors.delete(versionId);
      return count;
    },
    dropDamaged: async () => [],
    put(id, entries) {
      for (const { versionId, vector } of entries) set(versionId, id, 0, vector);
    },
    remove(id) {
      for (const map of vectors.values()) map.delete(id);
    },
    of: (id) =>
      [...vectors].flatMap(([versionId, map]) => {
        const vector = map.get(id)?.get(0);
        return vector ? [{ versionId, vector: vector.slice() }] : [];
      }),
    cosine(versionId, id, query) {
      const pieces = vectors.get(versionId)?.get(id);
      return pieces && Math.max(...[...pieces.values()].map((vector) => dot(vector, query)));
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

import type { Checkpoint } from "../model/checkpoint.ts";
import type { CheckpointFilter } from "../ports/checkpoint-store.ts";
import type { EmbeddedText, EmbeddingVersion, VersionedVector } from "../ports/embedding-store.ts";

interface ModelRecord {
  readonly checkpoint: Checkpoint;
  readonly vectors: Map<number, Float32Array>;
}

/** A reference model of a store of records with vectors: the contract compares stores with it. */
export function recallModel() {
  const records = new Map<string, ModelRecord>();
  const passes = ({ tags }: Checkpoint, filter: CheckpointFilter) =>
    (filter.tags ?? []).every((tag) => tags.some((own) => own.toLowerCase() === tag.toLowerCase()));
  const sorted = (ids: Iterable<string>) => [...ids].sort();

  const model = {
    records,
    versions: [] as EmbeddingVersion[],
    put(checkpoint: Checkpoint, vectors: readonly VersionedVector[]): void {
      if (!records.has(checkpoint.id)) model.set(checkpoint, vectors);
    },
    replace(checkpoint: Checkpoint, vectors: readonly VersionedVector[]): boolean {
      if (records.get(checkpoint.id)?.checkpoint.revision !== checkpoint.revision - 1) return false;
      model.set(checkpoint, vectors);
      return true;
    },
    set(checkpoint: Checkpoint, vectors: readonly VersionedVector[]): void {
      records.set(checkpoint.id, { checkpoint, vectors: new Map(vectors.map(({ versionId, vector }) => [versionId, vector])) });
    },
    putVectors(versionId: number, entries: readonly EmbeddedText[]): number {
      const fresh = entries.filter(({ id, revision }) => records.get(id)?.checkpoint.revision === revision);
      for (const { id, vector } of fresh) records.get(id)!.vectors.set(versionId, vector);
      return fresh.length;
    },
    dropVersion(versionId: number): number {
      model.versions = model.versions.filter((version) => version.versionId !== versionId);
      return [...records.values()].filter(({ vectors }) => vectors.delete(versionId)).length;
    },
    missing: (versionId: number): string[] => sorted([...records].filter(([, { vectors }]) => !vectors.has(versionId)).map(([id]) => id)),
    withWords(words: string, filter: CheckpointFilter): string[] {
      const wanted = words.split(" ");
      const has = ({ checkpoint }: ModelRecord) =>
        passes(checkpoint, filter) && checkpoint.summary.split(" ").some((word) => wanted.includes(word));
      return sorted([...records].filter(([, record]) => has(record)).map(([id]) => id));
    },
    nearest({ versionId, vector }: VersionedVector, filter: CheckpointFilter): Map<string, number> {
      return new Map(
        [...records].flatMap(([id, { checkpoint, vectors }]) => {
          const own = vectors.get(versionId);
          return own && passes(checkpoint, filter) ? [[id, own.reduce((sum, value, i) => sum + value * vector[i]!, 0)] as const] : [];
        }),
      );
    },
  };
  return model;
}

import type { Checkpoint } from "../model/checkpoint.ts";
import { checkpointText } from "../model/stored-record.ts";
import type { CheckpointFilter } from "../ports/checkpoint-store.ts";
import type { EmbeddedPiece, EmbeddingVersion, PieceRef, VersionedVector } from "../ports/embedding-store.ts";
import { splitPieces } from "../text/pieces.ts";

interface ModelRecord {
  readonly checkpoint: Checkpoint;
  /** By version and piece. */
  readonly vectors: Map<number, Map<number, Float32Array>>;
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
      records.set(checkpoint.id, {
        checkpoint,
        vectors: new Map(vectors.map(({ versionId, vector }) => [versionId, new Map([[0, vector]])])),
      });
    },
    putVectors(versionId: number, entries: readonly EmbeddedPiece[]): number {
      const fresh = entries.filter(({ id, revision, piece, text }) => {
        const record = records.get(id)?.checkpoint;
        return record?.revision === revision && piecesOf(record)[piece] === text;
      });
      for (const { id, piece, vector } of fresh) {
        const { vectors } = records.get(id)!;
        vectors.set(versionId, (vectors.get(versionId) ?? new Map<number, Float32Array>()).set(piece, vector));
      }
      return fresh.length;
    },
    dropVersion(versionId: number): number {
      model.versions = model.versions.filter((version) => version.versionId !== versionId);
      const dropped = [...records.values()].reduce((sum, { vectors }) => sum + (vectors.get(versionId)?.size ?? 0), 0);
      for (const { vectors } of records.values()) vectors.delete(versionId);
      return dropped;
    },
    /** Whole texts first, then parts, each in the order of ids. */
    missing: (versionId: number): PieceRef[] =>
      [...records]
        .flatMap(([id, { checkpoint, vectors }]) =>
          piecesOf(checkpoint).flatMap((_, piece) => (vectors.get(versionId)?.has(piece) ? [] : [{ id, piece }])),
        )
        .sort((a, b) => a.piece - b.piece || (a.id < b.id ? -1 : 1)),
    parts: (): number => [...records.values()].reduce((sum, { checkpoint }) => sum + piecesOf(checkpoint).length - 1, 0),
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
          const cosine = (piece: Float32Array) => piece.reduce((sum, value, i) => sum + value * vector[i]!, 0);
          return own && passes(checkpoint, filter) ? [[id, Math.max(...[...own.values()].map(cosine))] as const] : [];
        }),
      );
    },
  };
  return model;
}

function piecesOf(checkpoint: Checkpoint): readonly string[] {
  return splitPieces(checkpointText(checkpoint));
}

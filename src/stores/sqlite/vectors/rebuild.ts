import type { SqliteTx } from "../driver/driver.ts";
import { encode, readVector, type VectorCollection } from "./collection.ts";
import { segmentWriter } from "./compact.ts";

/** A repair of damaged codes. */
export interface RepairReport {
  readonly collection: string;
  readonly versionId: number;
  readonly reason: string;
  /** Vectors whose codes were rebuilt. */
  readonly rebuilt: number;
  /** Keys whose vector was damaged and removed; they count as not embedded. */
  readonly lost: readonly number[];
}

/** Describes a repair for a log. */
export function repairText({ collection, versionId, reason, rebuilt, lost }: RepairReport): string {
  const gone = lost.length === 0 ? "" : ` ${lost.length} vectors were damaged themselves and will be made again from their texts.`;
  return `The search index of ${collection} (embedding version ${versionId}) was damaged and was rebuilt from ${rebuilt} stored vectors: ${reason}${gone} Nothing was lost, but a disk that does this deserves a look.`;
}

const PAGE = 1000;

/** Rebuilds all codes of a collection from its vectors. */
export function rebuild(tx: SqliteTx, collection: Pick<VectorCollection, "id" | "dimension">): { rebuilt: number; lost: number[] } {
  clearCodes(tx, collection.id);
  const segments = segmentWriter(tx, collection);
  const lost: number[] = [];
  let rebuilt = 0;
  for (const { key, vector } of storedVectors(tx, collection)) {
    if (!vector) {
      lost.push(key);
      continue;
    }
    const { scale, code } = encode(vector);
    segments.add(key, scale, code);
    rebuilt++;
  }
  segments.flush();
  for (const key of lost) tx.run("DELETE FROM vectors WHERE collection_id = ? AND key = ?", collection.id, key);
  tx.run("UPDATE vector_collections SET change = change + 1, layout = layout + 1 WHERE id = ?", collection.id);
  return { rebuilt, lost };
}

/** Removes all data derived from the vectors of a collection. */
export function clearCodes(tx: SqliteTx, collectionId: number): void {
  tx.run("DELETE FROM vector_delta WHERE collection_id = ?", collectionId);
  tx.run("DELETE FROM vector_segment_bodies WHERE id IN (SELECT id FROM vector_segments WHERE collection_id = ?)", collectionId);
  tx.run("DELETE FROM vector_segments WHERE collection_id = ?", collectionId);
}

/** Yields all vectors of a collection by key; undefined where the stored bytes are not a vector. */
export function* storedVectors(
  tx: SqliteTx,
  collection: Pick<VectorCollection, "id" | "dimension">,
): Generator<{ key: number; vector: Float32Array | undefined }> {
  let after = -1;
  for (;;) {
    const rows = tx.all<{ key: number; vector: Uint8Array }>(
      "SELECT key, vector FROM vectors WHERE collection_id = ? AND key > ? ORDER BY key LIMIT ?",
      collection.id,
      after,
      PAGE,
    );
    for (const { key, vector } of rows) yield { key, vector: readVector(vector, collection.dimension) };
    if (rows.length < PAGE) return;
    after = rows.at(-1)!.key;
  }
}

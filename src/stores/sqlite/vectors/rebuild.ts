import type { SqliteTx } from "../driver/driver.ts";
import { encode, readDelta, strideOf } from "./codes.ts";
import { segmentWriter } from "./compact.ts";
import { CENTROIDS, DamagedCodes, directory, readSegment, toAlignedBuffer } from "./segments.ts";
import type { VectorCollection } from "./writer.ts";

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

/** Compares every code with its vector and returns the problems found. */
export function verifyCodes(tx: SqliteTx, collection: VectorCollection): string[] {
  const problems: string[] = [];
  const coded = new Map<number, { scale: number; code: Int8Array }>();
  const delta = readDelta(tx, collection.id);
  const overridden = new Map<number, number>();
  try {
    for (const segment of directory(tx, collection.id)) {
      if (segment.list === CENTROIDS) continue;
      const { keys, scales, codes } = readSegment(tx, segment, collection.dimension);
      const stride = strideOf(collection.dimension);
      for (const [i, key] of keys.entries()) {
        if (delta.has(key)) overridden.set(key, (overridden.get(key) ?? 0) + 1);
        else if (coded.has(key)) problems.push(`Key ${key} has two codes.`);
        else coded.set(key, { scale: scales[i]!, code: codes.slice(i * stride, (i + 1) * stride) });
      }
    }
  } catch (error) {
    if (!(error instanceof DamagedCodes)) throw error;
    problems.push(error.message);
  }
  for (const [key, { code, stale }] of delta) {
    if ((overridden.get(key) ?? 0) !== stale) problems.push(`Key ${key} does not override as many codes as it says.`);
    if (code) coded.set(key, code);
  }
  for (const { key, vector } of storedVectors(tx, collection)) {
    const held = coded.get(key);
    coded.delete(key);
    const right = vector && encode(vector);
    if (!right) problems.push(`The vector of key ${key} is damaged.`);
    else if (!held) problems.push(`Key ${key} has no code.`);
    else if (held.scale !== right.scale || !held.code.every((value, i) => value === right.code[i]))
      problems.push(`Key ${key} has a wrong code.`);
  }
  for (const key of coded.keys()) problems.push(`Key ${key} has a code but no vector.`);
  return problems;
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
    for (const { key, vector } of rows) yield { key, vector: toVector(vector, collection.dimension) };
    if (rows.length < PAGE) return;
    after = rows.at(-1)!.key;
  }
}

/** Returns the floats of a stored vector, or undefined if it is damaged. */
export function toVector(blob: Uint8Array, dimension: number): Float32Array | undefined {
  if (blob.byteLength !== dimension * 4) return undefined;
  const vector = new Float32Array(toAlignedBuffer(blob));
  let squares = 0;
  for (const value of vector) squares += value * value;
  // Vectors are stored with length one; anything else (NaN included) was not written by Cairn.
  return Math.abs(squares - 1) < 1e-3 ? vector : undefined;
}

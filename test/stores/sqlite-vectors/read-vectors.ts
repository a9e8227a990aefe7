import type { SqliteTx } from "../../../src/stores/sqlite/driver/driver.ts";
import {
  encode,
  findCollection,
  readDelta,
  readVector,
  strideOf,
  type VectorCollection,
} from "../../../src/stores/sqlite/vectors/collection.ts";
import { storedVectors } from "../../../src/stores/sqlite/vectors/rebuild.ts";
import { CENTROIDS, DamagedCodes, directory, readSegment } from "../../../src/stores/sqlite/vectors/segments.ts";

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

/** Reads stored vectors in the caller's transaction. */
export function vectorReader(tx: SqliteTx) {
  return {
    /** Counts the vectors of this version. */
    count(name: string, versionId: number): number {
      const collection = findCollection(tx, name, versionId);
      return collection
        ? tx.get<{ count: number }>("SELECT count(*) AS count FROM vectors WHERE collection_id = ?", collection.id)!.count
        : 0;
    },
    /** Returns the unit vector of a key; undefined if there is none or it is damaged. */
    get(name: string, versionId: number, key: number): Float32Array | undefined {
      const collection = findCollection(tx, name, versionId);
      const row =
        collection && tx.get<{ vector: Uint8Array }>("SELECT vector FROM vectors WHERE collection_id = ? AND key = ?", collection.id, key);
      return row && readVector(row.vector, collection.dimension);
    },
  };
}

import type { SqliteTx } from "../driver/driver.ts";
import { encode, strideOf } from "./codes.ts";
import type { Space } from "./collections.ts";
import { packWriter } from "./compact.ts";
import { readRecent } from "./delta.ts";
import { aligned, CENTROIDS, DamagedCodes, directory, readPack } from "./segments.ts";

/** What was found wrong and done about it. */
export interface RepairReport {
  readonly collection: string;
  readonly versionId: number;
  readonly reason: string;
  /** Vectors whose codes were made again. */
  readonly rebuilt: number;
  /** Keys whose own vector was damaged; it was removed, so that they count as not yet embedded. */
  readonly lost: readonly number[];
}

/** For a person. */
export function repairText({ collection, versionId, reason, rebuilt, lost }: RepairReport): string {
  const gone = lost.length === 0 ? "" : ` ${lost.length} vectors were damaged themselves and will be made again from their texts.`;
  return `The search index of ${collection} (embedding version ${versionId}) was damaged and was made again from ${rebuilt} stored vectors: ${reason}.${gone} Nothing was lost, but a disk that does this deserves a look.`;
}

const PAGE = 1000;

/** Makes all codes of a space again from its vectors. */
export function rebuild(tx: SqliteTx, space: Pick<Space, "id" | "dimension">): { rebuilt: number; lost: number[] } {
  clearCodes(tx, space.id);
  const packs = packWriter(tx, space);
  const lost: number[] = [];
  let rebuilt = 0;
  for (const { key, vector } of storedVectors(tx, space)) {
    if (!vector) {
      lost.push(key);
      continue;
    }
    const { scale, code } = encode(vector);
    packs.add(key, scale, code);
    rebuilt++;
  }
  packs.flush();
  for (const key of lost) tx.run("DELETE FROM vectors WHERE space = ? AND key = ?", space.id, key);
  tx.run("UPDATE vector_spaces SET change = change + 1, layout = layout + 1 WHERE id = ?", space.id);
  return { rebuilt, lost };
}

/** Removes everything that is derived from the vectors of a space. */
export function clearCodes(tx: SqliteTx, space: number): void {
  tx.run("DELETE FROM vector_recent WHERE space = ?", space);
  tx.run("DELETE FROM vector_pack_bodies WHERE id IN (SELECT id FROM vector_packs WHERE space = ?)", space);
  tx.run("DELETE FROM vector_packs WHERE space = ?", space);
}

/** Compares every code with its vector; an empty answer means that all is well. For tests and for people who ask. */
export function verifyCodes(tx: SqliteTx, space: Space): string[] {
  const problems: string[] = [];
  const coded = new Map<number, { scale: number; code: Int8Array }>();
  const recent = readRecent(tx, space.id);
  const overridden = new Map<number, number>();
  try {
    for (const pack of directory(tx, space.id)) {
      if (pack.list === CENTROIDS) continue;
      const { keys, scales, codes } = readPack(tx, pack, space.dimension);
      const stride = strideOf(space.dimension);
      for (const [i, key] of keys.entries()) {
        if (recent.has(key)) overridden.set(key, (overridden.get(key) ?? 0) + 1);
        else if (coded.has(key)) problems.push(`Key ${key} has two codes.`);
        else coded.set(key, { scale: scales[i]!, code: codes.slice(i * stride, (i + 1) * stride) });
      }
    }
  } catch (error) {
    if (!(error instanceof DamagedCodes)) throw error;
    problems.push(error.message);
  }
  for (const [key, { code, packed }] of recent) {
    if ((overridden.get(key) ?? 0) !== packed) problems.push(`Key ${key} does not override as many codes as it says.`);
    if (code) coded.set(key, code);
  }
  for (const { key, vector } of storedVectors(tx, space)) {
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

/** All vectors of a space in the order of their keys; undefined where the stored bytes are not a vector. */
export function* storedVectors(
  tx: SqliteTx,
  space: Pick<Space, "id" | "dimension">,
): Generator<{ key: number; vector: Float32Array | undefined }> {
  let after = -1;
  for (;;) {
    const rows = tx.all<{ key: number; vector: Uint8Array }>(
      "SELECT key, vector FROM vectors WHERE space = ? AND key > ? ORDER BY key LIMIT ?",
      space.id,
      after,
      PAGE,
    );
    for (const { key, vector } of rows) yield { key, vector: toVector(vector, space.dimension) };
    if (rows.length < PAGE) return;
    after = rows.at(-1)!.key;
  }
}

/** The floats in a stored vector, or undefined if it is damaged. */
export function toVector(blob: Uint8Array, dimension: number): Float32Array | undefined {
  if (blob.byteLength !== dimension * 4) return undefined;
  const vector = new Float32Array(aligned(blob));
  let squares = 0;
  for (const value of vector) squares += value * value;
  // Vectors are stored with length one; anything else (NaN included) was not written by us.
  return Math.abs(squares - 1) < 1e-3 ? vector : undefined;
}

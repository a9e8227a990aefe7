import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openSqlite, type SqliteDatabase } from "../../../src/stores/sqlite/driver/driver.ts";
import { findCollection } from "../../../src/stores/sqlite/vectors/collection.ts";
import { randomNumbers } from "../../../src/stores/sqlite/vectors/kmeans.ts";
import { VECTOR_SCHEMA } from "../../../src/stores/sqlite/vectors/schema.ts";
import type { VectorHit } from "../../../src/stores/sqlite/vectors/search.ts";
import { verifyCodes } from "./read-vectors.ts";

export const vectorSchema = { version: 1, name: "vectors", sql: VECTOR_SCHEMA };

/** A file in a folder that goes away with the test. */
export function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-vectors-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "vectors.db");
}

export async function openVectors(path: string): Promise<SqliteDatabase> {
  const database = await openSqlite({ path, schema: vectorSchema });
  onTestFinished(() => database.close());
  return database;
}

/** What is wrong with the codes of a collection; a collection that is not there has nothing wrong. */
export function problems(database: SqliteDatabase, name = "c", versionId = 1): string[] {
  return database.read((tx) => {
    const collection = findCollection(tx, name, versionId);
    return collection ? verifyCodes(tx, collection) : [];
  });
}

/** A unit vector that only depends on its seed: near one of a few centres, as embeddings are. */
export function vectorOf(seed: number, dimension: number): Float32Array {
  const random = randomNumbers(seed * 7919 + 13);
  const centre = randomNumbers(1 + (seed % 20));
  const vector = new Float32Array(dimension);
  let squares = 0;
  for (let i = 0; i < dimension; i++) {
    vector[i] = centre() - 0.5 + 0.7 * (random() - 0.5);
    squares += vector[i]! ** 2;
  }
  return vector.map((value) => value / Math.sqrt(squares));
}

export function vectorsOf(from: number, to: number, dimension: number): { key: number; vector: Float32Array }[] {
  return Array.from({ length: to - from }, (_, i) => ({ key: from + i, vector: vectorOf(from + i, dimension) }));
}

/** The right answer, found by looking at everything. */
export function bruteForce(
  vectors: ReadonlyMap<number, Float32Array>,
  query: Float32Array,
  limit: number,
  allow?: ReadonlySet<number>,
): VectorHit[] {
  const hits: VectorHit[] = [];
  for (const [key, vector] of vectors) {
    if (allow && !allow.has(key)) continue;
    let score = 0;
    for (let i = 0; i < query.length; i++) score += query[i]! * vector[i]!;
    hits.push({ key, score });
  }
  return hits.sort((a, b) => b.score - a.score || a.key - b.key).slice(0, limit);
}

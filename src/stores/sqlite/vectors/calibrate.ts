import type { SqliteTx } from "../driver/driver.ts";
import { readVector } from "./collection.ts";
import { randomNumbers } from "./kmeans.ts";
import { type SearchContext, searchView } from "./search.ts";
import type { View } from "./view.ts";

const QUERIES = 96;
const LIMIT = 11;
/** The recall@10 to reach; slightly more than documented, since queries differ from stored vectors. */
const TARGET = 0.997;
const PROBES = [4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];

/**
 * Returns the smallest number of probes that reaches the recall of a full scan, measured on vectors of the collection. Texts
 * cluster in very different ways, so no fixed number would do.
 */
export async function calibrate(
  read: <T>(work: (context: SearchContext, view: View) => T) => T,
  pause: () => Promise<void>,
): Promise<number> {
  const queries = read(({ tx }, view) => sampleVectors(tx, view));
  const right: number[][] = [];
  const search = (vector: Float32Array, probes: number) =>
    read((context, view) => searchView(context, { ...view, probes }, { vector, limit: LIMIT }).map(({ key }) => key));
  for (const query of queries) {
    right.push(search(query, Number.MAX_SAFE_INTEGER));
    await pause();
  }
  for (const probes of PROBES) {
    let found = 0;
    let all = 0;
    for (const [i, query] of queries.entries()) {
      // The first hit is the vector itself, which is always found.
      const got = new Set(search(query, probes));
      const expected = right[i]!.slice(1);
      found += expected.filter((key) => got.has(key)).length;
      all += expected.length;
      await pause();
    }
    if (found >= TARGET * all) return probes;
  }
  return Number.MAX_SAFE_INTEGER;
}

function sampleVectors(tx: SqliteTx, { id, dimension }: View): Float32Array[] {
  const range = tx.get<{ least: number; most: number }>(
    "SELECT min(key) AS least, max(key) AS most FROM vectors WHERE collection_id = ?",
    id,
  )!;
  const random = randomNumbers(id);
  return Array.from({ length: QUERIES }, () => {
    const from = range.least + Math.floor(random() * (range.most - range.least + 1));
    const row = tx.get<{ vector: Uint8Array }>(
      "SELECT vector FROM vectors WHERE collection_id = ? AND key >= ? ORDER BY key LIMIT 1",
      id,
      from,
    );
    return row && readVector(row.vector, dimension);
  }).filter((vector) => vector !== undefined);
}

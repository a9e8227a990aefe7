import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";

/** Keys of code vectors that have no code, or codes without a vector, as «collection:key». The codes are derived, and must follow exactly. */
export async function differingCodes(path: string): Promise<string[]> {
  const db = await openSqlite({ path, mustExist: true });
  try {
    return db.read((tx) => {
      const coded = new Map<string, number>();
      const add = (name: string, by: number) => coded.set(name, (coded.get(name) ?? 0) + by);
      const segments = tx.all<{ collection_id: number; keys: Uint8Array }>(
        `SELECT p.collection_id, b.keys FROM vector_segments p JOIN vector_segment_bodies b ON b.id = p.id JOIN vector_collections s ON s.id = p.collection_id
          WHERE s.collection = 'code' AND p.ready = 1 AND p.list IS NOT -1`,
      );
      for (const { collection_id: collection, keys } of segments)
        for (const key of new Int32Array(Uint8Array.from(keys).buffer)) add(`${collection}:${key}`, 1);
      const delta = tx.all<{ collection_id: number; key: number; stale: number; alive: number }>(
        `SELECT r.collection_id, r.key, r.stale, r.code IS NOT NULL AS alive FROM vector_delta r JOIN vector_collections s ON s.id = r.collection_id
          WHERE s.collection = 'code'`,
      );
      for (const { collection_id: collection, key, stale, alive } of delta) add(`${collection}:${key}`, alive - stale);
      const vectors = tx.all<{ collection_id: number; key: number }>(
        "SELECT v.collection_id, v.key FROM vectors v JOIN vector_collections s ON s.id = v.collection_id WHERE s.collection = 'code'",
      );
      for (const { collection_id: collection, key } of vectors) add(`${collection}:${key}`, -1);
      return [...coded].filter(([, count]) => count !== 0).map(([name]) => name);
    });
  } finally {
    db.close();
  }
}

import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";

/** Keys of code vectors that have no code, or codes without a vector, as «space:key». The codes are derived, and must follow exactly. */
export async function differingCodes(path: string): Promise<string[]> {
  const db = await openSqlite({ path, mustExist: true });
  try {
    return db.read((tx) => {
      const coded = new Map<string, number>();
      const add = (name: string, by: number) => coded.set(name, (coded.get(name) ?? 0) + by);
      const packs = tx.all<{ space: number; keys: Uint8Array }>(
        `SELECT p.space, b.keys FROM vector_packs p JOIN vector_pack_bodies b ON b.id = p.id JOIN vector_spaces s ON s.id = p.space
          WHERE s.collection = 'code' AND p.ready = 1 AND p.list IS NOT -1`,
      );
      for (const { space, keys } of packs) for (const key of new Int32Array(Uint8Array.from(keys).buffer)) add(`${space}:${key}`, 1);
      const recent = tx.all<{ space: number; key: number; packed: number; alive: number }>(
        `SELECT r.space, r.key, r.packed, r.code IS NOT NULL AS alive FROM vector_recent r JOIN vector_spaces s ON s.id = r.space
          WHERE s.collection = 'code'`,
      );
      for (const { space, key, packed, alive } of recent) add(`${space}:${key}`, alive - packed);
      const vectors = tx.all<{ space: number; key: number }>(
        "SELECT v.space, v.key FROM vectors v JOIN vector_spaces s ON s.id = v.space WHERE s.collection = 'code'",
      );
      for (const { space, key } of vectors) add(`${space}:${key}`, -1);
      return [...coded].filter(([, count]) => count !== 0).map(([name]) => name);
    });
  } finally {
    db.close();
  }
}

import { randomBytes } from "node:crypto";
import type { VectorOutbox } from "../../../ports/vector-outbox.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import { readVector } from "../vectors/collection.ts";
import type { EmbeddedRecords } from "./embeddings.ts";

/** Triggers record every change of a vector, by any process, while an external index is enabled. */
export const OUTBOX_SCHEMA = `
CREATE TABLE vector_index (collection TEXT PRIMARY KEY, name TEXT NOT NULL) STRICT;
CREATE TABLE vector_outbox (
  change INTEGER PRIMARY KEY AUTOINCREMENT,
  collection TEXT NOT NULL,
  version_id INTEGER NOT NULL,
  key INTEGER NOT NULL,
  UNIQUE (collection, version_id, key)
) STRICT;
${["INSERT", "UPDATE", "DELETE"]
  .map(
    (event) => `CREATE TRIGGER vectors_outbox_${event.toLowerCase()} AFTER ${event} ON vectors
BEGIN
  INSERT OR REPLACE INTO vector_outbox (collection, version_id, key)
  SELECT s.collection, s.version_id, ${event === "DELETE" ? "OLD" : "NEW"}.key FROM vector_index JOIN vector_collections s USING (collection) WHERE s.id = ${event === "DELETE" ? "OLD" : "NEW"}.collection_id;
END;`,
  )
  .join("\n")}
`;

/** Returns the outbox of one collection: the changes of its vectors, for an external index. */
export function sqliteOutbox(
  { collection, table, slots }: Pick<EmbeddedRecords, "collection" | "table" | "slots">,
  database: DatabaseHandle,
): VectorOutbox {
  return {
    async enable() {
      const db = await database();
      const find = () => db.read((tx) => tx.get<{ name: string }>("SELECT name FROM vector_index WHERE collection = ?", collection))?.name;
      const known = find();
      if (known !== undefined) return known;
      await db.write((tx) => {
        const { changes } = tx.run(
          "INSERT INTO vector_index (collection, name) VALUES (?, ?) ON CONFLICT DO NOTHING",
          collection,
          randomBytes(6).toString("hex"),
        );
        if (changes > 0)
          tx.run(
            "INSERT OR REPLACE INTO vector_outbox (collection, version_id, key) SELECT s.collection, s.version_id, v.key FROM vectors v JOIN vector_collections s ON s.id = v.collection_id WHERE s.collection = ?",
            collection,
          );
      });
      return find()!;
    },

    async pending(versionId, limit, afterChange) {
      return (await database()).read((tx) =>
        tx
          .all<{ change: number; key: number; id: string | null; dimension: number | null; vector: Uint8Array | null }>(
            `SELECT o.change, o.key, r.id, s.dimension, v.vector FROM vector_outbox o
               LEFT JOIN ${table} r ON r.key = o.key / ${slots}
               LEFT JOIN vector_collections s ON s.collection = o.collection AND s.version_id = o.version_id
               LEFT JOIN vectors v ON v.collection_id = s.id AND v.key = o.key
              WHERE o.collection = ? AND o.version_id = ? AND o.change > ? ORDER BY o.change LIMIT ?`,
            collection,
            versionId,
            afterChange,
            limit,
          )
          .map(({ change, key, id, dimension, vector }) => ({
            ...{ change, key, id: id ?? undefined },
            vector: vector ? readVector(vector, dimension!) : undefined,
          })),
      );
    },

    async done(versionId, changes) {
      await (await database()).write((tx) => {
        // Changed again since it was read: this process may have overwritten a newer copy of the vector.
        for (const { change, key } of changes)
          if (tx.run("DELETE FROM vector_outbox WHERE change = ?", change).changes === 0)
            tx.run("INSERT OR REPLACE INTO vector_outbox (collection, version_id, key) VALUES (?, ?, ?)", collection, versionId, key);
      });
    },

    async pendingIds(versionId, limit) {
      return (await database()).read((tx) =>
        tx
          .all<{ id: string }>(
            `SELECT DISTINCT r.id FROM vector_outbox o JOIN ${table} r ON r.key = o.key / ${slots} WHERE o.collection = ? AND o.version_id = ? LIMIT ?`,
            collection,
            versionId,
            limit,
          )
          .map(({ id }) => id),
      );
    },

    async deletedVersions() {
      return (await database()).read((tx) =>
        tx
          .all<{ version_id: number }>(
            "SELECT DISTINCT version_id FROM vector_outbox WHERE collection = ? AND version_id NOT IN (SELECT version_id FROM embedding_versions)",
            collection,
          )
          .map(({ version_id }) => version_id),
      );
    },

    async forgetVersions(versionIds) {
      await (await database()).write((tx) => {
        for (const versionId of versionIds)
          tx.run("DELETE FROM vector_outbox WHERE collection = ? AND version_id = ?", collection, versionId);
      });
    },

    async mark(versionId, keys) {
      await (await database()).write((tx) => {
        for (const key of keys)
          tx.run("INSERT OR IGNORE INTO vector_outbox (collection, version_id, key) VALUES (?, ?, ?)", collection, versionId, key);
      });
    },

    async keys(versionId, afterKey, limit) {
      return (await database()).read((tx) =>
        tx
          .all<{ key: number }>(
            `SELECT v.key FROM vectors v JOIN vector_collections s ON s.id = v.collection_id
              WHERE s.collection = ? AND s.version_id = ? AND v.key > ? ORDER BY v.key LIMIT ?`,
            collection,
            versionId,
            afterKey,
            limit,
          )
          .map(({ key }) => key),
      );
    },
  };
}

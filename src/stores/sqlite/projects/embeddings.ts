import { CairnError } from "../../../model/errors.ts";
import type { CollectionName } from "../../../ports/embedders.ts";
import type { EmbeddingStore, EmbeddingVersion, VersionedVector } from "../../../ports/embedding-store.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { findCollection, vectorWriter } from "../vectors/writer.ts";
import { repairMirror } from "./derived-parts.ts";
import type { Keyed, KnownKeys } from "./nearest.ts";
import { sqliteOutbox } from "./outbox.ts";
import { safeInteger } from "./record-rows.ts";

/** A table (or view) of records with the columns key, id and revision, and the text to embed as an SQL expression. */
export interface EmbeddedRecords {
  readonly collection: CollectionName;
  readonly table: string;
  readonly textColumns: readonly string[];
  readonly textOf: (row: Record<string, string>) => string;
}

export function sqliteEmbeddings(records: EmbeddedRecords, database: DatabaseHandle): EmbeddingStore {
  const { collection, table } = records;

  const assertVersion = (tx: SqliteTx, versionId: number): EmbeddingVersion => {
    const found = readVersions(tx, collection).find((version) => version.versionId === versionId);
    if (!found) throw new CairnError("not_found", `There is no embedding version ${versionId}. List the versions to see which there are.`);
    return found;
  };
  /** Returns the id of the vector collection, or -1 while the version has no vector. */
  const collectionId = (tx: SqliteTx, versionId: number) => findCollection(tx, collection, versionId)?.id ?? -1;
  // A damaged row gets no vector: its text is not what was saved.
  const readable = collection === "code" ? "" : records.textColumns.map((name) => `AND typeof(r.${name}) = 'text' `).join("");
  const missingFrom = `FROM ${table} r WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.collection_id = ? AND v.key = r.key)`;

  return {
    outbox: sqliteOutbox(records, database),

    ...(collection === "knowledge" && { repairMirror: async () => (await database()).write(repairMirror) }),

    async versions() {
      return (await database()).read((tx) => readVersions(tx, collection));
    },

    async addVersion({ model, version, dimension }) {
      return (await database()).write((tx) => {
        tx.run(
          `INSERT INTO embedding_versions (collection, model_name, model_version, embedding_dimension, is_current, created_at)
           VALUES (?, ?, ?, ?, NOT EXISTS (SELECT 1 FROM embedding_versions WHERE collection = ? AND is_current = 1), ?) ON CONFLICT DO NOTHING`,
          collection,
          model,
          version,
          dimension,
          collection,
          new Date().toISOString(),
        );
        return readVersions(tx, collection).find(
          (made) => made.model === model && made.version === version && made.dimension === dimension,
        )!;
      });
    },

    async missing(versionId, limit, afterId = "") {
      return (await database()).read((tx) => {
        assertVersion(tx, versionId);
        const rows = tx.all<{ id: string; revision: number } & Record<string, string>>(
          `SELECT r.id, ${safeInteger("r.revision")} AS revision, ${records.textColumns.map((column) => `r.${column}`).join(", ")} ${missingFrom} ${readable}AND r.id > ? ORDER BY r.id LIMIT ?`,
          collectionId(tx, versionId),
          afterId,
          limit,
        );
        return rows.map((row) => ({ id: row.id, revision: row.revision, text: records.textOf(row) }));
      });
    },

    async counts(versionId) {
      return (await database()).read((tx) => ({
        records: tx.get<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)!.count,
        vectors: tx.get<{ count: number }>("SELECT count(*) AS count FROM vectors WHERE collection_id = ?", collectionId(tx, versionId))!
          .count,
      }));
    },

    async putVectors(versionId, vectors) {
      return (await database()).write((tx) => {
        assertVersion(tx, versionId);
        const entries = vectors.flatMap(({ id, revision, vector }) => {
          const row = tx.get<{ key: number }>(`SELECT key FROM ${table} WHERE id = ? AND revision = ?`, id, revision);
          return row ? [{ key: row.key, vector }] : [];
        });
        vectorWriter(tx).put(collection, versionId, entries);
        return entries.length;
      });
    },

    async makeCurrent(versionId) {
      return (await database()).write((tx) => {
        assertVersion(tx, versionId);
        if (tx.get(`SELECT 1 ${missingFrom} LIMIT 1`, collectionId(tx, versionId))) return "incomplete";
        tx.run("UPDATE embedding_versions SET is_current = 0 WHERE collection = ? AND is_current = 1", collection);
        tx.run("UPDATE embedding_versions SET is_current = 1 WHERE version_id = ?", versionId);
        return "switched";
      });
    },

    async dropVersion(versionId) {
      const db = await database();
      const dropped = await db.write((tx) => {
        if (assertVersion(tx, versionId).isCurrent)
          throw new CairnError("conflict", "The current embedding version cannot be deleted. Switch to another first.");
        const { count } = tx.get<{ count: number }>(
          "SELECT count(*) AS count FROM vectors WHERE collection_id = ?",
          collectionId(tx, versionId),
        )!;
        vectorWriter(tx).dropVersion(collection, versionId);
        tx.run("DELETE FROM embedding_versions WHERE version_id = ?", versionId);
        return count;
      });
      await db.eraseLog();
      return dropped;
    },

    async dropDamaged(versionId) {
      return (await database()).write((tx) => {
        const { dimension } = assertVersion(tx, versionId);
        const found = collectionId(tx, versionId);
        const damaged: { key: number; id: string }[] = [];
        for (let after = -1; ; ) {
          const rows = tx.all<{ key: number; id: string; vector: Uint8Array }>(
            `SELECT v.key, r.id, v.vector FROM vectors v JOIN ${table} r ON r.key = v.key WHERE v.collection_id = ? AND v.key > ? ORDER BY v.key LIMIT 1000`,
            found,
            after,
          );
          if (rows.length === 0) break;
          damaged.push(...rows.filter(({ vector }) => !isSound(vector, dimension)));
          after = rows.at(-1)!.key;
        }
        vectorWriter(tx).remove(
          collection,
          versionId,
          damaged.map(({ key }) => key),
        );
        return damaged.map(({ id }) => id);
      });
    },
  };
}

/** Stores a record's vectors inside the transaction that writes the record; versions dropped meanwhile are left out. */
export function putRecordVectors(tx: SqliteTx, collection: CollectionName, key: number, vectors: readonly VersionedVector[]): void {
  const alive = new Set(readVersions(tx, collection).map(({ versionId }) => versionId));
  for (const { versionId, vector } of vectors) if (alive.has(versionId)) vectorWriter(tx).put(collection, versionId, [{ key, vector }]);
}

/** Stores the vectors of many records at once, by version: the vector index is then changed once per version. */
export function putVectorsByVersion(
  tx: SqliteTx,
  collection: CollectionName,
  vectors: ReadonlyMap<number, readonly { readonly key: number; readonly vector: Float32Array }[]>,
): void {
  for (const { versionId } of readVersions(tx, collection)) vectorWriter(tx).put(collection, versionId, vectors.get(versionId) ?? []);
}

/** Removes records' vectors from every version, inside the transaction that removes or replaces the records. */
export function removeRecordVectors(tx: SqliteTx, collection: CollectionName, keys: readonly number[]): void {
  for (const { versionId } of readVersions(tx, collection)) vectorWriter(tx).remove(collection, versionId, keys);
}

/** Returns the cosine of each of these records with the query, from the stored vectors. */
export function cosines(
  tx: SqliteTx,
  { collection, table }: EmbeddedRecords,
  versionId: number,
  query: Float32Array,
  ids: readonly string[],
  keyOf: KnownKeys["of"] = () => null,
): Map<string, number> {
  const vectors = findCollection(tx, collection, versionId);
  const found = new Map<string, number>();
  if (!vectors) return found;
  for (const id of ids) {
    const row = tx.get<{ vector: Uint8Array }>(
      `SELECT v.vector FROM ${table} r JOIN vectors v ON v.collection_id = ?1 AND v.key = r.key
        WHERE r.key = coalesce(?2, (SELECT key FROM ${table} WHERE id = ?3)) AND r.id = ?3`,
      vectors.id,
      keyOf(id),
      id,
    );
    const cosine = row && cosineTo(query, row.vector);
    if (cosine !== undefined) found.set(id, cosine);
  }
  return found;
}

/** Returns the cosine of each record with the query, for records whose keys are known in this snapshot. */
export function cosinesByKey(
  tx: SqliteTx,
  { collection }: EmbeddedRecords,
  versionId: number,
  query: Float32Array,
  records: readonly Keyed[],
): Map<string, number> {
  const vectors = findCollection(tx, collection, versionId);
  const found = new Map<string, number>();
  for (const { key, id } of vectors ? records : []) {
    const row = tx.get<{ vector: Uint8Array }>("SELECT vector FROM vectors WHERE collection_id = ? AND key = ?", vectors!.id, key);
    const cosine = row && cosineTo(query, row.vector);
    if (cosine !== undefined) found.set(id, cosine);
  }
  return found;
}

/** Returns undefined for a damaged vector. */
function cosineTo(query: Float32Array, stored: Uint8Array): number | undefined {
  if (stored.byteLength !== query.length * 4) return undefined;
  const vector = new Float32Array(stored.slice().buffer); // a copy, because the numbers must be aligned
  let sum = 0;
  for (let i = 0; i < query.length; i++) sum += vector[i]! * query[i]!;
  return sum;
}

function readVersions(tx: SqliteTx, collection: CollectionName): EmbeddingVersion[] {
  const rows = tx.all<{
    version_id: number;
    model_name: string;
    model_version: string;
    embedding_dimension: number;
    is_current: number;
    created_at: string;
  }>("SELECT * FROM embedding_versions WHERE collection = ? ORDER BY version_id", collection);
  return rows.map((row) => ({
    versionId: row.version_id,
    model: row.model_name,
    version: row.model_version,
    dimension: row.embedding_dimension,
    isCurrent: row.is_current === 1,
    createdAt: row.created_at,
  }));
}

function isSound(bytes: Uint8Array, dimension: number): boolean {
  if (bytes.byteLength !== dimension * 4) return false;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let square = 0;
  for (let i = 0; i < dimension; i++) square += view.getFloat32(i * 4, true) ** 2;
  return Math.abs(square - 1) < 0.01;
}

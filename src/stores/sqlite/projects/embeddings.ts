import { CairnError } from "../../../model/errors.ts";
import { PIECES_MAX } from "../../../model/stored-record.ts";
import type { CollectionName } from "../../../ports/embedders.ts";
import type { EmbeddingStore, EmbeddingVersion, PieceRef, Unembedded, VersionedVector } from "../../../ports/embedding-store.ts";
import { pieceText } from "../../../text/pieces.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { cosineTo, findCollection, readVector } from "../vectors/collection.ts";
import { vectorWriter } from "../vectors/writer.ts";
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
  /** Vectors that a record can have: `PIECES_MAX` where the table has a column `pieces`, 1 for code. A vector has the key `record key × slots + piece`. */
  readonly slots: number;
}

export function sqliteEmbeddings(records: EmbeddedRecords, database: DatabaseHandle): EmbeddingStore {
  const { collection, table, slots } = records;

  const assertVersion = (tx: SqliteTx, versionId: number): EmbeddingVersion => {
    const found = readVersions(tx, collection).find((version) => version.versionId === versionId);
    if (!found) throw new CairnError("not_found", `There is no embedding version ${versionId}. List the versions to see which there are.`);
    return found;
  };
  /** Returns the id of the vector collection, or -1 while the version has no vector. */
  const collectionId = (tx: SqliteTx, versionId: number) => findCollection(tx, collection, versionId)?.id ?? -1;
  // A damaged row gets no vector: its text is not what was saved.
  const readable = collection === "code" ? "" : records.textColumns.map((name) => `AND typeof(r.${name}) = 'text' `).join("");
  const textColumns = records.textColumns.map((column) => `r.${column}`).join(", ");
  const missingFrom = (piece: number) =>
    `FROM ${table} r WHERE ${piece === 0 ? "" : `r.pieces > 1 AND r.pieces > ${piece} AND `}NOT EXISTS (SELECT 1 FROM vectors v WHERE v.collection_id = ? AND v.key = r.key * ${slots} + ${piece})`;
  /** Returns the number of the last piece that any record has. */
  const lastPiece = (tx: SqliteTx): number =>
    slots === 1 ? 0 : tx.get<{ pieces: number }>(`SELECT coalesce(max(pieces), 1) AS pieces FROM ${table} WHERE pieces > 1`)!.pieces - 1;

  function findMissing(tx: SqliteTx, versionId: number, limit: number, after: PieceRef): Unembedded[] {
    const found: Unembedded[] = [];
    const last = lastPiece(tx);
    for (let { piece, id } = after; piece <= last && found.length < limit; piece++, id = "") {
      const rows = tx.all<{ id: string; revision: number } & Record<string, string>>(
        `SELECT r.id, ${safeInteger("r.revision")} AS revision, ${textColumns} ${missingFrom(piece)} ${readable}AND r.id > ? ORDER BY r.id LIMIT ?`,
        collectionId(tx, versionId),
        id,
        limit - found.length,
      );
      for (const row of rows) found.push({ id: row.id, revision: row.revision, piece, text: pieceText(records.textOf(row), piece) });
    }
    return found;
  }

  /** Returns the key of the record if it still has the text that was embedded. A chunk of code never changes its text. */
  function findUnchanged(tx: SqliteTx, { id, revision, piece, text }: Unembedded): number | undefined {
    const row = tx.get<{ key: number } & Record<string, string>>(
      `SELECT r.key${slots === 1 ? "" : `, ${textColumns}`} FROM ${table} r WHERE r.id = ? AND r.revision = ?`,
      id,
      revision,
    );
    return row && (slots === 1 || pieceText(records.textOf(row), piece) === text) ? row.key : undefined;
  }

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

    async missing(versionId, limit, after = { piece: 0, id: "" }) {
      return (await database()).read((tx) => {
        assertVersion(tx, versionId);
        return findMissing(tx, versionId, limit, after);
      });
    },

    async counts(versionId) {
      return (await database()).read((tx) => {
        const { records: count } = tx.get<{ records: number }>(`SELECT count(*) AS records FROM ${table}`)!;
        const { parts } =
          slots === 1
            ? { parts: 0 }
            : tx.get<{ parts: number }>(`SELECT coalesce(sum(pieces - 1), 0) AS parts FROM ${table} WHERE pieces > 1`)!;
        const stored = tx.get<{ vectors: number; partVectors: number }>(
          `SELECT count(*) FILTER (WHERE key % ${slots} = 0) AS vectors, count(*) FILTER (WHERE key % ${slots} > 0) AS partVectors
             FROM vectors WHERE collection_id = ?`,
          collectionId(tx, versionId),
        )!;
        return { records: count, vectors: stored.vectors, parts, partVectors: stored.partVectors };
      });
    },

    async putVectors(versionId, vectors) {
      return (await database()).write((tx) => {
        assertVersion(tx, versionId);
        const entries = vectors.flatMap((embedded) => {
          const key = findUnchanged(tx, embedded);
          return key === undefined ? [] : [{ key: key * slots + embedded.piece, vector: embedded.vector }];
        });
        vectorWriter(tx).put(collection, versionId, entries);
        return entries.length;
      });
    },

    async makeCurrent(versionId) {
      return (await database()).write((tx) => {
        assertVersion(tx, versionId);
        for (let piece = lastPiece(tx); piece >= 0; piece--)
          if (tx.get(`SELECT 1 ${missingFrom(piece)} LIMIT 1`, collectionId(tx, versionId))) return "incomplete";
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
            `SELECT v.key, r.id, v.vector FROM vectors v JOIN ${table} r ON r.key = v.key / ${slots} WHERE v.collection_id = ? AND v.key > ? ORDER BY v.key LIMIT 1000`,
            found,
            after,
          );
          if (rows.length === 0) break;
          damaged.push(...rows.filter(({ vector }) => readVector(vector, dimension) === undefined));
          after = rows.at(-1)!.key;
        }
        vectorWriter(tx).remove(
          collection,
          versionId,
          damaged.map(({ key }) => key),
        );
        return [...new Set(damaged.map(({ id }) => id))];
      });
    },
  };
}

/** Stores the vectors of a record's whole text inside the transaction that writes the record; versions dropped meanwhile are left out. */
export function putRecordVectors(tx: SqliteTx, collection: CollectionName, key: number, vectors: readonly VersionedVector[]): void {
  const alive = new Set(readVersions(tx, collection).map(({ versionId }) => versionId));
  for (const { versionId, vector } of vectors)
    if (alive.has(versionId)) vectorWriter(tx).put(collection, versionId, [{ key: key * PIECES_MAX, vector }]);
}

/** Stores the vectors of many chunks at once, by version: the vector index is then changed once per version. */
export function putVectorsByVersion(
  tx: SqliteTx,
  collection: CollectionName,
  vectors: ReadonlyMap<number, readonly { readonly key: number; readonly vector: Float32Array }[]>,
): void {
  for (const { versionId } of readVersions(tx, collection)) vectorWriter(tx).put(collection, versionId, vectors.get(versionId) ?? []);
}

/** Removes vectors by their keys from every version. */
export function removeVectors(tx: SqliteTx, collection: CollectionName, keys: readonly number[]): void {
  for (const { versionId } of readVersions(tx, collection)) vectorWriter(tx).remove(collection, versionId, keys);
}

/** Removes the vectors of all pieces of these records from every version, inside the transaction that removes or replaces the records. */
export function removeRecordVectors(tx: SqliteTx, collection: CollectionName, keys: readonly number[]): void {
  const stored = keys.flatMap((key) =>
    tx.all<{ key: number }>(
      `SELECT DISTINCT v.key FROM vector_collections s JOIN vectors v ON v.collection_id = s.id AND v.key BETWEEN ?1 * ${PIECES_MAX} AND ?1 * ${PIECES_MAX} + ${PIECES_MAX - 1}
        WHERE s.collection = ?2`,
      key,
      collection,
    ),
  );
  removeVectors(
    tx,
    collection,
    stored.map(({ key }) => key),
  );
}

/** Returns the cosine of each of these records with the query, from the stored vectors: that of its best piece. */
export function cosines(
  tx: SqliteTx,
  { collection, table, slots }: EmbeddedRecords,
  versionId: number,
  query: Float32Array,
  ids: readonly string[],
  keyOf: KnownKeys["of"] = () => null,
): Map<string, number> {
  const vectors = findCollection(tx, collection, versionId);
  const found = new Map<string, number>();
  if (!vectors) return found;
  for (const id of ids) {
    const rows = tx.all<{ vector: Uint8Array }>(
      `SELECT v.vector FROM ${table} r JOIN vectors v ON v.collection_id = ?1 AND v.key BETWEEN r.key * ${slots} AND r.key * ${slots} + ${slots - 1}
        WHERE r.key = coalesce(?2, (SELECT key FROM ${table} WHERE id = ?3)) AND r.id = ?3`,
      vectors.id,
      keyOf(id),
      id,
    );
    const best = Math.max(...rows.map(({ vector }) => cosineTo(query, vector) ?? Number.NEGATIVE_INFINITY));
    if (best > Number.NEGATIVE_INFINITY) found.set(id, best);
  }
  return found;
}

/** Returns the cosine of each record's best piece with the query, for records whose keys are known in this snapshot. */
export function cosinesByKey(
  tx: SqliteTx,
  { collection, slots }: EmbeddedRecords,
  versionId: number,
  query: Float32Array,
  records: readonly Keyed[],
): Map<string, number> {
  const vectors = findCollection(tx, collection, versionId);
  const ids = new Map(records.map(({ key, id }) => [key, id]));
  const ofRecord =
    slots === 1 ? "v.key = wanted.value" : `v.key BETWEEN wanted.value * ${slots} AND wanted.value * ${slots} + ${slots - 1}`;
  const rows = tx.all<{ key: number; vector: Uint8Array }>(
    `SELECT wanted.value AS key, v.vector FROM json_each(?) wanted CROSS JOIN vectors v ON v.collection_id = ? AND ${ofRecord}`,
    JSON.stringify(vectors ? [...ids.keys()] : []),
    vectors?.id ?? null,
  );
  const best = new Map<string, number>();
  for (const { key, vector } of rows) {
    const cosine = cosineTo(query, vector);
    const id = ids.get(key)!;
    if (cosine !== undefined && cosine > (best.get(id) ?? Number.NEGATIVE_INFINITY)) best.set(id, cosine);
  }
  return best;
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

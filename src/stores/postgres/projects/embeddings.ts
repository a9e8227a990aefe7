import { CairnError } from "../../../model/errors.ts";
import type { CollectionName } from "../../../ports/embedders.ts";
import type { EmbeddingStore, EmbeddingVersion, VersionedVector } from "../../../ports/embedding-store.ts";
import type { Ranked } from "../../../ports/recall-store.ts";
import type { PostgresTx } from "../driver/driver.ts";
import { indexedType, toPgvector, vectorIndexSql } from "../driver/pgvector.ts";
import { toTimestamp } from "../driver/time.ts";
import type { WhereFrom } from "./full-text.ts";
import { repairMirror } from "./mirror.ts";
import { postgresOutbox } from "./outbox.ts";
import type { ProjectTables } from "./project-tables.ts";

/** A table (or view) of records with the columns key, id and revision, and the columns of the text to embed. */
export interface EmbeddedRecords {
  readonly collection: CollectionName;
  readonly table: string;
  readonly textColumns: readonly string[];
  readonly textOf: (row: Record<string, string>) => string;
  /**
   * Waits for transactions that replace records and blocks new ones; otherwise a vector of a deleted record could remain. Without it,
   * each record is locked instead.
   */
  readonly queue?: (tx: PostgresTx) => Promise<unknown>;
}

/** The hnsw.ef_search of a query; an iterative scan returns further neighbours. */
const EF_SEARCH = 200;

export function postgresEmbeddings(records: EmbeddedRecords, tables: ProjectTables): EmbeddingStore {
  const { collection, table } = records;
  const missingFrom = `FROM ${table} r WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.version_id = $1 AND v.key = r.key)`;
  const assertVersion = async (tx: PostgresTx, versionId: number): Promise<EmbeddingVersion> => {
    const found = (await readVersions(tx, collection)).find((version) => version.versionId === versionId);
    if (!found) throw new CairnError("not_found", `There is no embedding version ${versionId}. List the versions to see which there are.`);
    return found;
  };

  return {
    outbox: postgresOutbox(records, tables),

    ...(collection === "knowledge" && { repairMirror: () => tables.write(repairMirror) }),

    versions: () => tables.read((tx) => readVersions(tx, collection)),

    addVersion: ({ model, version, dimension }) =>
      tables.write(
        async (tx) => {
          // Serialized: two processes that save the first record concurrently must agree on one current version.
          await tx.run("LOCK TABLE embedding_versions IN SHARE ROW EXCLUSIVE MODE");
          const known = await readVersions(tx, collection);
          const same = (made: EmbeddingVersion) => made.model === model && made.version === version && made.dimension === dimension;
          const found = known.find(same);
          if (found) return found;
          await tx.run(
            `INSERT INTO embedding_versions (collection, model_name, model_version, embedding_dimension, is_current, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
            collection,
            model,
            version,
            dimension,
            !known.some(({ isCurrent }) => isCurrent),
            toTimestamp(new Date().toISOString()),
          );
          const made = (await readVersions(tx, collection)).find(same)!;
          const index = vectorIndexSql(tables.pgvector, made.versionId, dimension);
          if (index) await tx.exec(index);
          return made;
        },
        { idempotent: true },
      ),

    missing: (versionId, limit, afterId = "") =>
      tables.read(async (tx) => {
        await assertVersion(tx, versionId);
        const rows = await tx.all<{ id: string; revision: number } & Record<string, string>>(
          `SELECT r.id, r.revision, ${records.textColumns.map((column) => `r.${column}`).join(", ")} ${missingFrom} AND r.id > $2 ORDER BY r.id LIMIT $3`,
          versionId,
          afterId,
          limit,
        );
        return rows.map((row) => ({ id: row.id, revision: row.revision, text: records.textOf(row) }));
      }),

    counts: (versionId) =>
      tables.read(async (tx) => ({
        records: (await tx.get<{ count: number }>(`SELECT count(*) FROM ${table}`))!.count,
        vectors: (await tx.get<{ count: number }>("SELECT count(*) FROM vectors WHERE version_id = $1", versionId))!.count,
      })),

    putVectors: (versionId, vectors) =>
      tables.write(
        async (tx) => {
          const { dimension } = await assertVersion(tx, versionId);
          assertDimensions(vectors, dimension);
          await records.queue?.(tx);
          return tx.run(
            `INSERT INTO vectors (collection, version_id, key, vector)
             SELECT '${collection}', $1, r.key, given.vector::${tables.pgvector}.vector FROM unnest($2::text[], $3::bigint[], $4::text[]) AS given (id, revision, vector)
               JOIN ${table} r ON r.id = given.id AND r.revision = given.revision ${records.queue ? "" : "FOR SHARE OF r"}
             ON CONFLICT (version_id, key) DO UPDATE SET vector = excluded.vector`,
            versionId,
            vectors.map(({ id }) => id),
            vectors.map(({ revision }) => revision),
            vectors.map(({ vector }) => toPgvector(vector)),
          );
        },
        { idempotent: true },
      ),

    makeCurrent: (versionId) =>
      tables.write(
        async (tx) => {
          // Blocks writers of records, so that none adds a record without a vector between the check and the switch.
          await tx.run("LOCK TABLE embedding_versions IN SHARE ROW EXCLUSIVE MODE");
          await tx.run(`LOCK TABLE ${records.collection === "code" ? "vectors" : table} IN SHARE ROW EXCLUSIVE MODE`);
          await assertVersion(tx, versionId);
          if (await tx.get(`SELECT 1 ${missingFrom} LIMIT 1`, versionId)) return "incomplete";
          await tx.run("UPDATE embedding_versions SET is_current = false WHERE collection = $1 AND is_current", collection);
          await tx.run("UPDATE embedding_versions SET is_current = true WHERE version_id = $1", versionId);
          return "switched";
        },
        { idempotent: true },
      ),

    dropVersion: (versionId) =>
      tables.write(async (tx) => {
        if ((await assertVersion(tx, versionId)).isCurrent)
          throw new CairnError("conflict", "The current embedding version cannot be deleted. Switch to another first.");
        const count = await tx.run("DELETE FROM vectors WHERE version_id = $1", versionId);
        await tx.run("DELETE FROM embedding_versions WHERE version_id = $1", versionId);
        await tx.exec(`DROP INDEX IF EXISTS vectors_hnsw_${versionId}`);
        return count;
      }),

    dropDamaged: (versionId) =>
      tables.write(async (tx) => {
        const { dimension } = await assertVersion(tx, versionId);
        const rows = await tx.all<{ id: string }>(
          `DELETE FROM vectors v USING ${table} r
            WHERE v.version_id = $1 AND r.key = v.key
              AND (${tables.pgvector}.vector_dims(v.vector) <> $2 OR abs(${tables.pgvector}.vector_norm(v.vector) - 1) > 0.005)
           RETURNING r.id`,
          versionId,
          dimension,
        );
        return rows.map(({ id }) => id);
      }),
  };
}

/** Stores a record's vectors inside the transaction that writes the record; versions dropped meanwhile are left out. */
export async function putRecordVectors(
  tx: PostgresTx,
  tables: ProjectTables,
  id: string,
  table: string,
  vectors: readonly VersionedVector[],
): Promise<void> {
  if (vectors.length === 0) return;
  await tx.run(
    `INSERT INTO vectors (collection, version_id, key, vector)
     SELECT e.collection, e.version_id, r.key, given.vector::${tables.pgvector}.vector FROM unnest($1::int[], $2::text[]) AS given (version_id, vector)
       JOIN embedding_versions e ON e.version_id = given.version_id, ${table} r
      WHERE r.id = $3 ON CONFLICT (version_id, key) DO UPDATE SET vector = excluded.vector`,
    vectors.map(({ versionId }) => versionId),
    vectors.map(({ vector }) => toPgvector(vector)),
    id,
  );
}

export interface NearestQuery {
  readonly versionId: number;
  readonly vector: Float32Array;
  readonly limit: number;
  readonly where: WhereFrom;
}

/**
 * The records nearest to the query, best first. Few candidates are compared exactly; many use the index with an
 * iterative scan until enough of them pass the filter. The planner would not choose this plan by itself.
 */
export async function nearest(
  tx: PostgresTx,
  tables: ProjectTables,
  { collection, table }: EmbeddedRecords,
  query: NearestQuery,
): Promise<Ranked[]> {
  const { versionId, limit } = query;
  const version = (await readVersions(tx, collection)).find((known) => known.versionId === versionId);
  if (!version) return [];
  const vector = toPgvector(query.vector);
  const counting = query.where(2);
  const { count } = (await tx.get<{ count: number }>(
    `SELECT count(*) FROM (SELECT 1 FROM ${table} r WHERE ${counting?.sql ?? "true"} LIMIT $1) AS counted`,
    tables.exactMax + 1,
    ...(counting?.params ?? []),
  ))!;
  const indexed = indexedType(tables.pgvector, version.dimension);
  const where = query.where(4);
  const params = [vector, limit, versionId, ...(where?.params ?? [])];
  const distance = (column: string, type: string) => `${column} OPERATOR(${tables.pgvector}.<=>) $1::${type}`;
  if (count <= tables.exactMax || !indexed) {
    const exact = distance("v.vector", `${tables.pgvector}.vector`);
    return tx.all<Ranked>(
      `SELECT r.key, r.id, 1 - (${exact}) AS score FROM ${table} r JOIN vectors v ON v.key = r.key AND v.version_id = $3
        WHERE ${where?.sql ?? "true"} ORDER BY ${exact}, r.id LIMIT $2`,
      ...params,
    );
  }
  await tx.exec(
    `SET LOCAL hnsw.ef_search = ${Math.max(EF_SEARCH, limit)}; SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off`,
  );
  const indexedDistance = distance(`(v.vector::${indexed.type})`, indexed.type);
  // The version is a literal, because the planner uses a partial index only for a literal.
  const hits = await tx.all<Ranked>(
    `SELECT r.key, r.id, 1 - (${distance("v.vector", `${tables.pgvector}.vector`)}) AS score FROM vectors v JOIN ${table} r ON r.key = v.key
      WHERE v.version_id = ${versionId} AND $3 = ${versionId} AND ${where?.sql ?? "true"} ORDER BY ${indexedDistance} LIMIT $2`,
    ...params,
  );
  return hits.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
}

/** Returns the ids that pass the filter: `all` without a filter, `many` above the limit. */
export async function matchingIds(
  tx: PostgresTx,
  { table }: EmbeddedRecords,
  whereFrom: WhereFrom,
  limit: number,
): Promise<"all" | "many" | readonly string[]> {
  const where = whereFrom(2);
  if (!where) return "all";
  const rows = await tx.all<{ id: string }>(`SELECT r.id FROM ${table} r WHERE ${where.sql} LIMIT $1`, limit + 1, ...where.params);
  return rows.length > limit ? "many" : rows.map(({ id }) => id);
}

/** The cosine of each of these records with the query. */
export async function cosines(
  tx: PostgresTx,
  tables: ProjectTables,
  table: string,
  versionId: number,
  query: Float32Array,
  ids: readonly string[],
): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map();
  const rows = await tx.all<Ranked>(
    `SELECT r.id, 1 - (v.vector OPERATOR(${tables.pgvector}.<=>) $1::${tables.pgvector}.vector) AS score
       FROM ${table} r JOIN vectors v ON v.key = r.key AND v.version_id = $2 WHERE r.id = ANY ($3::text[])`,
    toPgvector(query),
    versionId,
    [...ids],
  );
  return new Map(rows.map(({ id, score }) => [id, score]));
}

async function readVersions(tx: PostgresTx, collection: CollectionName): Promise<EmbeddingVersion[]> {
  const rows = await tx.all<{
    version_id: number;
    model_name: string;
    model_version: string;
    embedding_dimension: number;
    is_current: boolean;
    created_at: string;
  }>("SELECT * FROM embedding_versions WHERE collection = $1 ORDER BY version_id", collection);
  return rows.map((row) => ({
    versionId: row.version_id,
    model: row.model_name,
    version: row.model_version,
    dimension: row.embedding_dimension,
    isCurrent: row.is_current,
    createdAt: row.created_at,
  }));
}

function assertDimensions(vectors: readonly { readonly vector: Float32Array }[], dimension: number): void {
  for (const { vector } of vectors)
    if (vector.length !== dimension)
      throw new CairnError("invalid_input", `This embedding version holds vectors of ${dimension} components, not ${vector.length}.`);
}

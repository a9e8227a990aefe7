import { CairnError } from "../../../model/errors.ts";
import { PIECES_MAX } from "../../../model/stored-record.ts";
import type { CollectionName } from "../../../ports/embedders.ts";
import type { EmbeddedPiece, EmbeddingStore, EmbeddingVersion, Unembedded, VersionedVector } from "../../../ports/embedding-store.ts";
import type { Ranked } from "../../../ports/recall-store.ts";
import { pieceText } from "../../../text/pieces.ts";
import type { PostgresTx } from "../driver/driver.ts";
import { indexedType, toPgvector, vectorIndexSql } from "../driver/pgvector.ts";
import { toTimestamp } from "../driver/time.ts";
import type { WhereFrom } from "./full-text.ts";
import { repairMirror } from "./mirror.ts";
import { postgresOutbox } from "./outbox.ts";
import type { ProjectPart } from "./project-schema.ts";
import type { ProjectTables } from "./project-tables.ts";

/** A table (or view) of records with the columns key, id and revision, and the columns of the text to embed. */
export interface EmbeddedRecords {
  readonly collection: CollectionName;
  readonly table: string;
  readonly textColumns: readonly string[];
  readonly textOf: (row: Record<string, string>) => string;
  /** Vectors that a record can have: `PIECES_MAX` where the table has a column `pieces`, 1 for code. A vector has the key `record key × slots + piece`. */
  readonly slots: number;
  /**
   * Waits for transactions that replace records and blocks new ones; otherwise a vector of a deleted record could remain. Without it,
   * each record is locked instead.
   */
  readonly queue?: (tx: PostgresTx) => Promise<unknown>;
  /** The parts with the records; none where every project has them. */
  readonly parts: readonly ProjectPart[];
}

/** The hnsw.ef_search of a query; an iterative scan returns further neighbours. */
const EF_SEARCH = 200;
/** The largest value that pgvector accepts. */
const EF_SEARCH_MAX = 1_000;

export function postgresEmbeddings(records: EmbeddedRecords, tables: ProjectTables): EmbeddingStore {
  const { collection, table, slots } = records;
  const textColumns = records.textColumns.map((column) => `r.${column}`).join(", ");
  const missingFrom = (piece: number) =>
    `FROM ${table} r WHERE ${piece === 0 ? "" : `r.pieces > 1 AND r.pieces > ${piece} AND `}NOT EXISTS (SELECT 1 FROM vectors v WHERE v.version_id = $1 AND v.key = r.key * ${slots} + ${piece})`;
  /** Returns the number of the last piece that any record has. */
  const lastPiece = async (tx: PostgresTx): Promise<number> =>
    slots === 1
      ? 0
      : (await tx.get<{ pieces: number }>(`SELECT coalesce(max(pieces), 1) AS pieces FROM ${table} WHERE pieces > 1`))!.pieces - 1;
  const stored = tables.part("vectors");
  const versionsIn = async (tx: PostgresTx) => ((await tables.has(tx, "vectors")) ? readVersions(tx, collection) : []);
  const hasRecords = (tx: PostgresTx) => tables.has(tx, ...records.parts);
  const assertVersion = async (tx: PostgresTx, versionId: number): Promise<EmbeddingVersion> => {
    const found = (await versionsIn(tx)).find((version) => version.versionId === versionId);
    if (!found) throw new CairnError("not_found", `There is no embedding version ${versionId}. List the versions to see which there are.`);
    return found;
  };

  /** Locks the records of these pieces, and keeps the pieces whose record still has the text that was embedded. */
  async function keepUnchanged(tx: PostgresTx, pieces: readonly EmbeddedPiece[]): Promise<readonly EmbeddedPiece[]> {
    const rows = await tx.all<{ id: string } & Record<string, string>>(
      `SELECT r.id, ${textColumns} FROM ${table} r WHERE r.id = ANY ($1::text[]) ORDER BY r.key FOR SHARE`,
      pieces.map(({ id }) => id),
    );
    const texts = new Map(rows.map((row) => [row.id, records.textOf(row)]));
    return pieces.filter(({ id, piece, text }) => texts.has(id) && pieceText(texts.get(id)!, piece) === text);
  }

  return {
    outbox: postgresOutbox(records, tables),

    ...(collection === "knowledge" && { repairMirror: () => tables.part("knowledge").change(0, repairMirror) }),

    versions: () => tables.read(versionsIn),

    addVersion: ({ model, version, dimension }) =>
      stored.write(
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

    missing: (versionId, limit, after = { piece: 0, id: "" }) =>
      tables.read(async (tx) => {
        await assertVersion(tx, versionId);
        const found: Unembedded[] = [];
        if (!(await hasRecords(tx))) return found;
        const last = await lastPiece(tx);
        for (let { piece, id } = after; piece <= last && found.length < limit; piece++, id = "") {
          const rows = await tx.all<{ id: string; revision: number } & Record<string, string>>(
            `SELECT r.id, r.revision, ${textColumns} ${missingFrom(piece)} AND r.id > $2 ORDER BY r.id LIMIT $3`,
            versionId,
            id,
            limit - found.length,
          );
          for (const row of rows) found.push({ id: row.id, revision: row.revision, piece, text: pieceText(records.textOf(row), piece) });
        }
        return found;
      }),

    counts: (versionId) =>
      tables.read(async (tx) => {
        if (!(await hasRecords(tx))) return { records: 0, vectors: 0, parts: 0, partVectors: 0 };
        const parts = slots === 1 ? "0" : `(SELECT coalesce(sum(pieces - 1), 0) FROM ${table} WHERE pieces > 1)`;
        const { records: count, parts: wanted } = (await tx.get<{ records: number; parts: number }>(
          `SELECT count(*) AS records, ${parts}::bigint AS parts FROM ${table}`,
        ))!;
        if (!(await tables.has(tx, "vectors"))) return { records: count, vectors: 0, parts: wanted, partVectors: 0 };
        const existing = (await tx.get<{ vectors: number; parts: number }>(
          `SELECT count(*) FILTER (WHERE key % ${slots} = 0) AS vectors, count(*) FILTER (WHERE key % ${slots} > 0) AS parts
             FROM vectors WHERE version_id = $1`,
          versionId,
        ))!;
        return { records: count, vectors: existing.vectors, parts: wanted, partVectors: existing.parts };
      }),

    putVectors: (versionId, vectors) =>
      tables.write(
        async (tx) => {
          const { dimension } = await assertVersion(tx, versionId);
          assertDimensions(vectors, dimension);
          if (!(await hasRecords(tx))) return 0;
          await records.queue?.(tx);
          const unchanged = slots === 1 ? vectors : await keepUnchanged(tx, vectors);
          return tx.run(
            `INSERT INTO vectors (collection, version_id, key, vector)
             SELECT '${collection}', $1, r.key * ${slots} + given.piece, given.vector::${tables.pgvector}.vector
               FROM unnest($2::text[], $3::bigint[], $4::int[], $5::text[]) AS given (id, revision, piece, vector)
               JOIN ${table} r ON r.id = given.id AND r.revision = given.revision ${records.queue ? "" : "FOR SHARE OF r"}
             ON CONFLICT (version_id, key) DO UPDATE SET vector = excluded.vector`,
            versionId,
            unchanged.map(({ id }) => id),
            unchanged.map(({ revision }) => revision),
            unchanged.map(({ piece }) => piece),
            unchanged.map(({ vector }) => toPgvector(vector)),
          );
        },
        { idempotent: true },
      ),

    makeCurrent: (versionId) =>
      tables.write(
        async (tx) => {
          // Blocks writers of records, so that none adds a record without a vector between the check and the switch.
          await assertVersion(tx, versionId);
          await tx.run("LOCK TABLE embedding_versions IN SHARE ROW EXCLUSIVE MODE");
          if (await hasRecords(tx)) {
            await tx.run(`LOCK TABLE ${records.collection === "code" ? "vectors" : table} IN SHARE ROW EXCLUSIVE MODE`);
            for (let piece = await lastPiece(tx); piece >= 0; piece--)
              if (await tx.get(`SELECT 1 ${missingFrom(piece)} LIMIT 1`, versionId)) return "incomplete";
          }
          await assertVersion(tx, versionId);
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
        if (!(await hasRecords(tx))) return [];
        const rows = await tx.all<{ id: string }>(
          `DELETE FROM vectors v USING ${table} r
            WHERE v.version_id = $1 AND r.key = v.key / ${slots}
              AND (${tables.pgvector}.vector_dims(v.vector) <> $2 OR abs(${tables.pgvector}.vector_norm(v.vector) - 1) > 0.005)
           RETURNING r.id`,
          versionId,
          dimension,
        );
        return [...new Set(rows.map(({ id }) => id))];
      }),
  };
}

/** Removes the vectors of all pieces of these records from every version. */
export async function removeRecordVectors(
  tx: PostgresTx,
  tables: ProjectTables,
  { collection, table, slots }: EmbeddedRecords,
  ids: readonly string[],
): Promise<void> {
  if (!(await tables.has(tx, "vectors"))) return;
  await tx.run(
    `DELETE FROM vectors v USING ${table} r
      WHERE r.id = ANY ($1::text[]) AND v.collection = '${collection}' AND v.key BETWEEN r.key * ${slots} AND r.key * ${slots} + ${slots - 1}`,
    ids,
  );
}

/** Stores the vectors of a record's whole text inside the transaction that writes the record; versions dropped meanwhile are left out. */
export async function putRecordVectors(
  tx: PostgresTx,
  tables: ProjectTables,
  id: string,
  table: string,
  vectors: readonly VersionedVector[],
): Promise<void> {
  if (vectors.length === 0 || !(await tables.has(tx, "vectors"))) return;
  await tx.run(
    `INSERT INTO vectors (collection, version_id, key, vector)
     SELECT e.collection, e.version_id, r.key * ${PIECES_MAX}, given.vector::${tables.pgvector}.vector FROM unnest($1::int[], $2::text[]) AS given (version_id, vector)
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
  { collection, table, slots }: EmbeddedRecords,
  query: NearestQuery,
): Promise<Ranked[]> {
  const { versionId, limit } = query;
  if (!(await tables.has(tx, "vectors"))) return [];
  const version = (await readVersions(tx, collection)).find((known) => known.versionId === versionId);
  if (!version) return [];
  const vector = toPgvector(query.vector);
  const counting = query.where(2);
  const { count, long } = (await tx.get<{ count: number; long: boolean }>(
    `SELECT count(*), ${slots === 1 ? "false" : `EXISTS (SELECT 1 FROM ${table} WHERE pieces > 1)`} AS long
       FROM (SELECT 1 FROM ${table} r WHERE ${counting?.sql ?? "true"} LIMIT $1) AS counted`,
    tables.exactMax + 1,
    ...(counting?.params ?? []),
  ))!;
  const indexed = indexedType(tables.pgvector, version.dimension);
  const where = query.where(4);
  const condition = where?.sql ?? "true";
  const paramsFor = (wanted: number) => [vector, wanted, versionId, ...(where?.params ?? [])];
  const distance = (column: string, type: string) => `${column} OPERATOR(${tables.pgvector}.<=>) $1::${type}`;
  const exact = distance("v.vector", `${tables.pgvector}.vector`);
  if (count <= tables.exactMax || !indexed) {
    const pieces = (piece: string, from: string) =>
      `SELECT r.key, r.id, 1 - (${exact}) AS score FROM ${table} r ${from} JOIN vectors v ON v.key = r.key * ${slots} + ${piece} AND v.version_id = $3 WHERE ${condition}`;
    const parts = `UNION ALL ${pieces("part", `JOIN generate_series(1, ${slots - 1}) AS part ON r.pieces > 1 AND r.pieces > part`)}`;
    return tx.all<Ranked>(
      long
        ? `SELECT key, id, max(score) AS score FROM (${pieces("0", "")} ${parts}) AS piece GROUP BY key, id ORDER BY score DESC, id LIMIT $2`
        : `${pieces("0", "")} ORDER BY ${exact}, r.id LIMIT $2`,
      ...paramsFor(limit),
    );
  }
  for (let wanted = long ? 2 * limit : limit; ; wanted *= 4) {
    await tx.exec(
      `SET LOCAL hnsw.ef_search = ${Math.min(EF_SEARCH_MAX, Math.max(EF_SEARCH, wanted))}; SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off`,
    );
    // The version is a literal, because the planner uses a partial index only for a literal.
    const hits = await tx.all<Ranked>(
      `SELECT r.key, r.id, 1 - (${exact}) AS score FROM vectors v JOIN ${table} r ON r.key = v.key / ${slots}
        WHERE v.version_id = ${versionId} AND $3 = ${versionId} AND ${condition} ORDER BY ${distance(`(v.vector::${indexed.type})`, indexed.type)} LIMIT $2`,
      ...paramsFor(wanted),
    );
    const best = new Map<string, Ranked>();
    for (const hit of hits.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))) if (!best.has(hit.id)) best.set(hit.id, hit);
    if (best.size >= limit || hits.length < wanted || wanted >= slots * limit) return [...best.values()].slice(0, limit);
  }
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

/** Returns the cosine of each of these records with the query: that of its best piece. */
export async function cosines(
  tx: PostgresTx,
  tables: ProjectTables,
  { table, slots }: EmbeddedRecords,
  versionId: number,
  query: Float32Array,
  ids: readonly string[],
): Promise<Map<string, number>> {
  if (ids.length === 0 || !(await tables.has(tx, "vectors"))) return new Map();
  const rows = await tx.all<Ranked>(
    `SELECT r.id, max(1 - (v.vector OPERATOR(${tables.pgvector}.<=>) $1::${tables.pgvector}.vector)) AS score
       FROM ${table} r JOIN vectors v ON v.version_id = $2 AND v.key BETWEEN r.key * ${slots} AND r.key * ${slots} + ${slots - 1}
      WHERE r.id = ANY ($3::text[]) GROUP BY r.id`,
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

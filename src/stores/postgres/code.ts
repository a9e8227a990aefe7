import type { CodeKind } from "../../model/code-chunk.ts";
import { type CodeChunk, type CodeCounts, chunkPrint, type FileMove, type IndexedFile } from "../../model/code-index.ts";
import type { CodeFilter, CodeStore } from "../../ports/code-store.ts";
import type { VersionedVector } from "../../ports/embedding-store.ts";
import { embeddingText } from "../../text/code/embedding-text.ts";
import { unpackPositions } from "../../text/code/positions.ts";
import { globMatcher } from "../../text/glob.ts";
import { commitCode, countOrphans, removeOrphans } from "./code-write.ts";
import type { PgValue, PostgresTx } from "./driver.ts";
import { cosines, type EmbeddedRecords, nearest, postgresEmbeddings } from "./embeddings.ts";
import type { ProjectTables } from "./project-tables.ts";
import { toTimestamp } from "./time.ts";
import { rankByWords, type WhereFrom } from "./words.ts";

const RECORDS: EmbeddedRecords = {
  collection: "code",
  table: "current_chunks",
  textColumns: ["file_path", "kind", "name", "parents", "defines", "text"],
  textOf: (row) => embeddingText(row.file_path!, namesOf(row as unknown as NameColumns)),
};
const FILE = 'file_path AS path, content_hash AS "contentHash", generation, indexed_at AS "indexedAt", language, bytes, lines, notice';
/** Without the words, which nobody reads back. */
const CHUNK =
  "id, generation, chunk_index, kind, name, parents, defines, start_line, end_line, text, file_path, language, content_hash, indexed_at";

/** The code of one project in its PostgreSQL schema. */
export function postgresCode(projectId: string, tables: ProjectTables): CodeStore {
  return {
    embeddings: postgresEmbeddings(RECORDS, tables),

    // After a lost answer, a repeated removal or move would be told as not done; the caller looks at the files again in any case.
    commit: (batch) => tables.write((tx) => commitCode(tx, tables, projectId, batch), { idempotent: true }),

    filesAt: (paths) => readFiles(tables, "WHERE file_path = ANY ($1::text[])", paths),
    filesWith: (hashes) => readFiles(tables, "WHERE content_hash = ANY ($1::text[])", hashes),
    files: () => readFiles(tables, ""),

    async chunksOf(path) {
      const rows = await tables.read((tx) =>
        tx.all<ChunkRow>(`SELECT ${CHUNK} FROM current_chunks WHERE file_path = $1 ORDER BY chunk_index`, path),
      );
      return rows.map(toChunk);
    },

    async vectorsOf(path) {
      const rows = await tables.read((tx) =>
        tx.all<NameColumns & { version_id: number; vector: string }>(
          `SELECT r.kind, r.name, r.parents, r.defines, r.text, v.version_id, v.vector::text AS vector
             FROM current_chunks r JOIN vectors v ON v.collection = 'code' AND v.key = r.key WHERE r.file_path = $1 ORDER BY v.version_id`,
          path,
        ),
      );
      const found = new Map<string, VersionedVector[]>();
      for (const row of rows) {
        const print = chunkPrint(namesOf(row));
        const entry = { versionId: row.version_id, vector: Float32Array.from(JSON.parse(row.vector) as number[]) };
        found.set(print, [...(found.get(print) ?? []), entry]);
      }
      return found;
    },

    definitions: (names, filter, limit) =>
      tables.read(async (tx) => {
        const where = (await conditions(tx, filter))(3);
        const rows = await tx.all<{
          name: string;
          kind: CodeKind;
          parents: string;
          path: string;
          line: number;
          column: number;
          chunkId: string;
        }>(
          `SELECT d.name, d.kind, d.parents, r.file_path AS path, d.line, d.col AS "column", r.id AS "chunkId"
             FROM code_definitions d JOIN current_chunks r ON r.file_key = d.file_key AND d.line BETWEEN r.start_line AND r.end_line
            WHERE d.name = ANY ($1::text[]) AND ${where?.sql ?? "true"} ORDER BY r.file_path, d.line, d.col, d.place LIMIT $2`,
          names,
          limit,
          ...(where?.params ?? []),
        );
        return rows.map((row) => ({ ...row, parents: JSON.parse(row.parents) as string[] }));
      }),

    references: (name, filter, limit) =>
      tables.read(async (tx) => {
        const where = (await conditions(tx, filter))(2);
        const rows = await tx.all<{ path: string; count: number; positions: Uint8Array }>(
          `SELECT r.file_path AS path, u.count, u.positions FROM code_references u JOIN indexed_files r ON r.file_key = u.file_key
            WHERE u.name = $1 AND ${where?.sql ?? "true"} ORDER BY r.file_path`,
          name,
          ...(where?.params ?? []),
        );
        const sites = [];
        for (const { path, positions } of rows) {
          if (sites.length >= limit) break;
          for (const position of unpackPositions(positions)) sites.push({ path, ...position });
        }
        return { sites: sites.slice(0, limit), total: rows.reduce((sum, { count }) => sum + count, 0) };
      }),

    moves: (limit) =>
      tables.read((tx) =>
        tx.all<FileMove>(
          'SELECT old_path AS "oldPath", new_path AS "newPath", detected_at AS "detectedAt" FROM file_moves ORDER BY move_id DESC LIMIT $1',
          limit,
        ),
      ),

    counts: () =>
      tables.read(async (tx) => {
        const languages = await tx.all<CodeCounts["languages"][number]>(
          `SELECT f.language, count(*) AS files, sum(g.chunks_count)::bigint AS chunks
             FROM indexed_files f JOIN chunk_generations g ON g.project_id = f.project_id AND g.file_path = f.file_path
            GROUP BY f.language ORDER BY files DESC, f.language COLLATE "C"`,
        );
        const totals = await tx.get<Omit<CodeCounts, "languages" | "lastIndexedAt"> & { lastIndexedAt: string | null }>(
          `SELECT (SELECT count(*) FROM indexed_files) AS files, (SELECT count(*) FROM current_chunks) AS chunks,
                  (SELECT count(*) FROM code_definitions) AS definitions,
                  (SELECT coalesce(sum(count), 0)::bigint FROM code_references) AS "references",
                  (SELECT coalesce(sum(bytes), 0)::bigint FROM indexed_files) AS bytes, (SELECT count(*) FROM file_moves) AS moves,
                  (SELECT last FROM code_generation) AS generation, (SELECT max(indexed_at) FROM indexed_files) AS "lastIndexedAt"`,
        );
        return { ...totals!, lastIndexedAt: totals!.lastIndexedAt ?? undefined, languages };
      }),

    reconcile: () => tables.write(removeOrphans),

    orphans: () => tables.read(countOrphans),

    compact: (keepMoves) =>
      tables.write((tx) =>
        tx.run("DELETE FROM file_moves WHERE move_id NOT IN (SELECT move_id FROM file_moves ORDER BY move_id DESC LIMIT $1)", keepMoves),
      ),

    candidates: ({ filter, limit, words, dense }) =>
      tables.read(async (tx) => {
        const where = await conditions(tx, filter);
        return {
          lexical: words === undefined ? [] : await rankByWords(tx, "current_chunks", words, where, limit),
          dense: dense ? await nearest(tx, tables, RECORDS, { ...dense, limit, where }) : [],
        };
      }),

    similarities: (versionId, vector, ids) => tables.read((tx) => cosines(tx, tables, "current_chunks", versionId, vector, ids)),

    async getMany(ids) {
      const rows = await tables.read((tx) => tx.all<ChunkRow>(`SELECT ${CHUNK} FROM current_chunks WHERE id = ANY ($1::text[])`, ids));
      const found = new Map(rows.map((row) => [row.id, toChunk(row)]));
      return ids.flatMap((id) => found.get(id) ?? []);
    },
  };
}

async function readFiles(tables: ProjectTables, where: string, ...params: readonly PgValue[]): Promise<IndexedFile[]> {
  const rows = await tables.read((tx) =>
    tx.all<IndexedFile & { notice: string | null }>(`SELECT ${FILE} FROM indexed_files ${where} ORDER BY file_path`, ...params),
  );
  return rows.map(({ notice, ...file }) => (notice === null ? file : { ...file, notice }));
}

interface NameColumns {
  kind: CodeKind;
  name: string | null;
  parents: string;
  defines: string;
  text: string;
}

interface ChunkRow extends NameColumns {
  id: string;
  generation: number;
  chunk_index: number;
  start_line: number;
  end_line: number;
  file_path: string;
  language: string;
  content_hash: string;
  indexed_at: string;
}

function namesOf({ kind, name, parents, defines, text }: NameColumns) {
  return {
    kind,
    ...(name !== null && { name }),
    parents: JSON.parse(parents) as string[],
    defines: JSON.parse(defines) as string[],
    text,
  };
}

function toChunk(row: ChunkRow): CodeChunk {
  return {
    id: row.id,
    path: row.file_path,
    index: row.chunk_index,
    generation: row.generation,
    language: row.language,
    contentHash: row.content_hash,
    indexedAt: row.indexed_at,
    startLine: row.start_line,
    endLine: row.end_line,
    ...namesOf(row),
  };
}

/** The filter as conditions on `r`, a chunk or (without kinds) a file. Which files a glob means is found out here, in the same snapshot. */
async function conditions(tx: PostgresTx, { languages, kinds, glob, changedSince }: CodeFilter): Promise<WhereFrom> {
  const given: { readonly sql: (param: string) => string; readonly value: PgValue }[] = [];
  if (languages) given.push({ sql: (param) => `r.language = ANY (${param}::text[])`, value: languages });
  if (kinds) given.push({ sql: (param) => `r.kind = ANY (${param}::text[])`, value: kinds });
  if (changedSince !== undefined) given.push({ sql: (param) => `r.indexed_at >= ${param}::timestamptz`, value: toTimestamp(changedSince) });
  if (glob !== undefined) {
    const matches = globMatcher(glob);
    const files = await tx.all<{ file_key: number; file_path: string }>("SELECT file_key, file_path FROM indexed_files");
    const keys = files.filter(({ file_path }) => matches(file_path)).map(({ file_key }) => file_key);
    given.push({ sql: (param) => `r.file_key = ANY (${param}::bigint[])`, value: keys });
  }
  return (first) =>
    given.length === 0
      ? undefined
      : { sql: given.map(({ sql }, index) => sql(`$${first + index}`)).join(" AND "), params: given.map(({ value }) => value) };
}

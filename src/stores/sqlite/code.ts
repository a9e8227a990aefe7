import type { CodeKind } from "../../model/code-chunk.ts";
import { type CodeChunk, chunkPrint, type FileMove, type IndexedFile } from "../../model/code-index.ts";
import type { CodeFilter, CodeStore } from "../../ports/code-store.ts";
import type { VersionedVector } from "../../ports/embedding-store.ts";
import { embeddingText } from "../../text/code/embedding-text.ts";
import { unpackPositions } from "../../text/code/positions.ts";
import { globMatcher } from "../../text/glob.ts";
import { CODE_WORDS, commitCode, countOrphans, removeOrphans } from "./code-write.ts";
import type { DatabaseHandle } from "./databases.ts";
import type { SqliteDatabase, SqliteTx, SqlValue } from "./driver.ts";
import { cosines, type EmbeddedRecords, sqliteEmbeddings } from "./embeddings.ts";
import { nearest, type VectorSearcher } from "./nearest.ts";
import { rankByWords, type Where } from "./words.ts";

const RECORDS: EmbeddedRecords = {
  collection: "code",
  table: "current_chunks",
  textColumns: ["file_path", "kind", "name", "parents", "defines", "text"],
  textOf: (row) => embeddingText(row.file_path!, namesOf(row as unknown as NameColumns)),
};
const FILE = "file_path AS path, content_hash AS contentHash, generation, indexed_at AS indexedAt, language, bytes, lines, notice";
const IN_LIST = "IN (SELECT value FROM json_each(?))";

/** The code of one project in its SQLite file. */
export function sqliteCode(projectId: string, database: DatabaseHandle, vectors: VectorSearcher): CodeStore {
  return {
    embeddings: sqliteEmbeddings(RECORDS, database),

    async commit(batch) {
      return (await database()).write((tx) => commitCode(tx, projectId, batch));
    },

    async filesAt(paths) {
      return readFiles(await database(), `WHERE file_path ${IN_LIST}`, JSON.stringify(paths));
    },

    async filesWith(hashes) {
      return readFiles(await database(), `WHERE content_hash ${IN_LIST}`, JSON.stringify(hashes));
    },

    async files() {
      return readFiles(await database(), "");
    },

    async chunksOf(path) {
      return (await database()).read((tx) =>
        tx.all<ChunkRow>("SELECT * FROM current_chunks WHERE file_path = ? ORDER BY chunk_index", path).map(toChunk),
      );
    },

    async vectorsOf(path) {
      const rows = (await database()).read((tx) =>
        tx.all<NameColumns & { version_id: number; vector: Uint8Array }>(
          `SELECT r.kind, r.name, r.parents, r.defines, r.text, s.version_id, v.vector
             FROM current_chunks r JOIN vector_spaces s ON s.collection = 'code' JOIN vectors v ON v.space = s.id AND v.key = r.key
            WHERE r.file_path = ?`,
          path,
        ),
      );
      const found = new Map<string, VersionedVector[]>();
      for (const row of rows) {
        const print = chunkPrint(namesOf(row));
        const entry = { versionId: row.version_id, vector: new Float32Array(Uint8Array.from(row.vector).buffer) };
        found.set(print, [...(found.get(print) ?? []), entry]);
      }
      return found;
    },

    async definitions(names, filter, limit) {
      return (await database()).read((tx) => {
        const where = whereOf(tx, filter);
        return tx
          .all<{ name: string; kind: CodeKind; parents: string; path: string; line: number; column: number; chunkId: string }>(
            `SELECT d.name, d.kind, d.parents, r.file_path AS path, d.line, d.col AS column, r.id AS chunkId
               FROM code_definitions d JOIN current_chunks r ON r.file_key = d.file_key AND d.line BETWEEN r.start_line AND r.end_line
              WHERE d.name ${IN_LIST} AND ${where?.sql ?? "true"} ORDER BY r.file_path, d.line, d.col, d.rowid LIMIT ?`,
            JSON.stringify(names),
            ...(where?.params ?? []),
            limit,
          )
          .map((row) => ({ ...row, parents: JSON.parse(row.parents) as string[] }));
      });
    },

    async references(name, filter, limit) {
      return (await database()).read((tx) => {
        const where = whereOf(tx, filter);
        const rows = tx.all<{ path: string; count: number; positions: Uint8Array }>(
          `SELECT r.file_path AS path, u.count, u.positions FROM code_references u JOIN indexed_files r ON r.file_key = u.file_key
            WHERE u.name = ? AND ${where?.sql ?? "true"} ORDER BY r.file_path`,
          name,
          ...(where?.params ?? []),
        );
        const sites = [];
        for (const { path, positions } of rows) {
          if (sites.length >= limit) break;
          for (const position of unpackPositions(positions)) sites.push({ path, ...position });
        }
        return { sites: sites.slice(0, limit), total: rows.reduce((sum, { count }) => sum + count, 0) };
      });
    },

    async moves(limit) {
      return (await database()).read((tx) =>
        tx
          .all<FileMove>(
            "SELECT old_path AS oldPath, new_path AS newPath, detected_at AS detectedAt FROM file_moves ORDER BY move_id DESC LIMIT ?",
            limit,
          )
          .map((row) => ({ ...row })),
      );
    },

    async counts() {
      return (await database()).read((tx) => {
        const languages = tx.all<{ language: string; files: number; chunks: number }>(
          `SELECT f.language, count(*) AS files, sum(g.chunks_count) AS chunks
             FROM indexed_files f JOIN chunk_generations g ON g.project_id = f.project_id AND g.file_path = f.file_path
            GROUP BY f.language ORDER BY files DESC, f.language`,
        );
        const { lastIndexedAt, ...counted } = tx.get<Totals>(
          `SELECT (SELECT count(*) FROM indexed_files) AS files, (SELECT count(*) FROM current_chunks) AS chunks,
                  (SELECT count(*) FROM code_definitions) AS definitions, (SELECT coalesce(sum(count), 0) FROM code_references) AS "references",
                  (SELECT coalesce(sum(bytes), 0) FROM indexed_files) AS bytes, (SELECT count(*) FROM file_moves) AS moves,
                  (SELECT last FROM code_generation) AS generation, (SELECT max(indexed_at) FROM indexed_files) AS lastIndexedAt`,
        )!;
        return { ...counted, lastIndexedAt: lastIndexedAt ?? undefined, languages: languages.map((row) => ({ ...row })) };
      });
    },

    async reconcile() {
      return (await database()).write((tx) => removeOrphans(tx, projectId));
    },

    async orphans() {
      return (await database()).read(countOrphans);
    },

    async compact(keepMoves) {
      return (await database()).write((tx) => {
        tx.run(`INSERT INTO ${CODE_WORDS} (${CODE_WORDS}) VALUES ('optimize')`);
        return tx.run(
          "DELETE FROM file_moves WHERE move_id NOT IN (SELECT move_id FROM file_moves ORDER BY move_id DESC LIMIT ?)",
          keepMoves,
        ).changes;
      });
    },

    async candidates({ filter, limit, words, dense, signal }) {
      const db = await database();
      const where = db.read((tx) => whereOf(tx, filter));
      const near = dense && nearest(db, vectors, RECORDS, { ...dense, limit, where, signal });
      const lexical = words === undefined ? [] : db.read((tx) => rankByWords(tx, CODE_WORDS, "current_chunks", words, where, limit));
      return { lexical, dense: (await near) ?? [] };
    },

    async similarities(versionId, vector, ids) {
      return (await database()).read((tx) => cosines(tx, RECORDS, versionId, vector, ids));
    },

    async getMany(ids) {
      return (await database()).read((tx) =>
        ids.flatMap((id) => {
          const row = tx.get<ChunkRow>("SELECT * FROM current_chunks WHERE id = ?", id);
          return row ? [toChunk(row)] : [];
        }),
      );
    },
  };
}

function readFiles(db: SqliteDatabase, where: string, ...params: readonly SqlValue[]): IndexedFile[] {
  const rows = db.read((tx) =>
    tx.all<IndexedFile & { notice: string | null }>(`SELECT ${FILE} FROM indexed_files ${where} ORDER BY file_path`, ...params),
  );
  return rows.map(({ notice, ...file }) => (notice === null ? file : { ...file, notice }));
}

interface Totals {
  files: number;
  chunks: number;
  definitions: number;
  references: number;
  bytes: number;
  moves: number;
  generation: number;
  lastIndexedAt: string | null;
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

/** The filter as a condition on `r`, a chunk or (without kinds) a file; absent when everything matches. */
function whereOf(tx: SqliteTx, { languages, kinds, glob, changedSince }: CodeFilter): Where | undefined {
  const sql: string[] = [];
  const params: SqlValue[] = [];
  const add = (condition: string, value: SqlValue) => {
    sql.push(condition);
    params.push(value);
  };
  if (languages) add(`r.language ${IN_LIST}`, JSON.stringify(languages));
  if (kinds) add(`r.kind ${IN_LIST}`, JSON.stringify(kinds));
  if (changedSince !== undefined) add("r.indexed_at >= ?", changedSince);
  if (glob !== undefined) {
    const matches = globMatcher(glob);
    const files = tx.all<{ file_key: number; file_path: string }>("SELECT file_key, file_path FROM indexed_files");
    add(`r.file_key ${IN_LIST}`, JSON.stringify(files.filter(({ file_path }) => matches(file_path)).map(({ file_key }) => file_key)));
  }
  return sql.length === 0 ? undefined : { sql: sql.join(" AND "), params };
}

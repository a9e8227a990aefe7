import { existsSync } from "node:fs";
import { type CodeChunk, chunkFingerprint, chunkText, type FileRename, type IndexedFile } from "../../../../model/code-index.ts";
import type { CodeStore } from "../../../../ports/code-store.ts";
import type { VersionedVector } from "../../../../ports/embedding-store.ts";
import { waitLimitMs } from "../../../../scheduling/calls.ts";
import { PARTLY_INDEXED_CHARS, unpack } from "../../../../text/index-text.ts";
import { codeTerms } from "../../../../text/terms.ts";
import {
  type Blocks,
  type ChunkRow,
  type NameColumns,
  namesOf,
  outlineOf,
  recentBlocks,
  type TextColumns,
  textReader,
} from "../../../rows/chunk-row.ts";
import type { SqliteDatabase, SqliteTx, SqlValue } from "../../driver/driver.ts";
import { vacuumFile } from "../../driver/vacuum.ts";
import { readVector } from "../../vectors/collection.ts";
import { cosines, cosinesByKey, type EmbeddedRecords, sqliteEmbeddings } from "../embeddings.ts";
import { quoteTerm, rankByKeywords, type Where } from "../full-text.ts";
import { type KnownKeys, knownKeys, matchingIds, nearest, type VectorSearcher } from "../nearest.ts";
import { commitBatch } from "./commit.ts";
import type { CodeDatabase } from "./database.ts";
import { IN_LIST, matchGlob, whereOf } from "./filter.ts";
import { FILE, sqliteJobReports } from "./job-reports.ts";
import { readUnembedded } from "./late-vectors.ts";
import { countOrphans, isNone, removeOrphans } from "./orphans.ts";
import { seedIndex } from "./seed.ts";
import { findDefinitions, findReferences, readSymbols } from "./symbols.ts";
import { CODE_FTS } from "./write.ts";

const RECORDS: EmbeddedRecords = {
  collection: "code",
  table: "current_chunks",
  textColumns: ["file_path", "kind", "name", "parents", "defines", "body", "text_start", "text_length"],
  textOf(row) {
    const { body, text_start, text_length, ...chunk } = row as unknown as NameColumns & TextColumns & { body: Uint8Array };
    const text = unpack(body).slice(text_start, text_start + text_length);
    return chunkText(row.file_path!, { ...namesOf(chunk), text });
  },
  slots: 1,
};
const FULL_TEXT = { table: CODE_FTS, records: RECORDS.table, hasLanguages: false };
/** The columns of a chunk without the body of its text, which several chunks share. */
const CHUNK =
  "id, generation, chunk_index, kind, name, parents, defines, start_line, end_line, text_key, text_start, text_length, file_path, language, content_hash, indexed_at";

/** The index of paths begins with the project: a path alone would scan all files. */
const OF_FILE = "file_key = (SELECT file_key FROM indexed_files WHERE project_id = ? AND file_path = ?)";

/** The code index of one project, in its own SQLite file. */
export function sqliteCode(projectId: string, file: CodeDatabase, vectors: VectorSearcher): CodeStore {
  const database = file.handle;
  const keys = knownKeys();
  return {
    ...sqliteJobReports(file),
    embeddings: sqliteEmbeddings(RECORDS, database),

    async commit(batch) {
      return commitBatch(await file.writable(), projectId, batch);
    },

    async seed(sample, list) {
      await file.writable(); // raises the migration's error
      return seedIndex(file.path, projectId, sample, list);
    },

    async unembedded(versionId, limit, afterKey = 0) {
      return (await database()).read((tx) => readUnembedded(tx, versionId, limit, afterKey));
    },

    async putVectors(late) {
      return commitBatch(await file.writable(), projectId, late);
    },

    async filesAt(paths) {
      return readFiles(await database(), `WHERE project_id = ? AND file_path ${IN_LIST}`, projectId, JSON.stringify(paths));
    },

    async filesWith(hashes) {
      return readFiles(await database(), `WHERE content_hash ${IN_LIST}`, JSON.stringify(hashes));
    },

    async files() {
      return readFiles(await database(), "");
    },

    async chunksOf(path, lines) {
      const having = lines ? "AND EXISTS (SELECT 1 FROM json_each(?) WHERE value BETWEEN start_line AND end_line)" : "";
      const sql = `SELECT ${CHUNK} FROM current_chunks WHERE ${OF_FILE} ${having} ORDER BY chunk_index`;
      return (await database()).read((tx) =>
        readChunks(tx, tx.all<ChunkRow>(sql, projectId, path, ...(lines ? [JSON.stringify(lines)] : []))),
      );
    },

    async vectorsOf(path) {
      const rows = (await database()).read((tx) => {
        const textOf = textReader((key) => tx.get<{ body: Uint8Array }>("SELECT body FROM code_texts WHERE key = ?", key)?.body);
        return tx
          .all<NameColumns & TextColumns & { version_id: number; dimension: number; vector: Uint8Array }>(
            `SELECT r.kind, r.name, r.parents, r.defines, r.text_key, r.text_start, r.text_length, s.version_id, s.dimension, v.vector
               FROM current_chunks r JOIN vector_collections s ON s.collection = 'code' JOIN vectors v ON v.collection_id = s.id AND v.key = r.key
              WHERE r.${OF_FILE}`,
            projectId,
            path,
          )
          .map((row) => ({ ...row, text: textOf(row) }));
      });
      const found = new Map<string, VersionedVector[]>();
      for (const row of rows) {
        const print = chunkFingerprint({ ...namesOf(row), text: row.text });
        const vector = readVector(row.vector, row.dimension);
        if (!vector) continue; // damaged: the chunk is embedded again
        const entry = { versionId: row.version_id, vector };
        const known = found.get(print) ?? [];
        // Equal chunks have a vector each; one of them is enough.
        if (!known.some(({ versionId }) => versionId === entry.versionId)) found.set(print, [...known, entry]);
      }
      return found;
    },

    async definitions(names, filter, limit) {
      const files = await matchGlob(database, filter);
      return (await database()).read((tx) => findDefinitions(tx, names, files, limit));
    },

    async references(name, filter, limit) {
      const files = await matchGlob(database, filter);
      return (await database()).read((tx) => findReferences(tx, name, files, limit));
    },

    async symbolsOf(path, lines) {
      return (await database()).read((tx) => {
        const found = tx.get<{ file_key: number }>(
          "SELECT file_key FROM indexed_files WHERE project_id = ? AND file_path = ?",
          projectId,
          path,
        );
        return found ? readSymbols(tx, found.file_key, lines) : { definitions: [], references: [] };
      });
    },

    async pathsWith(words, filter) {
      const files = await matchGlob(database, filter);
      return (await database()).read((tx) => findPaths(tx, words.flatMap(codeTerms), whereOf(files)));
    },

    async renames(limit) {
      return (await database()).read((tx) =>
        tx
          .all<FileRename>(
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
                  (SELECT coalesce(sum(defined), 0) FROM code_symbols) AS definitions, (SELECT coalesce(sum(used), 0) FROM code_symbols) AS "references",
                  (SELECT coalesce(sum(bytes), 0) FROM indexed_files) AS bytes, (SELECT count(*) FROM file_moves) AS renames,
                  (SELECT last FROM code_generation) AS generation, (SELECT max(indexed_at) FROM indexed_files) AS lastIndexedAt`,
        )!;
        return { ...counted, lastIndexedAt: lastIndexedAt ?? undefined, languages: languages.map((row) => ({ ...row })) };
      });
    },

    async reconcile() {
      const db = await file.writable();
      // Counting takes long in a large index, and nearly always finds nothing: it needs no write lock.
      const found = db.read(countOrphans);
      return isNone(found) ? found : db.write((tx) => removeOrphans(tx, projectId));
    },

    async dropDamaged() {
      vectors.close();
      await file.dropDamaged();
    },

    async orphans() {
      return (await database()).read(countOrphans);
    },

    async compact(keepRenames) {
      const db = await file.writable();
      if (!existsSync(db.path)) return { forgottenRenames: 0, freedBytes: 0 };
      const forgottenRenames = await db.write((tx) => {
        tx.run(`INSERT INTO ${CODE_FTS} (${CODE_FTS}) VALUES ('optimize')`);
        return tx.run(
          "DELETE FROM file_moves WHERE move_id NOT IN (SELECT move_id FROM file_moves ORDER BY move_id DESC LIMIT ?)",
          keepRenames,
        ).changes;
      });
      return { forgottenRenames, freedBytes: await vacuumFile({ path: db.path, lockWaitMs: waitLimitMs() }) };
    },

    async candidates({ filter, limit, semanticLimit = limit, text, semantic, signal }) {
      const where = whereOf(await matchGlob(database, filter, signal));
      const db = await database();
      const near = semantic && nearest(db, database, vectors, RECORDS, { ...semantic, limit: semanticLimit, where, signal });
      near?.catch(() => {}); // awaited below, unless something else fails first
      const { keyword, similarities } = db.read((tx) => {
        const ranked = text === undefined ? [] : rankByKeywords(tx, FULL_TEXT, text, where, limit);
        // Usually the scan thread is still working.
        return { keyword: ranked, similarities: semantic && cosinesByKey(tx, RECORDS, semantic.versionId, semantic.vector, ranked) };
      });
      const { ranked: found = [], incomplete } = (await near) ?? {};
      keys.note(keyword);
      keys.note(found);
      return { keyword, semantic: found, similarities, incomplete };
    },

    async matching(filter, limit) {
      const where = whereOf(await matchGlob(database, filter));
      return matchingIds(await database(), RECORDS, where, limit);
    },

    async similarities(versionId, vector, ids) {
      return (await database()).read((tx) => cosines(tx, RECORDS, versionId, vector, ids, keys.of));
    },

    async getMany(ids) {
      return (await database()).read((tx) => readChunks(tx, rowsOf(tx, ids, keys)));
    },
  };
}

function findPaths(tx: SqliteTx, terms: readonly string[], where: Where | undefined): string[] {
  const having =
    terms.length === 0
      ? "true"
      : `r.file_key IN (SELECT c.file_key FROM code_chunks c WHERE c.text_length > ? OR c.key IN (SELECT rowid FROM ${CODE_FTS} WHERE ${CODE_FTS} MATCH ?))`;
  return tx
    .all<{ path: string }>(
      `SELECT r.file_path AS path FROM indexed_files r WHERE ${having} AND ${where?.sql ?? "true"} ORDER BY r.file_path`,
      ...(terms.length === 0 ? [] : [PARTLY_INDEXED_CHARS, terms.map(quoteTerm).join(" AND ")]),
      ...(where?.params ?? []),
    )
    .map(({ path }) => path);
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
  renames: number;
  generation: number;
  lastIndexedAt: string | null;
}

/** Returns rows in the order of the ids. They come as one JSON text, which takes a third of the time of separate rows. */
function rowsOf(tx: SqliteTx, ids: readonly string[], keys: KnownKeys): ChunkRow[] {
  const { rows } = tx.get<{ rows: string }>(
    `SELECT json_group_array(json_object(${CHUNK.split(", ").flatMap((name) => [`'${name}'`, `r.${name}`])})) AS rows
       FROM json_each(?) wanted CROSS JOIN current_chunks r ON r.id = wanted.value ->> 1
        AND r.key = coalesce(wanted.value ->> 0, (SELECT key FROM code_chunks WHERE id = wanted.value ->> 1))`,
    JSON.stringify(ids.map((id) => [keys.of(id), id])),
  )!;
  return JSON.parse(rows) as ChunkRow[];
}

function readChunks(tx: SqliteTx, rows: readonly ChunkRow[]): CodeChunk[] {
  const textOf = textReader((key) => tx.get<{ body: Uint8Array }>("SELECT body FROM code_texts WHERE key = ?", key)?.body, blocksOf(tx));
  return rows.map((row) => ({ ...outlineOf(row), text: textOf(row) }));
}

/** The recently read blocks of each connection. A file's keys are never reused, and another file has another connection. */
const blocks = new WeakMap<SqliteTx, Blocks>();

function blocksOf(tx: SqliteTx): Blocks {
  const known = blocks.get(tx) ?? recentBlocks();
  blocks.set(tx, known);
  return known;
}

import {
  type CodeChunk,
  type CodeCounts,
  type CodeOrphans,
  chunkFingerprint,
  chunkText,
  type DefinitionSite,
  type FileRename,
  type FileSymbols,
  type IndexedFile,
} from "../../../../model/code-index.ts";
import type { CodeStore } from "../../../../ports/code-store.ts";
import type { VersionedVector } from "../../../../ports/embedding-store.ts";
import type { Candidates } from "../../../../ports/recall-store.ts";
import { PARTLY_INDEXED_CHARS, unpack } from "../../../../text/index-text.ts";
import { codeTerms } from "../../../../text/terms.ts";
import { type ChunkRow, type NameColumns, namesOf, outlineOf, type TextColumns } from "../../../rows/chunk-row.ts";
import type { PgValue, PostgresTx } from "../../driver/driver.ts";
import { cosines, type EmbeddedRecords, matchingIds, nearest, postgresEmbeddings } from "../embeddings.ts";
import { quoteLexeme, rankByKeywords, type WhereFrom } from "../full-text.ts";
import type { PartTables, ProjectTables } from "../project-tables.ts";
import { conditions } from "./filter.ts";
import { FILE, postgresJobReports } from "./job-reports.ts";
import { countOrphans, removeOrphans } from "./orphans.ts";
import { findDefinitions, findReferences, readSymbols } from "./symbols.ts";
import { commitCode, readTexts, waitForCommits } from "./write.ts";

const RECORDS: EmbeddedRecords = {
  collection: "code",
  table: "current_chunks",
  textColumns: ["file_path", "kind", "name", "parents", "defines", "body", "text_start", "text_length"],
  textOf(row) {
    const { body, text_start, text_length, ...chunk } = row as unknown as NameColumns & TextColumns & { body: Uint8Array };
    const text = unpack(body).slice(text_start, text_start + text_length);
    return chunkText(row.file_path!, { ...namesOf(chunk), text });
  },
  queue: waitForCommits,
  slots: 1,
  parts: ["code"],
};
/** The columns of a chunk without its terms, which are never read back, and without the text block, which several chunks share. */
const CHUNK =
  "id, generation, chunk_index, kind, name, parents, defines, start_line, end_line, text_key, text_start, text_length, file_path, language, content_hash, indexed_at";

const STORED = [
  "indexed_files",
  "chunk_generations",
  "file_moves",
  "code_chunks",
  "code_texts",
  "code_symbols",
  "code_outlines",
  "vectors",
];

const NO_CODE: CodeCounts = {
  lastIndexedAt: undefined,
  files: 0,
  chunks: 0,
  definitions: 0,
  references: 0,
  bytes: 0,
  renames: 0,
  generation: 0,
  languages: [],
};
const NO_ORPHANS: CodeOrphans = { rows: 0, terms: 0, vectors: 0 };

type VectorRow = NameColumns & TextColumns & { readonly version_id: number; readonly vector: string };

/** The code of one project in its PostgreSQL schema. */
export function postgresCode(projectId: string, tables: ProjectTables): CodeStore {
  const part = tables.part("code");
  return {
    ...postgresJobReports(part),
    embeddings: postgresEmbeddings(RECORDS, tables),

    // After a lost answer, a repeated removal or rename would report «not done»; the caller reads the files again in any case.
    commit: (batch) => part.write((tx) => commitCode(tx, tables, projectId, batch), { idempotent: true }),

    filesAt: (paths) => readFiles(part, "WHERE file_path = ANY ($1::text[])", paths),
    filesWith: (hashes) => readFiles(part, "WHERE content_hash = ANY ($1::text[])", hashes),
    files: () => readFiles(part, ""),

    async chunksOf(path, lines) {
      const having = lines ? "AND EXISTS (SELECT 1 FROM unnest($2::int[]) AS line WHERE line BETWEEN start_line AND end_line)" : "";
      const sql = `SELECT ${CHUNK} FROM current_chunks WHERE file_path = $1 ${having} ORDER BY chunk_index`;
      return part.read<CodeChunk[]>([], async (tx) => readChunks(tx, await tx.all<ChunkRow>(sql, path, ...(lines ? [lines] : []))));
    },

    async vectorsOf(path) {
      const rows = await part.read<(VectorRow & { text: string })[]>([], async (tx) => {
        const stored = await tx.all<VectorRow>(
          `SELECT r.kind, r.name, r.parents, r.defines, r.text_key, r.text_start, r.text_length, v.version_id, v.vector::text AS vector
             FROM current_chunks r JOIN vectors v ON v.collection = 'code' AND v.key = r.key WHERE r.file_path = $1 ORDER BY v.version_id`,
          path,
        );
        const textOf = await readTexts(tx, stored);
        return stored.map((row) => ({ ...row, text: textOf(row) }));
      });
      const found = new Map<string, VersionedVector[]>();
      for (const row of rows) {
        const print = chunkFingerprint({ ...namesOf(row), text: row.text });
        const entry = { versionId: row.version_id, vector: Float32Array.from(JSON.parse(row.vector) as number[]) };
        const known = found.get(print) ?? [];
        // Identical chunks have a vector each; one of them is sufficient.
        if (!known.some(({ versionId }) => versionId === entry.versionId)) found.set(print, [...known, entry]);
      }
      return found;
    },

    definitions: (names, filter, limit) => part.read<readonly DefinitionSite[]>([], (tx) => findDefinitions(tx, names, filter, limit)),
    references: (name, filter, limit) => part.read({ sites: [], total: 0 }, (tx) => findReferences(tx, name, filter, limit)),

    symbolsOf: (path, lines) => part.read<FileSymbols>({ definitions: [], references: [] }, (tx) => readSymbols(tx, path, lines)),
    pathsWith: (words, filter) =>
      part.read<string[]>([], async (tx) => findPaths(tx, words.flatMap(codeTerms), await conditions(tx, filter))),

    renames: (limit) =>
      part.read<FileRename[]>([], (tx) =>
        tx.all(
          'SELECT old_path AS "oldPath", new_path AS "newPath", detected_at AS "detectedAt" FROM file_moves ORDER BY move_id DESC LIMIT $1',
          limit,
        ),
      ),

    counts: () =>
      part.read<CodeCounts>(NO_CODE, async (tx) => {
        const languages = await tx.all<CodeCounts["languages"][number]>(
          `SELECT f.language, count(*) AS files, sum(g.chunks_count)::bigint AS chunks
             FROM indexed_files f JOIN chunk_generations g ON g.project_id = f.project_id AND g.file_path = f.file_path
            GROUP BY f.language ORDER BY files DESC, f.language COLLATE "C"`,
        );
        const totals = await tx.get<Omit<CodeCounts, "languages" | "lastIndexedAt"> & { lastIndexedAt: string | null }>(
          `SELECT (SELECT count(*) FROM indexed_files) AS files, (SELECT count(*) FROM current_chunks) AS chunks,
                  (SELECT coalesce(sum(defined), 0)::bigint FROM code_symbols) AS definitions,
                  (SELECT coalesce(sum(used), 0)::bigint FROM code_symbols) AS "references",
                  (SELECT coalesce(sum(bytes), 0)::bigint FROM indexed_files) AS bytes, (SELECT count(*) FROM file_moves) AS renames,
                  (SELECT last FROM code_generation) AS generation, (SELECT max(indexed_at) FROM indexed_files) AS "lastIndexedAt"`,
        );
        return { ...totals!, lastIndexedAt: totals!.lastIndexedAt ?? undefined, languages };
      }),

    reconcile: () => part.change(NO_ORPHANS, removeOrphans),

    orphans: () => part.read(NO_ORPHANS, countOrphans),
    async dropDamaged() {},

    async compact(keepRenames) {
      const forgottenRenames = await part.change<number | undefined>(undefined, (tx) =>
        tx.run("DELETE FROM file_moves WHERE move_id NOT IN (SELECT move_id FROM file_moves ORDER BY move_id DESC LIMIT $1)", keepRenames),
      );
      if (forgottenRenames === undefined) return { forgottenRenames: 0, freedBytes: 0 };
      return { forgottenRenames, freedBytes: await tables.vacuum(STORED) };
    },

    candidates: ({ filter, limit, semanticLimit = limit, text, semantic }) =>
      part.read<Candidates>({ keyword: [], semantic: [] }, async (tx) => {
        const where = await conditions(tx, filter);
        return {
          keyword: text === undefined ? [] : await rankByKeywords(tx, tables, "current_chunks", text, where, limit),
          semantic: semantic ? await nearest(tx, tables, RECORDS, { ...semantic, limit: semanticLimit, where }) : [],
        };
      }),

    matching: (filter, limit) =>
      part.read<"all" | "many" | readonly string[]>([], async (tx) => matchingIds(tx, RECORDS, await conditions(tx, filter), limit)),

    similarities: (versionId, vector, ids) => part.read(new Map(), (tx) => cosines(tx, tables, RECORDS, versionId, vector, ids)),

    getMany: (ids) => part.read<CodeChunk[]>([], async (tx) => readChunks(tx, await rowsOf(tx, ids))),
  };
}

async function findPaths(tx: PostgresTx, terms: readonly string[], whereFrom: WhereFrom): Promise<string[]> {
  const where = whereFrom(3);
  const rows = await tx.all<{ path: string }>(
    `SELECT r.file_path AS path FROM indexed_files r
      WHERE ($1 = '' OR r.file_key IN (SELECT c.file_key FROM code_chunks c WHERE c.text_length > $2 OR c.terms @@ $1::tsquery))
        AND ${where?.sql ?? "true"} ORDER BY r.file_path`,
    terms.map(quoteLexeme).join(" & "),
    PARTLY_INDEXED_CHARS,
    ...(where?.params ?? []),
  );
  return rows.map(({ path }) => path);
}

async function readFiles(part: PartTables, where: string, ...params: readonly PgValue[]): Promise<IndexedFile[]> {
  const rows = await part.read<(IndexedFile & { notice: string | null })[]>([], (tx) =>
    tx.all(`SELECT ${FILE} FROM indexed_files ${where} ORDER BY file_path`, ...params),
  );
  return rows.map(({ notice, ...file }) => (notice === null ? file : { ...file, notice }));
}

/** Returns chunks in the order of the ids. */
async function rowsOf(tx: PostgresTx, ids: readonly string[]): Promise<ChunkRow[]> {
  const rows = await tx.all<ChunkRow>(`SELECT ${CHUNK} FROM current_chunks WHERE id = ANY ($1::text[])`, ids);
  const found = new Map(rows.map((row) => [row.id, row]));
  return ids.flatMap((id) => found.get(id) ?? []);
}

async function readChunks(tx: PostgresTx, rows: readonly ChunkRow[]): Promise<CodeChunk[]> {
  const textOf = await readTexts(tx, rows);
  return rows.map((row) => ({ ...outlineOf(row), text: textOf(row) }));
}

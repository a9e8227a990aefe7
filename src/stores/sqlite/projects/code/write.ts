import { chunkId } from "../../../../model/code-index.ts";
import type { PackedSymbols } from "../../../../model/packed-file.ts";
import type { CodeBatch, CommitResult, PackedFileWrite } from "../../../../ports/code-store.ts";
import { yieldToCalls } from "../../../../scheduling/calls.ts";
import { chunkTerms, unpackNames, unpackOutline } from "../../../../text/index-text.ts";
import { blocksOf } from "../../../../text/pack-file.ts";
import { codeTerms } from "../../../../text/terms.ts";
import { type TextColumns, textReader } from "../../../rows/chunk-row.ts";
import type { SqliteTx } from "../../driver/driver.ts";
import { putVectorsByVersion, removeVectors } from "../embeddings.ts";
import { insertTerms, putTerms, removeTerms } from "../full-text.ts";

export const CODE_FTS = "code_fts";

interface FileRow {
  file_key: number;
  content_hash: string;
  generation: number;
}

interface RowBatch extends Omit<CodeBatch, "files"> {
  readonly files: readonly PackedFileWrite[];
}

/** A commit in progress. It writes and removes vectors at its end, all together: the vector index is then changed once. */
interface Commit {
  readonly tx: SqliteTx;
  readonly projectId: string;
  readonly generation: number;
  readonly at: string;
  /** Keys of the chunks that were removed, whose vectors are still stored. */
  readonly removedChunks: number[];
  readonly vectors: Map<number, { key: number; vector: Float32Array }[]>;
}

/** Applies a batch inside one transaction: inserts the next generation, makes it current and deletes the previous one. */
export function commitCode(tx: SqliteTx, projectId: string, { at, renames = [], removes = [], files }: RowBatch): CommitResult {
  const generation = tx.get<{ last: number }>("UPDATE code_generation SET last = last + 1 WHERE id = 1 RETURNING last")!.last;
  const commit: Commit = { tx, projectId, generation, at, removedChunks: [], vectors: new Map() };
  const renamed = renames.filter((rename) => renameFile(commit, rename)).map(({ to }) => to);
  const removed: string[] = [];
  for (const { path, contentHash, renamedTo } of removes) {
    const file = fileAt(tx, projectId, path);
    if (file?.content_hash !== contentHash) continue;
    commit.removedChunks.push(...removeFile(tx, projectId, path, file.file_key));
    if (renamedTo !== undefined) recordRename(commit, path, renamedTo);
    removed.push(path);
  }
  for (const file of files) writeFile(commit, file);
  removeVectors(tx, "code", commit.removedChunks);
  putVectorsByVersion(tx, "code", commit.vectors);
  return { generation, renamed, removed };
}

function writeFile(commit: Commit, file: PackedFileWrite): void {
  const { tx, generation } = commit;
  const { packed, vectors } = file;
  const fileKey = putFileRow(commit, file);
  for (const [place, key] of insertChunks(commit, file, fileKey).entries()) addVectors(commit, key, vectors[place]!);
  const previous = tx.all<{ key: number }>("SELECT key FROM code_chunks WHERE file_key = ? AND generation < ?", fileKey, generation);
  commit.removedChunks.push(
    ...removeChunks(
      tx,
      previous.map(({ key }) => key),
    ),
  );
  putSymbols(tx, fileKey, packed.symbols);
}

/**
 * Writes the row of a file and its generation, and returns the key of the file. An upsert would be one statement, but SQLite runs it in a
 * savepoint, and a savepoint makes FTS5 write all terms that it has collected: a segment of the full-text index for each file.
 */
function putFileRow({ tx, projectId, generation, at }: Commit, file: PackedFileWrite): number {
  const { path, contentHash, language, bytes, lines, notice, packed } = file;
  const facts = [contentHash, generation, at, language, bytes, lines, notice ?? null];
  const chunks = packed.outlines.length;
  const known = fileAt(tx, projectId, path);
  if (known) {
    tx.run(
      "UPDATE indexed_files SET content_hash = ?, generation = ?, indexed_at = ?, language = ?, bytes = ?, lines = ?, notice = ? WHERE file_key = ?",
      ...facts,
      known.file_key,
    );
    tx.run("DELETE FROM chunk_generations WHERE project_id = ? AND file_path = ?", projectId, path);
  }
  tx.run(
    "INSERT INTO chunk_generations (project_id, file_path, current_generation, chunks_count, updated_at) VALUES (?, ?, ?, ?, ?)",
    projectId,
    path,
    generation,
    chunks,
    at,
  );
  if (known) return known.file_key;
  return tx.run(
    `INSERT INTO indexed_files (project_id, file_path, content_hash, generation, indexed_at, language, bytes, lines, notice)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    projectId,
    path,
    ...facts,
  ).lastId;
}

function addVectors({ vectors }: Commit, key: number, own: PackedFileWrite["vectors"][number]): void {
  for (const { versionId, vector } of own) {
    const entries = vectors.get(versionId);
    if (entries) entries.push({ key, vector });
    else vectors.set(versionId, [{ key, vector }]);
  }
}

/**
 * Inserts the chunks of a file with their texts, and returns the keys of the chunks. Holds the write lock of the code index while it
 * pauses; no other database is affected.
 */
function insertChunks({ tx, projectId, generation }: Commit, { path, packed }: PackedFileWrite, fileKey: number): number[] {
  const { outlines, places, terms } = packed;
  const textKeys = blocksOf(packed).map((body) => tx.run("INSERT INTO code_texts (body) VALUES (?)", body).lastId);
  return outlines.map((chunk, place) => {
    yieldToCalls();
    const { block, start, length } = places[place]!;
    const { lastId: key } = tx.run(
      `INSERT INTO code_chunks (id, file_key, generation, chunk_index, kind, name, parents, defines, start_line, end_line, text_key, text_start, text_length)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      chunkId(projectId, path, chunk.index, generation),
      fileKey,
      generation,
      chunk.index,
      chunk.kind,
      chunk.name ?? null,
      JSON.stringify(chunk.parents),
      JSON.stringify(chunk.defines),
      chunk.startLine,
      chunk.endLine,
      textKeys[block]!,
      start,
      length,
    );
    insertTerms(tx, CODE_FTS, key, terms[place]!);
    return key;
  });
}

function putSymbols(tx: SqliteTx, fileKey: number, symbols: PackedSymbols): void {
  removeSymbols(tx, fileKey);
  tx.run("INSERT INTO code_outlines (file_key, body) VALUES (?, ?)", fileKey, symbols.outline);
  // In the order of the table, so that neighbours are on one page.
  const names = unpackNames(symbols).sort((a, b) => (a.name < b.name ? -1 : 1));
  for (let from = 0; from < names.length; ) {
    const rows = names.length - from >= SYMBOL_ROWS ? SYMBOL_ROWS : 1;
    const values = names
      .slice(from, from + rows)
      .flatMap(({ name, defined, used, positions }) => [name, fileKey, defined, used, positions]);
    tx.run(insertSymbols(rows), ...values);
    from += rows;
  }
}

/** Symbols that one statement inserts: a file has about forty, and a statement costs as much as three rows. */
const SYMBOL_ROWS = 16;

/** Returns the statement for several symbols. Without `OR IGNORE` it would run in a savepoint, which makes FTS5 write its terms; see `putFileRow`. */
function insertSymbols(rows: number): string {
  return `INSERT OR IGNORE INTO code_symbols (name, file_key, defined, used, positions) VALUES ${Array(rows).fill("(?, ?, ?, ?, ?)").join(", ")}`;
}

function renameFile(commit: Commit, { from, to, contentHash }: { from: string; to: string; contentHash: string }): boolean {
  const { tx, projectId, generation, at } = commit;
  const file = fileAt(tx, projectId, from);
  if (file?.content_hash !== contentHash || fileAt(tx, projectId, to)) return false;
  tx.run("UPDATE indexed_files SET file_path = ?, generation = ?, indexed_at = ? WHERE file_key = ?", to, generation, at, file.file_key);
  tx.run(
    "UPDATE chunk_generations SET file_path = ?, current_generation = ?, updated_at = ? WHERE project_id = ? AND file_path = ?",
    to,
    generation,
    at,
    projectId,
    from,
  );
  const textOf = textReader((key) => tx.get<{ body: Uint8Array }>("SELECT body FROM code_texts WHERE key = ?", key)?.body);
  const chunks = tx.all<TextColumns & { key: number; chunk_index: number; name: string | null; parents: string; defines: string }>(
    "SELECT key, chunk_index, name, parents, defines, text_key, text_start, text_length FROM code_chunks WHERE file_key = ?",
    file.file_key,
  );
  // The key stays the same, and so do the vectors; the full-text terms change with the path.
  for (const { key, chunk_index: index, name, parents, defines, ...place } of chunks) {
    tx.run("UPDATE code_chunks SET id = ?, generation = ? WHERE key = ?", chunkId(projectId, to, index, generation), generation, key);
    const names = { ...(name !== null && { name }), parents: JSON.parse(parents) as string[], defines: JSON.parse(defines) as string[] };
    putTerms(tx, CODE_FTS, key, codeTerms(chunkTerms(to, { ...names, text: textOf(place) })).join(" "));
  }
  recordRename(commit, from, to);
  return true;
}

function recordRename({ tx, projectId, at }: Commit, from: string, to: string): void {
  tx.run("INSERT INTO file_moves (project_id, old_path, new_path, detected_at) VALUES (?, ?, ?, ?)", projectId, from, to, at);
}

function fileAt(tx: SqliteTx, projectId: string, path: string): FileRow | undefined {
  return tx.get<FileRow>(
    "SELECT file_key, content_hash, generation FROM indexed_files WHERE project_id = ? AND file_path = ?",
    projectId,
    path,
  );
}

/** Removes a file and returns the keys of its chunks, whose vectors the caller removes. */
export function removeFile(tx: SqliteTx, projectId: string, path: string, fileKey: number): number[] {
  const chunks = tx.all<{ key: number }>("SELECT key FROM code_chunks WHERE file_key = ?", fileKey);
  const gone = removeChunks(
    tx,
    chunks.map(({ key }) => key),
  );
  removeSymbols(tx, fileKey);
  tx.run("DELETE FROM chunk_generations WHERE project_id = ? AND file_path = ?", projectId, path);
  tx.run("DELETE FROM indexed_files WHERE file_key = ?", fileKey);
  return gone;
}

/** Removes chunks and their texts, which only chunks of the same file and generation share. The caller removes the vectors. */
export function removeChunks(tx: SqliteTx, keys: readonly number[]): number[] {
  const texts = new Set<number>();
  for (const key of keys) {
    yieldToCalls();
    const chunk = tx.get<{ text_key: number }>("DELETE FROM code_chunks WHERE key = ? RETURNING text_key", key);
    if (!chunk) continue;
    removeTerms(tx, CODE_FTS, key);
    texts.add(chunk.text_key);
  }
  for (const key of texts) tx.run("DELETE FROM code_texts WHERE key = ?", key);
  return [...keys];
}

/** Removes the symbols of a file. The outline lists their names, because an index by file would hold every name a second time. */
function removeSymbols(tx: SqliteTx, fileKey: number): void {
  const outline = tx.get<{ body: Uint8Array }>("DELETE FROM code_outlines WHERE file_key = ? RETURNING body", fileKey);
  if (!outline) return;
  let names: readonly string[];
  try {
    ({ names } = unpackOutline(outline.body));
  } catch {
    tx.run("DELETE FROM code_symbols WHERE file_key = ?", fileKey); // the outline is damaged: a slow scan is right
    return;
  }
  for (const name of names) tx.run("DELETE FROM code_symbols WHERE name = ? AND file_key = ?", name, fileKey);
}

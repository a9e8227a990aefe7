import { type CodeOrphans, chunkId } from "../../model/code-index.ts";
import type { CodeBatch, CommitResult, FileWrite } from "../../ports/code-store.ts";
import { chunkWords, packSymbols } from "../../text/code/index-text.ts";
import type { SqliteTx } from "./driver.ts";
import { putVectorsByVersion, removeRecordVectors } from "./embeddings.ts";
import { vectorWriter } from "./vectors/writer.ts";
import { putWords, removeWords } from "./words.ts";

export const CODE_WORDS = "code_words";

interface FileRow {
  file_key: number;
  content_hash: string;
}

export function commitCode(tx: SqliteTx, projectId: string, batch: CodeBatch): CommitResult {
  const { last: generation } = tx.get<{ last: number }>("UPDATE code_generation SET last = last + 1 WHERE id = 1 RETURNING last")!;
  const step = { tx, projectId, generation, at: batch.at };
  const moved = (batch.moves ?? []).filter((move) => moveFile(step, move)).map(({ to }) => to);
  const removed: string[] = [];
  for (const { path, contentHash, movedTo } of batch.removes ?? []) {
    const file = fileAt(tx, projectId, path);
    if (file?.content_hash !== contentHash) continue;
    removeFile(tx, projectId, path, file.file_key);
    if (movedTo !== undefined) recordMove(step, path, movedTo);
    removed.push(path);
  }
  for (const file of batch.files ?? []) writeFile(step, file);
  return { generation, moved, removed };
}

interface Step {
  readonly tx: SqliteTx;
  readonly projectId: string;
  readonly generation: number;
  readonly at: string;
}

function writeFile({ tx, projectId, generation, at }: Step, file: FileWrite): void {
  const { path, contentHash, language, bytes, lines, notice, chunks } = file;
  const { file_key: fileKey } = tx.get<FileRow>(
    `INSERT INTO indexed_files (project_id, file_path, content_hash, generation, indexed_at, language, bytes, lines, notice) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (project_id, file_path) DO UPDATE SET content_hash = excluded.content_hash, generation = excluded.generation,
       indexed_at = excluded.indexed_at, language = excluded.language, bytes = excluded.bytes, lines = excluded.lines, notice = excluded.notice
     RETURNING file_key, content_hash`,
    projectId,
    path,
    contentHash,
    generation,
    at,
    language,
    bytes,
    lines,
    notice ?? null,
  )!;
  tx.run(
    `INSERT INTO chunk_generations (project_id, file_path, current_generation, chunks_count, updated_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (project_id, file_path) DO UPDATE SET current_generation = excluded.current_generation,
       chunks_count = excluded.chunks_count, updated_at = excluded.updated_at`,
    projectId,
    path,
    generation,
    chunks.length,
    at,
  );
  const vectors = new Map<number, { key: number; vector: Float32Array }[]>();
  for (const { chunk, vectors: own } of chunks) {
    const { lastId: key } = tx.run(
      `INSERT INTO code_chunks (id, file_key, generation, chunk_index, kind, name, parents, defines, start_line, end_line, text)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
      chunk.text,
    );
    putWords(tx, CODE_WORDS, key, chunkWords(path, chunk));
    for (const { versionId, vector } of own) {
      const entries = vectors.get(versionId);
      if (entries) entries.push({ key, vector });
      else vectors.set(versionId, [{ key, vector }]);
    }
  }
  putVectorsByVersion(tx, "code", vectors);
  removeChunks(tx, oldChunks(tx, fileKey, generation));
  putSymbols(tx, fileKey, file);
}

function putSymbols(tx: SqliteTx, fileKey: number, { symbols }: FileWrite): void {
  removeSymbols(tx, fileKey);
  const { definitions, references } = packSymbols(symbols);
  for (const { name, kind, line, column, parents } of definitions)
    tx.run(
      "INSERT INTO code_definitions (file_key, name, kind, line, col, parents) VALUES (?, ?, ?, ?, ?, ?)",
      fileKey,
      name,
      kind,
      line,
      column,
      JSON.stringify(parents),
    );
  for (const { name, count, positions } of references)
    tx.run("INSERT INTO code_references (file_key, name, count, positions) VALUES (?, ?, ?, ?)", fileKey, name, count, positions);
}

function moveFile(step: Step, { from, to, contentHash }: { from: string; to: string; contentHash: string }): boolean {
  const { tx, projectId, generation, at } = step;
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
  const chunks = tx.all<{ key: number; chunk_index: number; name: string | null; parents: string; defines: string; text: string }>(
    "SELECT key, chunk_index, name, parents, defines, text FROM code_chunks WHERE file_key = ?",
    file.file_key,
  );
  // The key stays, and with it the vectors; the words change with the path.
  for (const { key, chunk_index: index, name, parents, defines, text } of chunks) {
    tx.run("UPDATE code_chunks SET id = ?, generation = ? WHERE key = ?", chunkId(projectId, to, index, generation), generation, key);
    const names = { ...(name !== null && { name }), parents: JSON.parse(parents) as string[], defines: JSON.parse(defines) as string[] };
    putWords(tx, CODE_WORDS, key, chunkWords(to, { ...names, text }));
  }
  recordMove(step, from, to);
  return true;
}

function recordMove({ tx, projectId, at }: Step, from: string, to: string): void {
  tx.run("INSERT INTO file_moves (project_id, old_path, new_path, detected_at) VALUES (?, ?, ?, ?)", projectId, from, to, at);
}

function fileAt(tx: SqliteTx, projectId: string, path: string): FileRow | undefined {
  return tx.get<FileRow>("SELECT file_key, content_hash FROM indexed_files WHERE project_id = ? AND file_path = ?", projectId, path);
}

function removeFile(tx: SqliteTx, projectId: string, path: string, fileKey: number): void {
  removeChunks(tx, oldChunks(tx, fileKey, Number.MAX_SAFE_INTEGER));
  removeSymbols(tx, fileKey);
  tx.run("DELETE FROM chunk_generations WHERE project_id = ? AND file_path = ?", projectId, path);
  tx.run("DELETE FROM indexed_files WHERE file_key = ?", fileKey);
}

function oldChunks(tx: SqliteTx, fileKey: number, before: number): number[] {
  return tx
    .all<{ key: number }>("SELECT key FROM code_chunks WHERE file_key = ? AND generation < ?", fileKey, before)
    .map(({ key }) => key);
}

function removeChunks(tx: SqliteTx, keys: readonly number[]): void {
  if (keys.length === 0) return;
  removeRecordVectors(tx, "code", keys);
  for (const key of keys) {
    removeWords(tx, CODE_WORDS, key);
    tx.run("DELETE FROM code_chunks WHERE key = ?", key);
  }
}

function removeSymbols(tx: SqliteTx, fileKey: number): void {
  tx.run("DELETE FROM code_definitions WHERE file_key = ?", fileKey);
  tx.run("DELETE FROM code_references WHERE file_key = ?", fileKey);
}

const NO_FILE = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.file_key = t.file_key)";
const LOST_GENERATION = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.project_id = t.project_id AND f.file_path = t.file_path)";
const LOST_CHUNK = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.file_key = t.file_key AND f.generation = t.generation)";
/** The table in which the full-text index keeps the length of each text: one row for each. */
const LOST_WORDS = "FROM code_words_docsize t WHERE NOT EXISTS (SELECT 1 FROM code_chunks c WHERE c.key = t.id)";
const LOST_VECTORS = `FROM vectors t JOIN vector_spaces s ON s.id = t.space AND s.collection = 'code'
  WHERE NOT EXISTS (SELECT 1 FROM code_chunks c WHERE c.key = t.key)`;
const INCOMPLETE = `FROM indexed_files t LEFT JOIN chunk_generations g ON g.project_id = t.project_id AND g.file_path = t.file_path
  WHERE g.current_generation IS NOT t.generation
     OR g.chunks_count <> (SELECT count(*) FROM code_chunks c JOIN code_words_docsize w ON w.id = c.key
                            WHERE c.file_key = t.file_key AND c.generation = t.generation)`;

export function countOrphans(tx: SqliteTx): CodeOrphans {
  const count = (from: string) => tx.get<{ count: number }>(`SELECT count(*) AS count ${from}`)!.count;
  return {
    rows:
      count(`FROM code_chunks t WHERE ${LOST_CHUNK}`) +
      count(`FROM code_definitions t WHERE ${NO_FILE}`) +
      count(`FROM code_references t WHERE ${NO_FILE}`) +
      count(`FROM chunk_generations t WHERE ${LOST_GENERATION}`) +
      count(INCOMPLETE),
    words: count(LOST_WORDS),
    vectors: count(LOST_VECTORS),
  };
}

export function removeOrphans(tx: SqliteTx, projectId: string): CodeOrphans {
  const found = countOrphans(tx);
  if (found.rows + found.words + found.vectors === 0) return found;
  for (const { file_key, file_path } of tx.all<{ file_key: number; file_path: string }>(`SELECT t.file_key, t.file_path ${INCOMPLETE}`))
    removeFile(tx, projectId, file_path, file_key);
  removeChunks(
    tx,
    tx.all<{ key: number }>(`SELECT t.key FROM code_chunks t WHERE ${LOST_CHUNK}`).map(({ key }) => key),
  );
  tx.run(`DELETE FROM code_definitions AS t WHERE ${NO_FILE}`);
  tx.run(`DELETE FROM code_references AS t WHERE ${NO_FILE}`);
  tx.run(`DELETE FROM chunk_generations AS t WHERE ${LOST_GENERATION}`);
  for (const { id } of tx.all<{ id: number }>(`SELECT t.id ${LOST_WORDS}`)) removeWords(tx, CODE_WORDS, id);
  for (const { key, version_id } of tx.all<{ key: number; version_id: number }>(`SELECT t.key, s.version_id ${LOST_VECTORS}`))
    vectorWriter(tx).remove("code", version_id, [key]);
  return found;
}

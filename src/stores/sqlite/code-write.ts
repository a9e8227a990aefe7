import { chunkId } from "../../model/code-index.ts";
import type { CodeBatch, CommitResult, FileWrite } from "../../ports/code-store.ts";
import { chunkWords, packSymbols, unpackOutline } from "../../text/code/index-text.ts";
import { packTexts, unpack } from "../../text/code/text-blocks.ts";
import type { SqliteTx } from "./driver.ts";
import { putVectorsByVersion, removeRecordVectors } from "./embeddings.ts";
import { addWords, putWords, removeWords } from "./words.ts";

export const CODE_WORDS = "code_words";

interface FileRow {
  file_key: number;
  content_hash: string;
}

/** One batch. Vectors come and go at its end, all together: their index is then touched once. */
interface Step {
  readonly tx: SqliteTx;
  readonly projectId: string;
  readonly generation: number;
  readonly at: string;
  readonly gone: number[];
  readonly vectors: Map<number, { key: number; vector: Float32Array }[]>;
}

export function commitCode(tx: SqliteTx, projectId: string, batch: CodeBatch): CommitResult {
  const { last: generation } = tx.get<{ last: number }>("UPDATE code_generation SET last = last + 1 WHERE id = 1 RETURNING last")!;
  const step: Step = { tx, projectId, generation, at: batch.at, gone: [], vectors: new Map() };
  const moved = (batch.moves ?? []).filter((move) => moveFile(step, move)).map(({ to }) => to);
  const removed: string[] = [];
  for (const { path, contentHash, movedTo } of batch.removes ?? []) {
    const file = fileAt(tx, projectId, path);
    if (file?.content_hash !== contentHash) continue;
    step.gone.push(...removeFile(tx, projectId, path, file.file_key));
    if (movedTo !== undefined) recordMove(step, path, movedTo);
    removed.push(path);
  }
  for (const file of batch.files ?? []) writeFile(step, file);
  removeRecordVectors(tx, "code", step.gone);
  putVectorsByVersion(tx, "code", step.vectors);
  return { generation, moved, removed };
}

function writeFile(step: Step, file: FileWrite): void {
  const { tx, projectId, generation, at } = step;
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
  putChunks(step, fileKey, file);
  const gone = tx.all<{ key: number }>("SELECT key FROM code_chunks WHERE file_key = ? AND generation < ?", fileKey, generation);
  step.gone.push(...removeChunks(tx, gone));
  putSymbols(tx, fileKey, file);
}

function putChunks({ tx, projectId, generation, vectors }: Step, fileKey: number, { path, chunks }: FileWrite): void {
  const { blocks, places } = packTexts(chunks.map(({ chunk }) => chunk.text));
  const textKeys = blocks.map((body) => tx.run("INSERT INTO code_texts (body) VALUES (?)", body).lastId);
  for (const [place, { chunk, vectors: own }] of chunks.entries()) {
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
    addWords(tx, CODE_WORDS, key, chunkWords(path, chunk));
    for (const { versionId, vector } of own) {
      const entries = vectors.get(versionId);
      if (entries) entries.push({ key, vector });
      else vectors.set(versionId, [{ key, vector }]);
    }
  }
}

function putSymbols(tx: SqliteTx, fileKey: number, { symbols }: FileWrite): void {
  removeSymbols(tx, fileKey);
  const { names, outline } = packSymbols(symbols);
  tx.run("INSERT INTO code_outlines (file_key, body) VALUES (?, ?)", fileKey, outline);
  for (const { name, defined, used, positions } of names)
    tx.run(
      "INSERT INTO code_symbols (name, file_key, defined, used, positions) VALUES (?, ?, ?, ?, ?)",
      name,
      fileKey,
      defined,
      used,
      positions,
    );
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
  const textOf = textReader(tx);
  const chunks = tx.all<TextColumns & { key: number; chunk_index: number; name: string | null; parents: string; defines: string }>(
    "SELECT key, chunk_index, name, parents, defines, text_key, text_start, text_length FROM code_chunks WHERE file_key = ?",
    file.file_key,
  );
  // The key stays, and with it the vectors; the words change with the path.
  for (const { key, chunk_index: index, name, parents, defines, ...place } of chunks) {
    tx.run("UPDATE code_chunks SET id = ?, generation = ? WHERE key = ?", chunkId(projectId, to, index, generation), generation, key);
    const names = { ...(name !== null && { name }), parents: JSON.parse(parents) as string[], defines: JSON.parse(defines) as string[] };
    putWords(tx, CODE_WORDS, key, chunkWords(to, { ...names, text: textOf(place) }));
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

/** Gives the keys of the chunks that it had, whose vectors are still there. */
export function removeFile(tx: SqliteTx, projectId: string, path: string, fileKey: number): number[] {
  const gone = removeChunks(tx, tx.all<{ key: number }>("SELECT key FROM code_chunks WHERE file_key = ?", fileKey));
  removeSymbols(tx, fileKey);
  tx.run("DELETE FROM chunk_generations WHERE project_id = ? AND file_path = ?", projectId, path);
  tx.run("DELETE FROM indexed_files WHERE file_key = ?", fileKey);
  return gone;
}

/** Chunks share their texts only with chunks of the same file and generation, which go with them. Their vectors are still there afterwards. */
export function removeChunks(tx: SqliteTx, chunks: readonly { readonly key: number }[]): number[] {
  const texts = new Set<number>();
  for (const { key } of chunks) {
    const { text_key } = tx.get<{ text_key: number }>("DELETE FROM code_chunks WHERE key = ? RETURNING text_key", key)!;
    removeWords(tx, CODE_WORDS, key);
    texts.add(text_key);
  }
  for (const key of texts) tx.run("DELETE FROM code_texts WHERE key = ?", key);
  return chunks.map(({ key }) => key);
}

/** The outline says which names the file has: there is no index by file, which would hold every name a second time. */
function removeSymbols(tx: SqliteTx, fileKey: number): void {
  const outline = tx.get<{ body: Uint8Array }>("DELETE FROM code_outlines WHERE file_key = ? RETURNING body", fileKey);
  if (!outline) return;
  let names: readonly string[];
  try {
    ({ names } = unpackOutline(outline.body));
  } catch {
    tx.run("DELETE FROM code_symbols WHERE file_key = ?", fileKey); // damaged: slow, and right
    return;
  }
  for (const name of names) tx.run("DELETE FROM code_symbols WHERE name = ? AND file_key = ?", name, fileKey);
}

export interface TextColumns {
  readonly text_key: number;
  readonly text_start: number;
  readonly text_length: number;
}

/** Reads texts within one snapshot; a block that several chunks share is unpacked once. */
export function textReader(tx: SqliteTx): (place: TextColumns) => string {
  const blocks = new Map<number, string>();
  return ({ text_key, text_start, text_length }) => {
    let block = blocks.get(text_key);
    if (block === undefined) {
      block = unpack(tx.get<{ body: Uint8Array }>("SELECT body FROM code_texts WHERE key = ?", text_key)?.body ?? new Uint8Array());
      blocks.set(text_key, block);
    }
    return block.slice(text_start, text_start + text_length);
  };
}

import { type CodeOrphans, chunkId } from "../../model/code-index.ts";
import type { CodeBatch, CommitResult, FileWrite } from "../../ports/code-store.ts";
import { chunkWords, packSymbols } from "../../text/code/index-text.ts";
import type { PostgresTx } from "./driver.ts";
import { toPgvector } from "./pgvector.ts";
import type { ProjectTables } from "./project-tables.ts";
import { toTimestamp } from "./time.ts";
import { wordsText } from "./words.ts";

interface Step {
  readonly tx: PostgresTx;
  readonly tables: ProjectTables;
  readonly projectId: string;
  readonly generation: number;
  readonly at: string;
}

interface FileRow {
  file_key: number;
  content_hash: string;
}

export async function commitCode(tx: PostgresTx, tables: ProjectTables, projectId: string, batch: CodeBatch): Promise<CommitResult> {
  // A version is made current only when no writer of chunks is under way, since it must have a vector for each of them.
  await tx.run("LOCK TABLE vectors IN ROW EXCLUSIVE MODE");
  // The counter's row is also the queue of those who write: one commit after the other, so that none can block another in a ring.
  const counter = await tx.get<{ last: number }>("UPDATE code_generation SET last = last + 1 WHERE id = 1 RETURNING last");
  const generation = counter!.last;
  const step: Step = { tx, tables, projectId, generation, at: toTimestamp(batch.at) };
  const moved: string[] = [];
  for (const move of batch.moves ?? []) if (await moveFile(step, move)) moved.push(move.to);
  const removed: string[] = [];
  for (const { path, contentHash, movedTo } of batch.removes ?? []) {
    const file = await fileAt(step, path);
    if (file?.content_hash !== contentHash) continue;
    await removeFile(tx, file.file_key);
    if (movedTo !== undefined) await recordMove(step, path, movedTo);
    removed.push(path);
  }
  for (const file of batch.files ?? []) await writeFile(step, file);
  return { generation, moved, removed };
}

async function writeFile(step: Step, file: FileWrite): Promise<void> {
  const { tx, projectId, generation, at } = step;
  const { path, contentHash, language, bytes, lines, notice, chunks } = file;
  const written = await tx.get<FileRow>(
    `INSERT INTO indexed_files (project_id, file_path, content_hash, generation, indexed_at, language, bytes, lines, notice) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
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
  );
  const fileKey = written!.file_key;
  await tx.run(
    `INSERT INTO chunk_generations (project_id, file_path, current_generation, chunks_count, updated_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (project_id, file_path) DO UPDATE SET current_generation = excluded.current_generation,
       chunks_count = excluded.chunks_count, updated_at = excluded.updated_at`,
    projectId,
    path,
    generation,
    chunks.length,
    at,
  );
  const each = <T>(value: (chunk: (typeof chunks)[number]["chunk"]) => T) => chunks.map(({ chunk }) => value(chunk));
  const ids = each(({ index }) => chunkId(projectId, path, index, generation));
  await tx.run(
    `INSERT INTO code_chunks (file_key, generation, id, chunk_index, kind, name, parents, defines, start_line, end_line, text, words)
     SELECT $1, $2, g.id, g.chunk_index, g.kind, g.name, g.parents, g.defines, g.start_line, g.end_line, g.text, to_tsvector('english', g.words)
       FROM unnest($3::text[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::int[], $11::text[], $12::text[])
            AS g (id, chunk_index, kind, name, parents, defines, start_line, end_line, text, words)`,
    fileKey,
    generation,
    ids,
    each(({ index }) => index),
    each(({ kind }) => kind),
    each(({ name }) => name ?? null),
    each(({ parents }) => JSON.stringify(parents)),
    each(({ defines }) => JSON.stringify(defines)),
    each(({ startLine }) => startLine),
    each(({ endLine }) => endLine),
    each(({ text }) => text),
    each((chunk) => wordsText(chunkWords(path, chunk))),
  );
  await putVectors(step, ids, chunks);
  await removeChunks(tx, "SELECT key FROM code_chunks WHERE file_key = $1 AND generation < $2", fileKey, generation);
  await removeSymbols(tx, fileKey);
  await putSymbols(tx, fileKey, file);
}

/** Versions that were dropped meanwhile are left out. */
async function putVectors({ tx, tables }: Step, ids: readonly string[], chunks: FileWrite["chunks"]): Promise<void> {
  const entries = chunks.flatMap(({ vectors }, index) => vectors.map(({ versionId, vector }) => ({ id: ids[index]!, versionId, vector })));
  if (entries.length === 0) return;
  await tx.run(
    `INSERT INTO vectors (collection, version_id, key, vector)
     SELECT e.collection, e.version_id, c.key, g.vector::${tables.pgvector}.vector FROM unnest($1::text[], $2::int[], $3::text[]) AS g (id, version_id, vector)
       JOIN embedding_versions e ON e.version_id = g.version_id AND e.collection = 'code' JOIN code_chunks c ON c.id = g.id`,
    entries.map(({ id }) => id),
    entries.map(({ versionId }) => versionId),
    entries.map(({ vector }) => toPgvector(vector)),
  );
}

async function putSymbols(tx: PostgresTx, fileKey: number, { symbols }: FileWrite): Promise<void> {
  const { definitions, references } = packSymbols(symbols);
  if (definitions.length > 0)
    await tx.run(
      `INSERT INTO code_definitions (file_key, name, kind, line, col, parents, place)
       SELECT $1, g.name, g.kind, g.line, g.col, g.parents, g.place
         FROM unnest($2::text[], $3::text[], $4::int[], $5::int[], $6::text[], $7::int[]) AS g (name, kind, line, col, parents, place)`,
      fileKey,
      definitions.map(({ name }) => name),
      definitions.map(({ kind }) => kind),
      definitions.map(({ line }) => line),
      definitions.map(({ column }) => column),
      definitions.map(({ parents }) => JSON.stringify(parents)),
      definitions.map((_, place) => place),
    );
  if (references.length > 0)
    await tx.run(
      `INSERT INTO code_references (file_key, name, count, positions)
       SELECT $1, g.name, g.count, decode(g.positions, 'hex') FROM unnest($2::text[], $3::int[], $4::text[]) AS g (name, count, positions)`,
      fileKey,
      references.map(({ name }) => name),
      references.map(({ count }) => count),
      references.map(({ positions }) => Buffer.from(positions).toString("hex")),
    );
}

async function moveFile(step: Step, { from, to, contentHash }: { from: string; to: string; contentHash: string }): Promise<boolean> {
  const { tx, projectId, generation, at } = step;
  const file = await fileAt(step, from);
  if (file?.content_hash !== contentHash || (await fileAt(step, to))) return false;
  await tx.run(
    "UPDATE indexed_files SET file_path = $2, generation = $3, indexed_at = $4 WHERE file_key = $1",
    file.file_key,
    to,
    generation,
    at,
  );
  await tx.run(
    "UPDATE chunk_generations SET file_path = $3, current_generation = $4, updated_at = $5 WHERE project_id = $1 AND file_path = $2",
    projectId,
    from,
    to,
    generation,
    at,
  );
  const chunks = await tx.all<{ key: number; chunk_index: number; name: string | null; parents: string; defines: string; text: string }>(
    "SELECT key, chunk_index, name, parents, defines, text FROM code_chunks WHERE file_key = $1",
    file.file_key,
  );
  // The key stays, and with it the vectors; the words change with the path.
  await tx.run(
    `UPDATE code_chunks c SET id = g.id, generation = $1, words = to_tsvector('english', g.words)
       FROM unnest($2::bigint[], $3::text[], $4::text[]) AS g (key, id, words) WHERE c.key = g.key`,
    generation,
    chunks.map(({ key }) => key),
    chunks.map(({ chunk_index }) => chunkId(projectId, to, chunk_index, generation)),
    chunks.map(({ name, parents, defines, text }) => {
      const names = { ...(name !== null && { name }), parents: JSON.parse(parents) as string[], defines: JSON.parse(defines) as string[] };
      return wordsText(chunkWords(to, { ...names, text }));
    }),
  );
  await recordMove(step, from, to);
  return true;
}

async function recordMove({ tx, projectId, at }: Step, from: string, to: string): Promise<void> {
  await tx.run("INSERT INTO file_moves (project_id, old_path, new_path, detected_at) VALUES ($1, $2, $3, $4)", projectId, from, to, at);
}

function fileAt({ tx, projectId }: Step, path: string): Promise<FileRow | undefined> {
  return tx.get<FileRow>("SELECT file_key, content_hash FROM indexed_files WHERE project_id = $1 AND file_path = $2", projectId, path);
}

async function removeFile(tx: PostgresTx, fileKey: number): Promise<void> {
  await removeChunks(tx, "SELECT key FROM code_chunks WHERE file_key = $1", fileKey);
  await removeSymbols(tx, fileKey);
  await tx.run(
    "DELETE FROM chunk_generations g USING indexed_files f WHERE f.file_key = $1 AND g.project_id = f.project_id AND g.file_path = f.file_path",
    fileKey,
  );
  await tx.run("DELETE FROM indexed_files WHERE file_key = $1", fileKey);
}

/** `keys`: a query for the keys of the chunks. */
async function removeChunks(tx: PostgresTx, keys: string, ...params: readonly number[]): Promise<void> {
  await tx.run(`DELETE FROM vectors WHERE collection = 'code' AND key IN (${keys})`, ...params);
  await tx.run(`DELETE FROM code_chunks WHERE key IN (${keys})`, ...params);
}

async function removeSymbols(tx: PostgresTx, fileKey: number): Promise<void> {
  await tx.run("DELETE FROM code_definitions WHERE file_key = $1", fileKey);
  await tx.run("DELETE FROM code_references WHERE file_key = $1", fileKey);
}

const NO_FILE = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.file_key = t.file_key)";
const LOST_GENERATION = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.project_id = t.project_id AND f.file_path = t.file_path)";
const LOST_CHUNK = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.file_key = t.file_key AND f.generation = t.generation)";
const LOST_VECTOR = "t.collection = 'code' AND NOT EXISTS (SELECT 1 FROM code_chunks c WHERE c.key = t.key)";
const INCOMPLETE = `FROM indexed_files t LEFT JOIN chunk_generations g ON g.project_id = t.project_id AND g.file_path = t.file_path
  WHERE g.current_generation IS DISTINCT FROM t.generation
     OR g.chunks_count <> (SELECT count(*) FROM code_chunks c WHERE c.file_key = t.file_key AND c.generation = t.generation)`;

export async function countOrphans(tx: PostgresTx): Promise<CodeOrphans> {
  const count = async (from: string) => (await tx.get<{ count: number }>(`SELECT count(*) AS count ${from}`))!.count;
  return {
    rows:
      (await count(`FROM code_chunks t WHERE ${LOST_CHUNK}`)) +
      (await count(`FROM code_definitions t WHERE ${NO_FILE}`)) +
      (await count(`FROM code_references t WHERE ${NO_FILE}`)) +
      (await count(`FROM chunk_generations t WHERE ${LOST_GENERATION}`)) +
      (await count(INCOMPLETE)),
    words: 0, // a column of the chunks
    vectors: await count(`FROM vectors t WHERE ${LOST_VECTOR}`),
  };
}

export async function removeOrphans(tx: PostgresTx): Promise<CodeOrphans> {
  await tx.run("LOCK TABLE vectors IN ROW EXCLUSIVE MODE");
  await tx.run("UPDATE code_generation SET last = last WHERE id = 1"); // waits for commits under way, and lets none begin
  const found = await countOrphans(tx);
  if (found.rows + found.vectors === 0) return found;
  for (const { file_key } of await tx.all<{ file_key: number }>(`SELECT t.file_key ${INCOMPLETE}`)) await removeFile(tx, file_key);
  await removeChunks(tx, `SELECT t.key FROM code_chunks t WHERE ${LOST_CHUNK}`);
  await tx.run(`DELETE FROM code_definitions t WHERE ${NO_FILE}`);
  await tx.run(`DELETE FROM code_references t WHERE ${NO_FILE}`);
  await tx.run(`DELETE FROM chunk_generations t WHERE ${LOST_GENERATION}`);
  await tx.run(`DELETE FROM vectors t WHERE ${LOST_VECTOR}`);
  return found;
}

import { chunkId } from "../../../../model/code-index.ts";
import type { PackedSymbols } from "../../../../model/packed-file.ts";
import type { CodeBatch, CommitResult, PackedFileWrite } from "../../../../ports/code-store.ts";
import { chunkTerms, unpackNames } from "../../../../text/index-text.ts";
import { blocksOf } from "../../../../text/pack-file.ts";
import { codeTerms } from "../../../../text/terms.ts";
import { type TextColumns, textReader } from "../../../rows/chunk-row.ts";
import { toPacked } from "../../../rows/file-write.ts";
import type { PostgresTx } from "../../driver/driver.ts";
import { toPgvector } from "../../driver/pgvector.ts";
import { toTimestamp } from "../../driver/time.ts";
import { tsvectorOf } from "../full-text.ts";
import type { ProjectTables } from "../project-tables.ts";

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
  // Switching the current version waits for this lock: the version must have a vector for every chunk.
  await tx.run("LOCK TABLE vectors IN ROW EXCLUSIVE MODE");
  // Locking the counter's row serializes commits, so that commits cannot deadlock.
  const counter = await tx.get<{ last: number }>("UPDATE code_generation SET last = last + 1 WHERE id = 1 RETURNING last");
  const generation = counter!.last;
  const step: Step = { tx, tables, projectId, generation, at: toTimestamp(batch.at) };
  const renamed: string[] = [];
  for (const rename of batch.renames ?? []) if (await renameFile(step, rename)) renamed.push(rename.to);
  const removed: string[] = [];
  for (const { path, contentHash, renamedTo } of batch.removes ?? []) {
    const file = await fileAt(step, path);
    if (file?.content_hash !== contentHash) continue;
    await removeFile(tx, file.file_key);
    if (renamedTo !== undefined) await recordRename(step, path, renamedTo);
    removed.push(path);
  }
  for (const file of batch.files ?? []) await writeFile(step, toPacked(file));
  return { generation, renamed, removed };
}

/** Waits for commits in progress and blocks new ones. Takes the locks in the same order as a commit. */
export async function waitForCommits(tx: PostgresTx): Promise<void> {
  await tx.run("LOCK TABLE vectors IN ROW EXCLUSIVE MODE");
  await tx.run("UPDATE code_generation SET last = last WHERE id = 1");
}

async function writeFile(step: Step, file: PackedFileWrite): Promise<void> {
  const { tx, projectId, generation, at } = step;
  const { path, contentHash, language, bytes, lines, notice, packed, vectors } = file;
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
    packed.outlines.length,
    at,
  );
  const ids = await putChunks(step, fileKey, file);
  await putVectors(step, ids, vectors);
  await removeChunks(tx, "SELECT key FROM code_chunks WHERE file_key = $1 AND generation < $2", fileKey, generation);
  await removeSymbols(tx, fileKey);
  await putSymbols(tx, fileKey, packed.symbols);
}

/** Returns the ids of the chunks. */
async function putChunks({ tx, projectId, generation }: Step, fileKey: number, { path, packed }: PackedFileWrite): Promise<string[]> {
  const { outlines, places, terms } = packed;
  const texts = await tx.all<{ key: number }>(
    `INSERT INTO code_texts (body) SELECT decode(g.body, 'hex') FROM unnest($1::text[]) WITH ORDINALITY AS g (body, place) ORDER BY g.place RETURNING key`,
    blocksOf(packed).map(toHex),
  );
  const textKeys = texts.map(({ key }) => key).sort((a, b) => a - b);
  const each = <T>(value: (chunk: (typeof outlines)[number]) => T) => outlines.map(value);
  const ids = each(({ index }) => chunkId(projectId, path, index, generation));
  await tx.run(
    `INSERT INTO code_chunks (file_key, generation, id, chunk_index, kind, name, parents, defines, start_line, end_line, text_key, text_start, text_length, terms)
     SELECT $1, $2, g.id, g.chunk_index, g.kind, g.name, g.parents, g.defines, g.start_line, g.end_line, g.text_key, g.text_start, g.text_length,
            g.terms::tsvector
       FROM unnest($3::text[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::int[], $11::bigint[], $12::int[], $13::int[], $14::text[])
            AS g (id, chunk_index, kind, name, parents, defines, start_line, end_line, text_key, text_start, text_length, terms)`,
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
    places.map(({ block }) => textKeys[block]!),
    places.map(({ start }) => start),
    places.map(({ length }) => length),
    terms.map((some) => tsvectorOf(some === "" ? [] : some.split(" "))),
  );
  return ids;
}

/** Skips versions that were dropped meanwhile. */
async function putVectors({ tx, tables }: Step, ids: readonly string[], all: PackedFileWrite["vectors"]): Promise<void> {
  const entries = all.flatMap((vectors, index) => vectors.map(({ versionId, vector }) => ({ id: ids[index]!, versionId, vector })));
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

async function putSymbols(tx: PostgresTx, fileKey: number, symbols: PackedSymbols): Promise<void> {
  await tx.run("INSERT INTO code_outlines (file_key, body) VALUES ($1, decode($2, 'hex'))", fileKey, toHex(symbols.outline));
  const names = unpackNames(symbols);
  if (names.length === 0) return;
  await tx.run(
    `INSERT INTO code_symbols (file_key, name, defined, used, positions)
     SELECT $1, g.name, g.defined, g.used, decode(g.positions, 'hex')
       FROM unnest($2::text[], $3::int[], $4::int[], $5::text[]) AS g (name, defined, used, positions)`,
    fileKey,
    names.map(({ name }) => name),
    names.map(({ defined }) => defined),
    names.map(({ used }) => used),
    names.map(({ positions }) => toHex(positions)),
  );
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

async function renameFile(step: Step, { from, to, contentHash }: { from: string; to: string; contentHash: string }): Promise<boolean> {
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
  const chunks = await tx.all<TextColumns & { key: number; chunk_index: number; name: string | null; parents: string; defines: string }>(
    "SELECT key, chunk_index, name, parents, defines, text_key, text_start, text_length FROM code_chunks WHERE file_key = $1",
    file.file_key,
  );
  const textOf = await readTexts(tx, chunks);
  // The key stays the same, and so do the vectors; the full-text terms change with the path.
  await tx.run(
    `UPDATE code_chunks c SET id = g.id, generation = $1, terms = g.terms::tsvector
       FROM unnest($2::bigint[], $3::text[], $4::text[]) AS g (key, id, terms) WHERE c.key = g.key`,
    generation,
    chunks.map(({ key }) => key),
    chunks.map(({ chunk_index }) => chunkId(projectId, to, chunk_index, generation)),
    chunks.map(({ name, parents, defines, ...place }) => {
      const names = { ...(name !== null && { name }), parents: JSON.parse(parents) as string[], defines: JSON.parse(defines) as string[] };
      return tsvectorOf(codeTerms(chunkTerms(to, { ...names, text: textOf(place) })));
    }),
  );
  await recordRename(step, from, to);
  return true;
}

async function recordRename({ tx, projectId, at }: Step, from: string, to: string): Promise<void> {
  await tx.run("INSERT INTO file_moves (project_id, old_path, new_path, detected_at) VALUES ($1, $2, $3, $4)", projectId, from, to, at);
}

function fileAt({ tx, projectId }: Step, path: string): Promise<FileRow | undefined> {
  return tx.get<FileRow>("SELECT file_key, content_hash FROM indexed_files WHERE project_id = $1 AND file_path = $2", projectId, path);
}

export async function removeFile(tx: PostgresTx, fileKey: number): Promise<void> {
  await removeChunks(tx, "SELECT key FROM code_chunks WHERE file_key = $1", fileKey);
  await removeSymbols(tx, fileKey);
  await tx.run(
    "DELETE FROM chunk_generations g USING indexed_files f WHERE f.file_key = $1 AND g.project_id = f.project_id AND g.file_path = f.file_path",
    fileKey,
  );
  await tx.run("DELETE FROM indexed_files WHERE file_key = $1", fileKey);
}

/** Removes the chunks whose keys the query `keys` returns, with their texts. Only chunks of the same file and generation share texts. */
export async function removeChunks(tx: PostgresTx, keys: string, ...params: readonly number[]): Promise<void> {
  await tx.run(`DELETE FROM vectors WHERE collection = 'code' AND key IN (${keys})`, ...params);
  await tx.run(`DELETE FROM code_texts WHERE key IN (SELECT text_key FROM code_chunks WHERE key IN (${keys}))`, ...params);
  await tx.run(`DELETE FROM code_chunks WHERE key IN (${keys})`, ...params);
}

async function removeSymbols(tx: PostgresTx, fileKey: number): Promise<void> {
  await tx.run("DELETE FROM code_symbols WHERE file_key = $1", fileKey);
  await tx.run("DELETE FROM code_outlines WHERE file_key = $1", fileKey);
}

/** Reads the blocks of these chunks and returns the function that finds the text of each in them. */
export async function readTexts(tx: PostgresTx, places: readonly TextColumns[]): Promise<(place: TextColumns) => string> {
  const keys = [...new Set(places.map(({ text_key }) => text_key))];
  const rows = await tx.all<{ key: number; body: Uint8Array }>("SELECT key, body FROM code_texts WHERE key = ANY ($1::bigint[])", keys);
  const bodies = new Map(rows.map(({ key, body }) => [key, body]));
  return textReader((key) => bodies.get(key));
}

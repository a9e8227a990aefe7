import { closeSync, openSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { chunkId } from "../../../../model/code-index.ts";
import { waitLimitMs, yieldToCalls } from "../../../../scheduling/calls.ts";
import { postResult } from "../../../../scheduling/run-in-thread.ts";
import { inodeOf, openSqlite, type SqliteTx } from "../../driver/driver.ts";
import { loadEngine } from "../../driver/engine.ts";
import { rebuild } from "../../vectors/rebuild.ts";
import { removeVectors } from "../embeddings.ts";
import { codeSchema } from "./schema.ts";
import type { Seeded, SeedOrder } from "./seed.ts";
import { CODE_FTS, removeFile } from "./write.ts";

interface FileRow {
  readonly file_key: number;
  readonly file_path: string;
  readonly content_hash: string;
  readonly notice: string | null;
}

const order = workerData as SeedOrder;
await postResult(() => copyIndex(order));

/** Copies an index for another project, as it is at one moment. */
async function copyIndex({ donor, copy, ...seed }: SeedOrder): Promise<Seeded> {
  const { DatabaseSync } = await loadEngine();
  const source = new DatabaseSync(donor, { readOnly: true, timeout: waitLimitMs() });
  try {
    closeSync(openSync(copy, "wx", 0o600));
    source.prepare("VACUUM INTO ?").run(copy); // a backup would start again with each commit of another process
  } finally {
    source.close();
  }
  const inode = inodeOf(copy);
  const files = await assignCopy(copy, seed);
  if (files === 0 || inodeOf(copy) !== inode) return { files: 0, inode };
  // Nothing of files that the project does not have may stay in free pages: the other project may be deleted.
  const connection = new DatabaseSync(copy, { timeout: waitLimitMs() });
  try {
    connection.exec("PRAGMA synchronous = FULL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    connection.close();
  }
  return { files, inode };
}

async function assignCopy(copy: string, seed: Omit<SeedOrder, "donor" | "copy">): Promise<number> {
  const database = await openSqlite({ path: copy, schema: codeSchema, mustExist: true });
  try {
    return await database.write((tx) => assignTo(tx, seed));
  } finally {
    database.close(); // brings the write-ahead log into the file
  }
}

/** Makes the copy the index of a project: removes files that the project does not have, and computes the ids of all chunks again. */
function assignTo(tx: SqliteTx, { projectId, files, at }: Omit<SeedOrder, "donor" | "copy">): number {
  // What another project recorded about itself, and its place in an external vector index.
  tx.exec("DELETE FROM index_reports; DELETE FROM file_moves; DELETE FROM vector_index; DELETE FROM vector_outbox");
  tx.run("UPDATE project_info SET project_id = ?, created_at = ?", projectId, at);
  const hashes = new Map(files.map(({ path, contentHash }) => [path, contentHash]));
  const rows = tx.all<FileRow>("SELECT file_key, file_path, content_hash, notice FROM indexed_files");
  const kept = rows.filter(({ file_path, content_hash, notice }) => notice === null && hashes.get(file_path) === content_hash);
  const keys = new Set(kept.map(({ file_key }) => file_key));
  const foreign = rows.filter(({ file_key }) => !keys.has(file_key));
  const owners = tx.all<{ project_id: string }>("SELECT DISTINCT project_id FROM indexed_files").map(({ project_id }) => project_id);
  const removed = foreign.flatMap(({ file_key, file_path }) => owners.flatMap((owner) => removeFile(tx, owner, file_path, file_key)));
  removeVectors(tx, "code", removed);
  forgetRemoved(tx); // also what the other project removed earlier
  tx.run("UPDATE indexed_files SET project_id = ?, indexed_at = ?", projectId, at);
  tx.run("UPDATE chunk_generations SET project_id = ?, updated_at = ?", projectId, at);
  withoutOutbox(tx, () => {
    for (const { file_key, file_path } of kept) assignChunks(tx, projectId, file_key, file_path);
  });
  return kept.length;
}

/** Runs without the trigger that records new ids for an external vector index: the copy has none yet, and the trigger takes 40 % of the time. */
function withoutOutbox(tx: SqliteTx, work: () => void): void {
  const { sql } = tx.get<{ sql: string }>("SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = 'code_chunks_outbox'")!;
  tx.exec("DROP TRIGGER code_chunks_outbox");
  work();
  tx.exec(sql);
}

function assignChunks(tx: SqliteTx, projectId: string, fileKey: number, path: string): void {
  yieldToCalls();
  const chunks = tx.all<{ key: number; chunk_index: number; generation: number }>(
    "SELECT key, chunk_index, generation FROM code_chunks WHERE file_key = ?",
    fileKey,
  );
  for (const { key, chunk_index: index, generation } of chunks)
    tx.run("UPDATE code_chunks SET id = ? WHERE key = ?", chunkId(projectId, path, index, generation), key);
}

/** Writes the full-text index and the codes again: both keep parts of removed files until they are merged. */
function forgetRemoved(tx: SqliteTx): void {
  tx.run(`INSERT INTO ${CODE_FTS} (${CODE_FTS}) VALUES ('optimize')`);
  for (const collection of tx.all<{ id: number; dimension: number }>("SELECT id, dimension FROM vector_collections"))
    rebuild(tx, collection);
}

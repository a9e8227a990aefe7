import { type CodeBatch, type CommitResult, STEP_CHUNKS } from "../../../../ports/code-store.ts";
import type { SqliteDatabase, SqliteTx } from "../../driver/driver.ts";
import { type FileRows, rowsOf } from "./rows.ts";
import { type Commit, commitCode, insertChunks, nextGeneration, removeChunks, type Staged } from "./write.ts";

/** What a process that dies leaves behind of this, the next one removes. */
const LAZILY = { derived: true } as const;

/**
 * Commits a batch. Readers see all of it or nothing, and yet nobody waits long to write: the chunks of a long file are inserted
 * before, a few at a time, under a generation that the file is not at; the commit moves the file to it; and the chunks that it had
 * are deleted after, a few at a time as well.
 */
export async function commitBatch(db: SqliteDatabase, projectId: string, batch: CodeBatch): Promise<CommitResult> {
  const files = (batch.files ?? []).map(rowsOf);
  const staged = new Map<FileRows, Staged>();
  const inserted: number[] = [];
  let commit: Commit;
  try {
    for (const rows of files) if (rows.file.chunks.length > STEP_CHUNKS) staged.set(rows, await stage(db, projectId, rows, inserted));
    commit = await db.write((tx) => commitCode(tx, projectId, { ...batch, files, staged }), LAZILY);
  } catch (error) {
    await removeInSteps(db, inserted).catch(() => {}); // the next process does it
    throw error;
  }
  await removeInSteps(db, commit.leftBehind);
  return commit.result;
}

/** `inserted` gets the keys as they come, for whoever has to take them back. */
async function stage(db: SqliteDatabase, projectId: string, rows: FileRows, inserted: number[]): Promise<Staged> {
  const { path, chunks } = rows.file;
  const { fileKey, generation } = await db.write(
    (tx) => ({ fileKey: keyFor(tx, projectId, path), generation: nextGeneration(tx) }),
    LAZILY,
  );
  const keys: number[] = [];
  const textKeys: number[] = [];
  for (let start = 0; start < chunks.length; start += STEP_CHUNKS) {
    const step = { projectId, fileKey, generation, start, end: Math.min(start + STEP_CHUNKS, chunks.length) };
    const done = await db.write((tx) => insertChunks(tx, rows, step, textKeys), LAZILY);
    keys.push(...done.keys);
    inserted.push(...done.keys);
    textKeys.push(...done.textKeys);
  }
  return { fileKey, generation, keys };
}

/** The key of the file at this path; for one that is not there yet, a key that no other will get. */
function keyFor(tx: SqliteTx, projectId: string, path: string): number {
  const known = tx.get<{ file_key: number }>("SELECT file_key FROM indexed_files WHERE project_id = ? AND file_path = ?", projectId, path);
  if (known) return known.file_key;
  const { lastId } = tx.run(
    "INSERT INTO indexed_files (project_id, file_path, content_hash, generation, language, bytes, lines) VALUES (?, ?, ?, 0, '', 0, 0)",
    projectId,
    path,
    "0".repeat(64),
  );
  tx.run("DELETE FROM indexed_files WHERE file_key = ?", lastId);
  return lastId;
}

async function removeInSteps(db: SqliteDatabase, keys: readonly number[]): Promise<void> {
  for (let start = 0; start < keys.length; start += STEP_CHUNKS)
    await db.write((tx) => removeChunks(tx, keys.slice(start, start + STEP_CHUNKS)), LAZILY);
}

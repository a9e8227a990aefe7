import type { CodeOrphans } from "../../../../model/code-index.ts";
import type { PostgresTx } from "../../driver/driver.ts";
import { removeChunks, removeFile, waitForCommits } from "./write.ts";

const NO_FILE = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.file_key = t.file_key)";
const LOST_GENERATION = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.project_id = t.project_id AND f.file_path = t.file_path)";
const LOST_CHUNK = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.file_key = t.file_key AND f.generation = t.generation)";
const LOST_TEXT = "t.key NOT IN (SELECT text_key FROM code_chunks)";
const LOST_VECTOR = "t.collection = 'code' AND NOT EXISTS (SELECT 1 FROM code_chunks c WHERE c.key = t.key)";
const INCOMPLETE = `FROM indexed_files t LEFT JOIN chunk_generations g ON g.project_id = t.project_id AND g.file_path = t.file_path
  WHERE g.current_generation IS DISTINCT FROM t.generation
     OR NOT EXISTS (SELECT 1 FROM code_outlines o WHERE o.file_key = t.file_key)
     OR g.chunks_count <> (SELECT count(*) FROM code_chunks c JOIN code_texts x ON x.key = c.text_key WHERE c.file_key = t.file_key AND c.generation = t.generation)`;

export async function countOrphans(tx: PostgresTx): Promise<CodeOrphans> {
  const count = async (from: string) => (await tx.get<{ count: number }>(`SELECT count(*) AS count ${from}`))!.count;
  return {
    rows:
      (await count(`FROM code_chunks t WHERE ${LOST_CHUNK}`)) +
      (await count(`FROM code_texts t WHERE ${LOST_TEXT}`)) +
      (await count(`FROM code_symbols t WHERE ${NO_FILE}`)) +
      (await count(`FROM code_outlines t WHERE ${NO_FILE}`)) +
      (await count(`FROM chunk_generations t WHERE ${LOST_GENERATION}`)) +
      (await count(INCOMPLETE)),
    terms: 0, // a column of the chunks
    vectors: await count(`FROM vectors t WHERE ${LOST_VECTOR}`),
  };
}

export async function removeOrphans(tx: PostgresTx): Promise<CodeOrphans> {
  await waitForCommits(tx);
  const found = await countOrphans(tx);
  if (found.rows + found.vectors === 0) return found;
  for (const { file_key } of await tx.all<{ file_key: number }>(`SELECT t.file_key ${INCOMPLETE}`)) await removeFile(tx, file_key);
  await removeChunks(tx, `SELECT t.key FROM code_chunks t WHERE ${LOST_CHUNK}`);
  await tx.run(`DELETE FROM code_texts t WHERE ${LOST_TEXT}`);
  await tx.run(`DELETE FROM code_symbols t WHERE ${NO_FILE}`);
  await tx.run(`DELETE FROM code_outlines t WHERE ${NO_FILE}`);
  await tx.run(`DELETE FROM chunk_generations t WHERE ${LOST_GENERATION}`);
  await tx.run(`DELETE FROM vectors t WHERE ${LOST_VECTOR}`);
  return found;
}

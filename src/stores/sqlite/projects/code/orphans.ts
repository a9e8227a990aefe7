import type { CodeOrphans } from "../../../../model/code-index.ts";
import type { SqliteTx } from "../../driver/driver.ts";
import { vectorWriter } from "../../vectors/writer.ts";
import { removeVectors } from "../embeddings.ts";
import { removeTerms } from "../full-text.ts";
import { CODE_FTS, removeChunks, removeFile } from "./write.ts";

const NO_FILE = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.file_key = t.file_key)";
const LOST_GENERATION = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.project_id = t.project_id AND f.file_path = t.file_path)";
const LOST_CHUNK = "NOT EXISTS (SELECT 1 FROM indexed_files f WHERE f.file_key = t.file_key AND f.generation = t.generation)";
const LOST_TEXT = "t.key NOT IN (SELECT text_key FROM code_chunks)";
/** FTS5 keeps the length of each text in this table, one row per text. */
const LOST_TERMS = "FROM code_fts_docsize t WHERE NOT EXISTS (SELECT 1 FROM code_chunks c WHERE c.key = t.id)";
const LOST_VECTORS = `FROM vectors t JOIN vector_collections s ON s.id = t.collection_id AND s.collection = 'code'
  WHERE NOT EXISTS (SELECT 1 FROM code_chunks c WHERE c.key = t.key)`;
const INCOMPLETE = `FROM indexed_files t LEFT JOIN chunk_generations g ON g.project_id = t.project_id AND g.file_path = t.file_path
  WHERE g.current_generation IS NOT t.generation
     OR NOT EXISTS (SELECT 1 FROM code_outlines o WHERE o.file_key = t.file_key)
     OR g.chunks_count <> (SELECT count(*) FROM code_chunks c JOIN code_fts_docsize w ON w.id = c.key JOIN code_texts x ON x.key = c.text_key
                            WHERE c.file_key = t.file_key AND c.generation = t.generation)`;

export function countOrphans(tx: SqliteTx): CodeOrphans {
  const count = (from: string) => tx.get<{ count: number }>(`SELECT count(*) AS count ${from}`)!.count;
  return {
    rows:
      count(`FROM code_chunks t WHERE ${LOST_CHUNK}`) +
      count(`FROM code_texts t WHERE ${LOST_TEXT}`) +
      count(`FROM code_symbols t WHERE ${NO_FILE}`) +
      count(`FROM code_outlines t WHERE ${NO_FILE}`) +
      count(`FROM chunk_generations t WHERE ${LOST_GENERATION}`) +
      count(INCOMPLETE),
    terms: count(LOST_TERMS),
    vectors: count(LOST_VECTORS),
  };
}

export function isNone({ rows, terms, vectors }: CodeOrphans): boolean {
  return rows + terms + vectors === 0;
}

export function removeOrphans(tx: SqliteTx, projectId: string): CodeOrphans {
  const found = countOrphans(tx);
  if (isNone(found)) return found;
  const files = tx.all<{ file_key: number; file_path: string }>(`SELECT t.file_key, t.file_path ${INCOMPLETE}`);
  const gone = files.flatMap(({ file_key, file_path }) => removeFile(tx, projectId, file_path, file_key));
  const lost = tx.all<{ key: number }>(`SELECT t.key FROM code_chunks t WHERE ${LOST_CHUNK}`).map(({ key }) => key);
  gone.push(...removeChunks(tx, lost));
  removeVectors(tx, "code", gone);
  tx.run(`DELETE FROM code_texts AS t WHERE ${LOST_TEXT}`);
  tx.run(`DELETE FROM code_symbols AS t WHERE ${NO_FILE}`);
  tx.run(`DELETE FROM code_outlines AS t WHERE ${NO_FILE}`);
  tx.run(`DELETE FROM chunk_generations AS t WHERE ${LOST_GENERATION}`);
  for (const { id } of tx.all<{ id: number }>(`SELECT t.id ${LOST_TERMS}`)) removeTerms(tx, CODE_FTS, id);
  for (const { key, version_id } of tx.all<{ key: number; version_id: number }>(`SELECT t.key, s.version_id ${LOST_VECTORS}`))
    vectorWriter(tx).remove("code", version_id, [key]);
  return found;
}

import { PIECES_MAX } from "../../../model/stored-record.ts";
import type { PostgresTx } from "../driver/driver.ts";

const MIRRORED = `SELECT k.id, v.version_id, v.vector, k.category, k.subcategory, k.question, k.answer, k.content_hash,
    ((k.successes + 1.0) / (k.uses + 2))::real, k.uses FROM knowledge k JOIN vectors v ON v.key = k.key * ${PIECES_MAX} AND v.collection = 'knowledge'`;
const MIRROR_COLUMNS =
  "template_id, version_id, embedding_vector, category, subcategory, question_text, answer_text, content_hash, success_rate, usage_count";

/** Fills an empty `embedding_records` from the knowledge and its vectors. */
export const FILL_MIRROR = `INSERT INTO embedding_records (${MIRROR_COLUMNS}) ${MIRRORED}`;

/** Counts the rows of `embedding_records` that do not match the knowledge and its vectors. */
export async function mirrorDifferences(tx: PostgresTx): Promise<number> {
  const row = await tx.get<{ wrong: number }>(
    `SELECT (SELECT count(*) FROM (${MIRRORED} EXCEPT SELECT ${MIRROR_COLUMNS} FROM embedding_records) AS lacking) +
            (SELECT count(*) FROM (SELECT ${MIRROR_COLUMNS} FROM embedding_records EXCEPT ${MIRRORED}) AS extra) AS wrong`,
  );
  return row!.wrong;
}

/** Writes the mirror again if it does not match; returns how many rows were wrong. */
export async function repairMirror(tx: PostgresTx): Promise<number> {
  const wrong = await mirrorDifferences(tx);
  if (wrong === 0) return 0;
  await tx.run("DELETE FROM embedding_records");
  await tx.run(FILL_MIRROR);
  return wrong;
}

import type { Checkpoint } from "../../../model/checkpoint.ts";
import type { Knowledge } from "../../../model/knowledge.ts";
import {
  CHECKPOINT_COLUMNS,
  checkpointText,
  countPieces,
  KNOWLEDGE_COLUMNS,
  PIECES_MAX,
  type RawRow,
  readCheckpoint,
  readKnowledge,
  type StoredRecord,
} from "../../../model/stored-record.ts";
import { knowledgeTerms, knowledgeText } from "../../../text/knowledge-text.ts";
import { errorSignature } from "../../../text/normalise-error.ts";
import { recordTerms } from "../../../text/terms.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { vectorWriter } from "../vectors/writer.ts";
import { insertTerms } from "./full-text.ts";
import { columnList } from "./record-rows.ts";

export type Reader = Pick<SqliteTx, "all" | "get">;

/** Data that follows from the records. Every part can be built again from them. */
export interface DerivedPart {
  readonly name: string;
  /** Returns how the part differs from the records; undefined if it matches. */
  problem(tx: Reader): string | undefined;
  rebuild(tx: SqliteTx): void;
}

export const DERIVED_PARTS: readonly DerivedPart[] = [
  fullText("checkpoints", "checkpoint_fts", storedCheckpoints, checkpointTerms),
  fullText("knowledge", "knowledge_fts", storedKnowledge, knowledgeTerms),
  {
    name: "checkpoint_tags",
    problem(tx) {
      const rows = tx.all<{ tag: unknown; folded: unknown; owned: number }>(
        "SELECT tag, folded, EXISTS (SELECT 1 FROM checkpoints r WHERE r.key = checkpoint_key) AS owned FROM checkpoint_tags",
      );
      const wrong = rows.filter(({ tag, folded, owned }) => owned === 0 || (typeof tag === "string" && folded !== tag.toLowerCase()));
      return wrong.length > 0 ? `${wrong.length} rows of checkpoint_tags do not match the checkpoints` : undefined;
    },
    rebuild(tx) {
      tx.run("DELETE FROM checkpoint_tags WHERE checkpoint_key NOT IN (SELECT key FROM checkpoints)");
      for (const { tag } of tx.all<{ tag: string }>("SELECT DISTINCT tag FROM checkpoint_tags WHERE typeof(tag) = 'text'"))
        tx.run("UPDATE checkpoint_tags SET folded = ? WHERE tag = ? AND folded IS NOT ?", tag.toLowerCase(), tag, tag.toLowerCase());
    },
  },
  {
    name: "signatures of remediations",
    problem(tx) {
      const wrong = wrongSignatures(tx).length;
      return wrong > 0 ? `${wrong} signatures of knowledge do not match their questions` : undefined;
    },
    rebuild(tx) {
      for (const { key, signature } of wrongSignatures(tx)) tx.run("UPDATE knowledge SET signature = ? WHERE key = ?", signature, key);
    },
  },
  pieceCounts("checkpoints", storedCheckpoints, checkpointText),
  pieceCounts("knowledge", storedKnowledge, knowledgeText),
  {
    name: "embedding_records",
    problem(tx) {
      const wrong = mirrorDifferences(tx);
      return wrong > 0 ? `${wrong} rows of embedding_records do not match the knowledge and its vectors` : undefined;
    },
    rebuild: fillMirror,
  },
];

const MIRRORED = `SELECT k.id AS template_id, s.version_id, v.vector AS embedding_vector, k.category, k.subcategory, k.question AS question_text,
    k.answer AS answer_text, k.content_hash, (k.successes + 1.0) / (k.uses + 2) AS success_rate, k.uses AS usage_count
  FROM knowledge k JOIN vectors v ON v.key = k.key * ${PIECES_MAX} JOIN vector_collections s ON s.id = v.collection_id AND s.collection = 'knowledge'`;
const MIRROR_COLUMNS =
  "template_id, version_id, embedding_vector, category, subcategory, question_text, answer_text, content_hash, success_rate, usage_count";

/** Fills an empty `embedding_records` from the knowledge and its vectors. */
export const FILL_MIRROR = `INSERT INTO embedding_records (${MIRROR_COLUMNS}) ${MIRRORED}`;

const SAME = MIRROR_COLUMNS.split(", ")
  .map((column) => `m.${column} IS e.${column}`)
  .join(" AND ");
const MIRROR_DIFFERENCES = `SELECT
  (SELECT count(*) FROM (${MIRRORED}) e WHERE NOT EXISTS
    (SELECT 1 FROM embedding_records m WHERE m.template_id = e.template_id AND m.version_id = e.version_id AND ${SAME}
      AND julianday(m.created_at) IS NOT NULL AND julianday(m.updated_at) IS NOT NULL)) +
  (SELECT count(*) FROM embedding_records m WHERE NOT EXISTS
    (SELECT 1 FROM knowledge k JOIN vectors v ON v.key = k.key * ${PIECES_MAX} JOIN vector_collections s ON s.id = v.collection_id AND s.collection = 'knowledge'
      WHERE k.id = m.template_id AND s.version_id = m.version_id)) AS wrong`;

function mirrorDifferences(tx: Reader): number {
  return tx.get<{ wrong: number }>(MIRROR_DIFFERENCES)!.wrong;
}

function fillMirror(tx: SqliteTx): void {
  tx.run("DELETE FROM embedding_records");
  tx.run(FILL_MIRROR);
}

/** Writes the mirror again if it does not match; returns how many rows were wrong. */
export function repairMirror(tx: SqliteTx): number {
  const wrong = mirrorDifferences(tx);
  if (wrong > 0) fillMirror(tx);
  return wrong;
}

function fullText<T extends Checkpoint | Knowledge>(
  table: string,
  index: string,
  stored: (tx: Reader) => Iterable<{ key: number; row: StoredRecord<T> }>,
  textOf: (record: T) => string,
): DerivedPart {
  return {
    name: index,
    problem(tx) {
      const { wrong } = tx.get<{ wrong: number }>(
        `SELECT (SELECT count(*) FROM ${table} WHERE key NOT IN (SELECT id FROM ${index}_docsize)) +
                (SELECT count(*) FROM ${index}_docsize WHERE id NOT IN (SELECT key FROM ${table})) AS wrong`,
      )!;
      return wrong > 0 ? `${wrong} rows of the full-text index ${index} do not match ${table}` : undefined;
    },
    rebuild(tx) {
      tx.run(`INSERT INTO ${index} (${index}) VALUES ('rebuild')`); // a row can only be deleted from an index that matches its own content
      tx.run(`DELETE FROM ${index}`);
      for (const { key, row } of stored(tx)) if ("record" in row) insertTerms(tx, index, key, recordTerms(textOf(row.record)).join(" "));
    },
  };
}

/** The number of pieces of each record, and no vector beyond it: a search would find a text that the record does not have. */
function pieceCounts<T extends Checkpoint | Knowledge>(
  table: "checkpoints" | "knowledge",
  stored: (tx: Reader) => Iterable<{ key: number; row: StoredRecord<T> }>,
  textOf: (record: T) => string,
): DerivedPart {
  const wrongCounts = (tx: Reader) =>
    [...stored(tx)].flatMap(({ key, row }) => {
      const pieces = "record" in row ? countPieces(textOf(row.record)) : undefined;
      const found = tx.get<{ pieces: unknown }>(`SELECT pieces FROM ${table} WHERE key = ?`, key)?.pieces;
      return pieces === undefined || found === pieces ? [] : [{ key, pieces }];
    });
  const surplus = (tx: Reader) =>
    tx.all<{ version: number; key: number }>(
      `SELECT s.version_id AS version, v.key FROM vectors v JOIN vector_collections s ON s.id = v.collection_id AND s.collection = '${table}'
         LEFT JOIN ${table} r ON r.key = v.key / ${PIECES_MAX} WHERE r.key IS NULL OR v.key % ${PIECES_MAX} >= r.pieces`,
    );
  return {
    name: `pieces of ${table}`,
    problem(tx) {
      const wrong = wrongCounts(tx).length + surplus(tx).length;
      return wrong > 0 ? `${wrong} numbers of pieces or vectors of ${table} do not match their texts` : undefined;
    },
    rebuild(tx) {
      for (const { key, pieces } of wrongCounts(tx)) tx.run(`UPDATE ${table} SET pieces = ? WHERE key = ?`, pieces, key);
      for (const { version, key } of surplus(tx)) vectorWriter(tx).remove(table, version, [key]);
    },
  };
}

function checkpointTerms(checkpoint: Checkpoint): string {
  return `${checkpointText(checkpoint)} ${checkpoint.tags.join(" ")}`;
}

function wrongSignatures(tx: Reader): { key: number; signature: string }[] {
  return tx
    .all<{ key: number; kind: unknown; question: unknown; signature: unknown }>("SELECT key, kind, question, signature FROM knowledge")
    .flatMap(({ key, kind, question, signature }) => {
      if (typeof question !== "string") return [];
      const right = kind === "remediation" ? errorSignature(question) : "";
      return signature === right ? [] : [{ key, signature: right }];
    });
}

const PAGE = 500;

/** Every checkpoint, read and verified; `projectPath` is left empty, since no check needs it. */
export function* storedCheckpoints(tx: Reader): Generator<{ key: number; row: StoredRecord<Checkpoint> }> {
  for (const row of allRows(tx, "checkpoints", CHECKPOINT_COLUMNS)) {
    const key = row.key as number;
    const tags = tx.all<{ tag: unknown }>("SELECT tag FROM checkpoint_tags WHERE checkpoint_key = ? ORDER BY position", key);
    yield { key, row: readCheckpoint({ ...row, tags: tags.map(({ tag }) => tag) }, "") };
  }
}

export function* storedKnowledge(tx: Reader): Generator<{ key: number; row: StoredRecord<Knowledge> }> {
  for (const row of allRows(tx, "knowledge", KNOWLEDGE_COLUMNS)) yield { key: row.key as number, row: readKnowledge(row) };
}

function* allRows(tx: Reader, table: string, columns: Readonly<Record<string, string>>): Generator<RawRow> {
  for (let after = -1; ; ) {
    const rows = tx.all<RawRow>(`SELECT ${columnList(columns)} FROM ${table} r WHERE r.key > ? ORDER BY r.key LIMIT ${PAGE}`, after);
    yield* rows;
    if (rows.length < PAGE) return;
    after = rows.at(-1)!.key as number;
  }
}

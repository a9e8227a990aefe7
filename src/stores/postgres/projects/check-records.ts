import type { Checkpoint } from "../../../model/checkpoint.ts";
import type { DamagedRecord, RecordCollection, RecordRepair, RecordReport } from "../../../model/damaged-record.ts";
import { DELETED_COLUMNS, readDeletedRow } from "../../../model/deleted-record.ts";
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
import type { PostgresTx } from "../driver/driver.ts";
import { toTimestamp } from "../driver/time.ts";
import { checkpointTerms } from "./checkpoints.ts";
import { tsvectorOf } from "./full-text.ts";
import { mirrorDifferences, repairMirror } from "./mirror.ts";
import type { ProjectTables } from "./project-tables.ts";

interface DamagedRow extends DamagedRecord {
  readonly key: number;
}

interface Found {
  readonly damaged: DamagedRow[];
  /** Damaged rows of `deleted_records`. */
  readonly deleted: DamagedRecord[];
  /** Keys of records whose derived columns do not match them. */
  readonly stale: { readonly collection: RecordCollection; readonly key: number }[];
  /** Vectors without a record, or beyond its number of pieces: a search would find a text that the record does not have. */
  readonly surplus: number;
  readonly mirror: number;
}

/** Selects the vectors that belong to no piece of a record in these collections. */
const surplusOf = (collections: readonly RecordCollection[]) => `FROM vectors v WHERE v.collection <> 'code' AND NOT EXISTS (
  SELECT 1 FROM (${collections.map((name) => `SELECT '${name}' AS collection, key, pieces FROM ${name}`).join(" UNION ALL ")}) AS r
   WHERE r.collection = v.collection AND r.key = v.key / ${PIECES_MAX} AND r.pieces > v.key % ${PIECES_MAX})`;

const PAGE = 500;

/** Verifies every record of a project and the data derived from it. */
export async function checkRecords(tables: ProjectTables): Promise<RecordReport> {
  const { damaged, deleted, stale, surplus, mirror } = await find(tables);
  const quarantined = await tables.part("deletion").read(0, async (tx) => {
    return (await tx.get<{ count: number }>("SELECT count(*) FROM quarantined_records"))!.count;
  });
  return {
    damaged: [...damaged.map(({ collection, id, reason }) => ({ collection, id, reason })), ...deleted],
    stale: [
      ...(["checkpoints", "knowledge"] as const).flatMap((collection) => {
        const wrong = stale.filter((row) => row.collection === collection).length;
        return wrong > 0 ? [`${wrong} rows of ${collection} have derived columns that do not match them`] : [];
      }),
      ...(surplus > 0 ? [`${surplus} vectors belong to no piece of a record`] : []),
      ...(mirror > 0 ? [`${mirror} rows of embedding_records do not match the knowledge and its vectors`] : []),
    ],
    quarantined,
  };
}

/** Quarantines damaged records and rebuilds derived data that does not match the records. */
export async function repairRecords(tables: ProjectTables, now: string): Promise<RecordRepair> {
  const found = await find(tables);
  const problems = found.damaged.length + found.deleted.length + found.stale.length + found.surplus + found.mirror;
  if (problems === 0) return { quarantined: [], rebuilt: [] };
  return tables.part("deletion").write(async (tx) => {
    const quarantined: DamagedRecord[] = [];
    for (const { key, collection, id, reason } of found.damaged) {
      const row = await readStored(tx, collection, key);
      if (!row || !("damaged" in row)) continue;
      await tx.run(
        `INSERT INTO quarantined_records (collection, record_id, reason, quarantined_at, raw)
         SELECT $2, $3, $4, $5, json_build_object('row', to_jsonb(r) - 'terms')::text FROM ${collection} r WHERE r.key = $1`,
        key,
        collection,
        id,
        reason,
        toTimestamp(now),
      );
      if (await tables.has(tx, "vectors"))
        await tx.run(
          `DELETE FROM vectors WHERE collection = $2 AND key BETWEEN $1 * ${PIECES_MAX} AND $1 * ${PIECES_MAX} + ${PIECES_MAX - 1}`,
          key,
          collection,
        );
      if (collection === "knowledge")
        await tx.run("DELETE FROM embedding_records WHERE template_id = (SELECT id FROM knowledge WHERE key = $1)", key);
      await tx.run(`DELETE FROM ${collection} WHERE key = $1`, key);
      quarantined.push({ collection, id, reason });
    }
    for (const { collection, id, reason } of found.deleted) {
      const row = await tx.get<RawRow>(
        `SELECT ${DELETED_LIST} FROM deleted_records WHERE collection = $1 AND id = $2 FOR UPDATE`,
        collection,
        id,
      );
      if (!row || !("damaged" in readDeletedRow(row))) continue;
      await tx.run(
        `INSERT INTO quarantined_records (collection, record_id, reason, quarantined_at, raw)
         SELECT collection, id, $3, $4, json_build_object('row', to_jsonb(r))::text FROM deleted_records r WHERE collection = $1 AND id = $2`,
        collection,
        id,
        reason,
        toTimestamp(now),
      );
      await tx.run("DELETE FROM deleted_records WHERE collection = $1 AND id = $2", collection, id);
      quarantined.push({ collection, id, reason });
    }
    const rebuilt = new Set<string>();
    for (const { collection, key } of found.stale) {
      const row = await readStored(tx, collection, key);
      if (!row || "damaged" in row) continue;
      await derive(tx, key, row.record);
      rebuilt.add(`derived columns of ${collection}`);
    }
    // Also what the repairs above left over: a record with fewer pieces has surplus vectors now.
    const hasVectors = await tables.has(tx, "vectors");
    if (hasVectors && (await tx.run(`DELETE ${surplusOf(await collectionsOf(tx, tables))}`)) > 0) rebuilt.add("vectors");
    if ((await tables.has(tx, "knowledge")) && (await repairMirror(tx)) > 0) rebuilt.add("embedding_records");
    return { quarantined, rebuilt: [...rebuilt] };
  });
}

async function find(tables: ProjectTables): Promise<Found> {
  const damaged: DamagedRow[] = [];
  const stale: Found["stale"] = [];
  for (const collection of await tables.read((tx) => collectionsOf(tx, tables))) {
    for (let after = -1; ; ) {
      const rows = await tables.read((tx) =>
        tx.all<RawRow>(`SELECT ${COLUMNS[collection]} FROM ${collection} WHERE key > $1 ORDER BY key LIMIT ${PAGE}`, after),
      );
      const read = rows.map((row) => ({ row, key: row.key as number, readForUpdate: readRow(collection, row) }));
      for (const { key, readForUpdate: one } of read) if ("damaged" in one) damaged.push({ key, ...one.damaged });
      const sound = read.flatMap(({ row, key, readForUpdate: one }) => ("record" in one ? [{ row, key, record: one.record }] : []));
      const wrongWords = await tables.read((tx) => wrongTerms(tx, collection, sound));
      for (const { row, key, record } of sound) if (wrongWords.has(key) || !matchesColumns(row, record)) stale.push({ collection, key });
      if (rows.length < PAGE) break;
      after = rows.at(-1)!.key as number;
    }
  }
  const surplus = await tables.part("vectors").read(0, async (tx) => {
    const sql = `SELECT count(*) ${surplusOf(await collectionsOf(tx, tables))}`;
    return (await tx.get<{ count: number }>(sql))!.count;
  });
  const deleted = await findDeleted(tables);
  return { damaged, deleted, stale, surplus, mirror: await tables.part("knowledge").read(0, mirrorDifferences) };
}

/** Returns the collections whose tables exist. */
async function collectionsOf(tx: PostgresTx, tables: ProjectTables): Promise<readonly RecordCollection[]> {
  return (await tables.has(tx, "knowledge")) ? ["checkpoints", "knowledge"] : ["checkpoints"];
}

async function findDeleted(tables: ProjectTables): Promise<DamagedRecord[]> {
  const found: DamagedRecord[] = [];
  for (let after = ["", ""]; ; ) {
    const rows = await tables
      .part("deletion")
      .read<RawRow[]>([], (tx) =>
        tx.all(
          `SELECT ${DELETED_LIST} FROM deleted_records WHERE (collection, id) > ($1, $2) ORDER BY collection, id LIMIT ${PAGE}`,
          ...after,
        ),
      );
    for (const row of rows) {
      const stored = readDeletedRow(row);
      if ("damaged" in stored) found.push(stored.damaged);
    }
    if (rows.length < PAGE) return found;
    after = [rows.at(-1)!.collection as string, rows.at(-1)!.id as string];
  }
}

const DELETED_LIST = Object.keys(DELETED_COLUMNS).join(", ");

const COLUMNS: Record<RecordCollection, string> = {
  checkpoints: ["key", "tags", "folded_tags", "pieces", ...Object.keys(CHECKPOINT_COLUMNS)].join(", "),
  knowledge: ["key", "signature", "pieces", ...Object.keys(KNOWLEDGE_COLUMNS)].join(", "),
};

function readRow(collection: RecordCollection, row: RawRow): StoredRecord<Checkpoint | Knowledge> {
  return collection === "checkpoints" ? readCheckpoint(row, "") : readKnowledge(row);
}

async function readStored(tx: PostgresTx, collection: RecordCollection, key: number) {
  const row = await tx.get<RawRow>(`SELECT ${COLUMNS[collection]} FROM ${collection} WHERE key = $1 FOR UPDATE`, key);
  return row && readRow(collection, row);
}

const isCheckpoint = (record: Checkpoint | Knowledge): record is Checkpoint => "summary" in record;
const termsOf = (record: Checkpoint | Knowledge) =>
  isCheckpoint(record) ? checkpointTerms(record) : tsvectorOf(recordTerms(knowledgeTerms(record)));
const piecesOf = (record: Checkpoint | Knowledge) => countPieces(isCheckpoint(record) ? checkpointText(record) : knowledgeText(record));
const signatureOf = ({ kind, question }: Knowledge) => (kind === "remediation" ? errorSignature(question) : "");

function matchesColumns(row: RawRow, record: Checkpoint | Knowledge): boolean {
  if (row.pieces !== piecesOf(record)) return false;
  if (!isCheckpoint(record)) return row.signature === signatureOf(record);
  return JSON.stringify(row.folded_tags) === JSON.stringify(record.tags.map((tag) => tag.toLowerCase()));
}

async function wrongTerms(
  tx: PostgresTx,
  collection: RecordCollection,
  rows: readonly { readonly key: number; readonly record: Checkpoint | Knowledge }[],
): Promise<ReadonlySet<number>> {
  if (rows.length === 0) return new Set();
  const found = await tx.all<{ key: number }>(
    `SELECT r.key FROM unnest($1::bigint[], $2::text[]) AS given (key, terms) JOIN ${collection} r ON r.key = given.key
      WHERE r.terms <> given.terms::tsvector`,
    rows.map(({ key }) => key),
    rows.map(({ record }) => termsOf(record)),
  );
  return new Set(found.map(({ key }) => key));
}

async function derive(tx: PostgresTx, key: number, record: Checkpoint | Knowledge): Promise<void> {
  const terms = termsOf(record);
  if (isCheckpoint(record)) {
    const folded = record.tags.map((tag) => tag.toLowerCase());
    await tx.run(
      "UPDATE checkpoints SET folded_tags = $2, terms = $3::tsvector, pieces = $4 WHERE key = $1",
      key,
      folded,
      terms,
      piecesOf(record),
    );
  } else
    await tx.run(
      "UPDATE knowledge SET signature = $2, terms = $3::tsvector, pieces = $4 WHERE key = $1",
      key,
      signatureOf(record),
      terms,
      piecesOf(record),
    );
}

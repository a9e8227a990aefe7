import { isUtf8 } from "node:buffer";
import type { DamagedRecord, RecordRepair } from "../../../model/damaged-record.ts";
import { readDeletedRow } from "../../../model/deleted-record.ts";
import { CHECKPOINT_COLUMNS, KNOWLEDGE_COLUMNS, type RawRow, readCheckpoint, readKnowledge } from "../../../model/stored-record.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { type DamagedRow, DELETED_LIST, type FileCheck } from "./check-records.ts";
import { tagsOf } from "./checkpoints.ts";
import { DERIVED_PARTS } from "./derived-parts.ts";
import { removeRecordVectors } from "./embeddings.ts";
import { removeTerms } from "./full-text.ts";
import { columnList } from "./record-rows.ts";

/** Sets aside the records that a check found damaged and still are, and builds again what does not match the rest. One transaction. */
export function repairRecords(tx: SqliteTx, { damaged, repairable }: FileCheck, now: string): RecordRepair {
  const rebuilt: string[] = [];
  // Deleting a row whose index entries are wrong fails, so indexes come first.
  if (repairable.some((line) => / index \S+$/.test(line))) {
    for (const table of ["checkpoints", "checkpoint_tags", "knowledge", "embedding_records", "deleted_records"])
      tx.exec(`REINDEX ${table}`);
    rebuilt.push("indexes");
  }
  const quarantined: DamagedRecord[] = [];
  for (const row of damaged) {
    if (!isDamaged(tx, row)) continue;
    const { key, collection, id, reason, isDeleted } = row;
    const raw = {
      row: isDeleted ? cellsOf(tx, "deleted_records", "rowid", key)[0] : cellsOf(tx, collection, "key", key)[0],
      ...(collection === "checkpoints" && !isDeleted && { tags: cellsOf(tx, "checkpoint_tags", "checkpoint_key", key) }),
    };
    tx.run(
      "INSERT INTO quarantined_records (collection, record_id, reason, quarantined_at, raw) VALUES (?, ?, ?, ?, ?)",
      collection,
      id,
      reason,
      now,
      JSON.stringify(raw),
    );
    remove(tx, row);
    quarantined.push({ collection, id, reason });
  }
  for (const part of DERIVED_PARTS) {
    if (part.problem(tx) === undefined && !repairable.some((line) => line.includes(part.name))) continue;
    part.rebuild(tx);
    rebuilt.push(part.name);
  }
  return { quarantined, rebuilt };
}

function isDamaged(tx: SqliteTx, { collection, key, isDeleted }: DamagedRow): boolean {
  if (isDeleted) {
    const deleted = tx.get<RawRow>(`SELECT ${DELETED_LIST} FROM deleted_records WHERE rowid = ?`, key);
    return deleted !== undefined && "damaged" in readDeletedRow(deleted);
  }
  const columns = columnList(collection === "checkpoints" ? CHECKPOINT_COLUMNS : KNOWLEDGE_COLUMNS);
  const row = tx.get<RawRow>(`SELECT ${columns} FROM ${collection} r WHERE r.key = ?`, key);
  if (!row) return false;
  return "damaged" in (collection === "checkpoints" ? readCheckpoint({ ...row, tags: tagsOf(tx, key) }, "") : readKnowledge(row));
}

function remove(tx: SqliteTx, { collection, key, isDeleted }: DamagedRow): void {
  if (isDeleted) {
    tx.run("DELETE FROM deleted_records WHERE rowid = ?", key);
    return;
  }
  removeRecordVectors(tx, collection, [key]);
  if (collection === "checkpoints") {
    removeTerms(tx, "checkpoint_fts", key);
    tx.run("DELETE FROM checkpoint_tags WHERE checkpoint_key = ?", key);
  } else {
    removeTerms(tx, "knowledge_fts", key);
    tx.run("DELETE FROM embedding_records WHERE template_id IS (SELECT id FROM knowledge WHERE key = ?)", key);
  }
  tx.run(`DELETE FROM ${collection} WHERE key = ?`, key);
}

type Cell = string | number | null | { readonly type: string; readonly hex: string };

/** Rows with every byte they hold: as plain JSON where that is exact, else as a type and hexadecimal digits. */
function cellsOf(tx: SqliteTx, table: string, column: string, key: number): Record<string, Cell>[] {
  const names = tx.all<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`).map(({ name }) => name);
  const list = names.flatMap((name, index) => [`typeof(${name}) AS t${index}`, `CAST(${name} AS BLOB) AS b${index}`]);
  return tx
    .all<Record<string, unknown>>(`SELECT ${list.join(", ")} FROM ${table} WHERE ${column} = ?`, key)
    .map((row) => Object.fromEntries(names.map((name, index) => [name, cell(row[`t${index}`] as string, row[`b${index}`] as Uint8Array)])));
}

function cell(type: string, bytes: Uint8Array | null): Cell {
  if (bytes === null) return null;
  const hex = { type, hex: Buffer.from(bytes).toString("hex") };
  if (type === "blob" || !isUtf8(bytes)) return hex;
  const text = Buffer.from(bytes).toString("utf8");
  if (type === "text") return text;
  return String(Number(text)) === text ? Number(text) : hex;
}

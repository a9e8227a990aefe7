import type { DatabaseSync } from "node:sqlite";
import type { DamagedRecord, RecordReport } from "../../../model/damaged-record.ts";
import { DELETED_COLUMNS, readDeletedRow } from "../../../model/deleted-record.ts";
import type { RawRow } from "../../../model/stored-record.ts";
import { loadEngine } from "../driver/engine.ts";
import { assertDescriptorsLeft } from "../driver/errors.ts";
import { type FileProblems, findProblems } from "../driver/find-problems.ts";
import { DERIVED_PARTS, type Reader, storedCheckpoints, storedKnowledge } from "./derived-parts.ts";

export interface DamagedRow extends DamagedRecord {
  readonly key: number;
  /** The row is in `deleted_records`. */
  readonly isDeleted?: boolean | undefined;
}

/** Everything that is wrong with a project's file. */
export interface FileCheck extends FileProblems, RecordReport {
  readonly damaged: readonly DamagedRow[];
}

/** Reads a whole file: its structure, and every record if it is a project's. Changes nothing. */
export async function checkWholeFile(path: string): Promise<FileCheck> {
  const found = await findProblems(path);
  const none = { damaged: [], stale: [], quarantined: 0 };
  if (found.problems.length > 0) return { ...found, ...none };
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    connection.exec("BEGIN");
    const tx = readerOf(connection);
    if (!tx.get("SELECT 1 FROM sqlite_master WHERE name = 'quarantined_records'")) return { ...found, ...none };
    const damaged = findDamaged(tx);
    // A damaged record explains what is wrong with its own row; only what concerns something else is stale.
    const stale = [
      ...new Set(
        found.repairable.filter((line) => !/ (?:value|constraint failed) in (?:checkpoints|knowledge|deleted_records)\b/.test(line)),
      ),
    ];
    for (const part of DERIVED_PARTS) stale.push(...[part.problem(tx) ?? []].flat());
    const { count } = tx.get<{ count: number }>("SELECT count(*) AS count FROM quarantined_records")!;
    return { ...found, damaged, stale, quarantined: count };
  } catch (error) {
    assertDescriptorsLeft();
    return { problems: [error instanceof Error ? error.message : String(error)], repairable: [], ...none };
  } finally {
    connection.close();
  }
}

/** Every record that does not match its checksum or cannot even be read. */
function findDamaged(tx: Reader): DamagedRow[] {
  const found: DamagedRow[] = [];
  for (const { key, row } of storedCheckpoints(tx)) if ("damaged" in row) found.push({ key, ...row.damaged });
  for (const { key, row } of storedKnowledge(tx)) if ("damaged" in row) found.push({ key, ...row.damaged });
  for (const { key, ...row } of tx.all<RawRow & { key: number }>(`SELECT rowid AS key, ${DELETED_LIST} FROM deleted_records`)) {
    const stored = readDeletedRow(row);
    if ("damaged" in stored) found.push({ key, isDeleted: true, ...stored.damaged });
  }
  return found;
}

export const DELETED_LIST = Object.keys(DELETED_COLUMNS).join(", ");

function readerOf(connection: DatabaseSync): Reader {
  const prepared = new Map<string, ReturnType<DatabaseSync["prepare"]>>();
  const prepare = (sql: string) => {
    const statement = prepared.get(sql) ?? connection.prepare(sql);
    prepared.set(sql, statement);
    return statement;
  };
  return {
    get: <Row>(sql: string, ...params: never[]) => prepare(sql).get(...params) as Row | undefined,
    all: <Row>(sql: string, ...params: never[]) => prepare(sql).all(...params) as Row[],
  };
}

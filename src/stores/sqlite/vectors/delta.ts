import type { SqliteTx } from "../driver/driver.ts";
import type { Code } from "./codes.ts";

/** The newest code of a key, or null if the key was removed, and the number of codes in segments that it overrides. */
export interface DeltaRow {
  readonly code: Code | null;
  readonly stale: number;
}

/** Returns the delta rows of a collection that changed after `change`, by key. */
export function readDelta(tx: SqliteTx, collectionId: number, change = -1): Map<number, DeltaRow> {
  const rows = tx.all<{ key: number; stale: number; scale: number | null; code: Uint8Array | null }>(
    "SELECT key, stale, scale, code FROM vector_delta WHERE collection_id = ? AND change > ?",
    collectionId,
    change,
  );
  return new Map(
    rows.map(({ key, stale, scale, code }) => [
      key,
      {
        stale,
        code: code && { scale: scale as number, code: new Int8Array(code.buffer as ArrayBuffer, code.byteOffset, code.byteLength) },
      },
    ]),
  );
}

/** Writes a delta row. An existing row keeps its number of overridden codes unless `force` is set. */
export function writeDelta(
  tx: SqliteTx,
  collectionId: number,
  change: number,
  key: number,
  { code, stale }: DeltaRow,
  force = false,
): void {
  tx.run(
    `INSERT INTO vector_delta (collection_id, key, change, stale, scale, code) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (collection_id, key) DO UPDATE SET change = excluded.change, scale = excluded.scale, code = excluded.code
     ${force ? ", stale = excluded.stale" : ""}`,
    collectionId,
    key,
    change,
    stale,
    code?.scale ?? null,
    code && new Uint8Array(code.code.buffer, code.code.byteOffset, code.code.byteLength),
  );
}

/** Counts the delta rows with only a new code, and the codes in segments that the others override. */
export function countDelta(tx: SqliteTx, collectionId: number): { fresh: number; overridden: number } {
  return tx.get<{ fresh: number; overridden: number }>(
    "SELECT count(*) FILTER (WHERE stale = 0) AS fresh, coalesce(sum(stale), 0) AS overridden FROM vector_delta WHERE collection_id = ?",
    collectionId,
  )!;
}

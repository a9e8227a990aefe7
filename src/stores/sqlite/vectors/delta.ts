import type { SqliteTx } from "../driver/driver.ts";
import type { Code } from "./codes.ts";

/** What a recent row says about a key: its code, or null if it is gone, and how many codes in packs it overrides. */
export interface Recent {
  readonly code: Code | null;
  readonly packed: number;
}

/** The recent rows of a space changed after `change`, by key. */
export function readRecent(tx: SqliteTx, space: number, change = -1): Map<number, Recent> {
  const rows = tx.all<{ key: number; packed: number; scale: number | null; code: Uint8Array | null }>(
    "SELECT key, packed, scale, code FROM vector_recent WHERE space = ? AND change > ?",
    space,
    change,
  );
  return new Map(
    rows.map(({ key, packed, scale, code }) => [
      key,
      {
        packed,
        code: code && { scale: scale as number, code: new Int8Array(code.buffer as ArrayBuffer, code.byteOffset, code.byteLength) },
      },
    ]),
  );
}

/** Writes a recent row. If there is one already, it keeps its count of overridden codes unless `packed` is forced. */
export function writeRecent(tx: SqliteTx, space: number, change: number, key: number, { code, packed }: Recent, force = false): void {
  tx.run(
    `INSERT INTO vector_recent (space, key, change, packed, scale, code) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (space, key) DO UPDATE SET change = excluded.change, scale = excluded.scale, code = excluded.code
     ${force ? ", packed = excluded.packed" : ""}`,
    space,
    key,
    change,
    packed,
    code?.scale ?? null,
    code && new Uint8Array(code.code.buffer, code.code.byteOffset, code.code.byteLength),
  );
}

/** How many recent rows bring a new code only, and how many codes in packs the others override. */
export function countRecent(tx: SqliteTx, space: number): { fresh: number; overridden: number } {
  return tx.get<{ fresh: number; overridden: number }>(
    "SELECT count(*) FILTER (WHERE packed = 0) AS fresh, coalesce(sum(packed), 0) AS overridden FROM vector_recent WHERE space = ?",
    space,
  )!;
}

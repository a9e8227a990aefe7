import { type IdempotencyKey, keysExpiredBefore } from "../../../model/idempotency.ts";
import type { SqliteTx } from "../driver/driver.ts";

/** Keys of calls that may be repeated, with the record that the first call stored or reported on. */
export const IDEMPOTENCY_SCHEMA = `
CREATE TABLE idempotency_keys (key TEXT PRIMARY KEY, record_id TEXT NOT NULL, used_at TIMESTAMP NOT NULL) WITHOUT ROWID;
CREATE INDEX idempotency_keys_used ON idempotency_keys (used_at);
`;

/** Stores a key with its record and removes expired ones. Returns false if an earlier call used the key. */
export function claimKey(tx: SqliteTx, { key, at }: IdempotencyKey, recordId: string): boolean {
  tx.run("DELETE FROM idempotency_keys WHERE used_at < ?", keysExpiredBefore(at));
  const sql = "INSERT INTO idempotency_keys (key, record_id, used_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
  return tx.run(sql, key, recordId, at).changes > 0;
}

/** Undoes a claim of the same transaction. */
export function releaseKey(tx: SqliteTx, { key }: IdempotencyKey): void {
  tx.run("DELETE FROM idempotency_keys WHERE key = ?", key);
}

/** Returns the record of the first call with this key, if the key has not expired. */
export function recordOfKey(tx: SqliteTx, { key, at }: IdempotencyKey): string | undefined {
  const sql = "SELECT record_id FROM idempotency_keys WHERE key = ? AND used_at >= ?";
  return tx.get<{ record_id: string }>(sql, key, keysExpiredBefore(at))?.record_id;
}

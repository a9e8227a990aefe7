import { type IdempotencyKey, keysExpiredBefore } from "../../../model/idempotency.ts";
import type { PostgresTx } from "../driver/driver.ts";
import { toTimestamp } from "../driver/time.ts";

/** Keys of calls that may be repeated, with the record that the first call stored or reported on. */
export const IDEMPOTENCY_SCHEMA = `
CREATE TABLE idempotency_keys (key text COLLATE "C" PRIMARY KEY, record_id text COLLATE "C" NOT NULL, used_at timestamptz NOT NULL);
CREATE INDEX idempotency_keys_used ON idempotency_keys (used_at);
`;

/**
 * Stores a key with its record, and removes expired ones. Waits for a concurrent call with the same key. Returns `repeated` if this
 * transaction was committed before its answer was lost, and `used` if another call has used the key.
 */
export async function claimKey(tx: PostgresTx, { key, at }: IdempotencyKey, recordId: string): Promise<"claimed" | "repeated" | "used"> {
  // Rows that another call locks are left to it, so that two calls never wait for each other.
  await tx.run(
    `DELETE FROM idempotency_keys WHERE key IN
       (SELECT key FROM idempotency_keys WHERE used_at < $1 AND key <> $2 ORDER BY used_at LIMIT 1000 FOR UPDATE SKIP LOCKED)`,
    toTimestamp(keysExpiredBefore(at)),
    key,
  );
  const claimed = await tx.run(
    `INSERT INTO idempotency_keys AS stored (key, record_id, used_at) VALUES ($1, $2, $3)
     ON CONFLICT (key) DO UPDATE SET record_id = excluded.record_id, used_at = excluded.used_at WHERE stored.used_at < $4`,
    key,
    recordId,
    toTimestamp(at),
    toTimestamp(keysExpiredBefore(at)),
  );
  if (claimed > 0) return "claimed";
  const stored = await tx.get<{ record_id: string; used_at: string }>(
    "SELECT record_id, used_at FROM idempotency_keys WHERE key = $1",
    key,
  );
  return stored?.record_id === recordId && stored.used_at === at ? "repeated" : "used";
}

/** Undoes a claim of the same transaction. */
export async function releaseKey(tx: PostgresTx, { key }: IdempotencyKey): Promise<void> {
  await tx.run("DELETE FROM idempotency_keys WHERE key = $1", key);
}

/** Returns the record of the first call with this key, if the key has not expired. */
export async function recordOfKey(tx: PostgresTx, { key, at }: IdempotencyKey): Promise<string | undefined> {
  const sql = "SELECT record_id FROM idempotency_keys WHERE key = $1 AND used_at >= $2";
  return (await tx.get<{ record_id: string }>(sql, key, toTimestamp(keysExpiredBefore(at))))?.record_id;
}

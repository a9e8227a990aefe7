import { randomUUID } from "node:crypto";
import type { Access, StoredApiKey } from "../../../model/api-key.ts";
import type { DatabaseSchema } from "../../../model/schema.ts";
import type { KeyStore } from "../../../ports/key-store.ts";
import type { PgValue, PostgresDatabase } from "../driver/driver.ts";
import { ensureSchema } from "../driver/schema-version.ts";
import { toTimestamp } from "../driver/time.ts";

/** The schema that holds API keys. */
const SCHEMA = "cairn_keys";

const keySchema: DatabaseSchema = {
  version: 1,
  name: "API keys",
  sql: `
    CREATE TABLE api_keys (
      position bigint GENERATED ALWAYS AS IDENTITY,
      id text COLLATE "C" PRIMARY KEY,
      label text NOT NULL,
      access text NOT NULL,
      -- NULL: all projects.
      projects text[],
      created_at timestamptz NOT NULL,
      expires_at timestamptz,
      last_used_at timestamptz,
      secret_hash text NOT NULL
    );
    -- Calls that each server has counted, for rate limits. They need not survive a crash of the database.
    CREATE UNLOGGED TABLE key_usage (
      id text COLLATE "C" NOT NULL,
      node uuid NOT NULL,
      calls bigint NOT NULL,
      counted_at timestamptz NOT NULL,
      PRIMARY KEY (id, node)
    );
  `,
};

/** Milliseconds for which the keys are cached. A revoked key fails on every server after this time at the latest. */
const CACHED_MS = 500;

/** API keys in a schema of a PostgreSQL database, shared by all servers. */
export function postgresKeyStore(database: PostgresDatabase): KeyStore {
  let creating: Promise<void> | undefined;
  const exchangeUsage = usageExchange(database);
  let cached: { readonly until: number; readonly keys: Promise<readonly StoredApiKey[]> } | undefined;
  let again: Promise<readonly StoredApiKey[]> | undefined;

  /** Creates the table with the first call; a failure is tried again by the next. */
  function ready(): Promise<void> {
    creating ??= ensureSchema(database, SCHEMA, keySchema).catch((error) => {
      creating = undefined;
      throw error;
    });
    return creating;
  }

  async function read(): Promise<readonly StoredApiKey[]> {
    await ready();
    const rows = await database.statement<KeyRow>(`SELECT * FROM ${SCHEMA}.api_keys ORDER BY position`, [], { idempotent: true });
    return rows.map(toKey);
  }

  /** Reads the keys after a read that has begun: one at a time, however many unknown keys are presented. */
  function readAgain(): Promise<readonly StoredApiKey[]> {
    const begun = cached?.keys.catch(() => {}) ?? Promise.resolve();
    again ??= begun.then(() => {
      again = undefined;
      return readNow();
    });
    return again;
  }

  function readNow(): Promise<readonly StoredApiKey[]> {
    const reading = { until: performance.now() + CACHED_MS, keys: read() };
    cached = reading;
    reading.keys.catch(() => {
      if (cached === reading) cached = undefined;
    });
    return reading.keys;
  }

  async function change<T>(work: () => Promise<T>): Promise<T> {
    await ready();
    try {
      return await work();
    } finally {
      cached = undefined;
    }
  }

  return {
    async all(wanted) {
      if (!cached || performance.now() >= cached.until) return readNow();
      const keys = await cached.keys;
      // Another server may just have created it.
      return wanted === undefined || keys.some(({ id }) => id === wanted) ? keys : readAgain();
    },

    add: (key) =>
      change(async () => void (await database.statement(`${INSERT} ON CONFLICT (id) DO NOTHING`, paramsOf(key), { idempotent: true }))),

    replace: (id, expiresAt, successor) =>
      change(async () => {
        const sql = `WITH replaced AS (UPDATE ${SCHEMA}.api_keys SET expires_at = $9 WHERE id = $10 RETURNING id), added AS (
            INSERT INTO ${SCHEMA}.api_keys (${COLUMNS}) SELECT ${CASTS} FROM replaced ON CONFLICT (id) DO NOTHING
          ) SELECT id FROM replaced`;
        const params = [...paramsOf(successor), toTimestamp(expiresAt), id];
        return (await database.statement(sql, params, { idempotent: true })).length > 0;
      }),

    async markUsed(id, at) {
      await ready();
      const sql = `UPDATE ${SCHEMA}.api_keys SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)`;
      await database.statement(sql, [id, toTimestamp(at)], { idempotent: true });
    },

    async exchangeUsage(taken) {
      await ready();
      return exchangeUsage(taken);
    },

    remove: (id) =>
      change(async () => (await database.statement(`DELETE FROM ${SCHEMA}.api_keys WHERE id = $1 RETURNING id`, [id])).length > 0),
  };
}

/** Rows of a server that counted nothing for an hour belong to a process that has ended. */
const FORGET_USAGE = `DELETE FROM ${SCHEMA}.key_usage WHERE counted_at < clock_timestamp() - interval '1 hour'`;
const FORGET_EVERY_MS = 600_000;

function usageExchange(database: PostgresDatabase): (taken: ReadonlyMap<string, number>) => Promise<ReadonlyMap<string, number>> {
  const node = randomUUID();
  const seen = new Map<string, number>();
  let forgottenAt = performance.now();
  return async (taken) => {
    const ids = [...taken.keys()];
    const sql = `WITH own AS (
        INSERT INTO ${SCHEMA}.key_usage AS u (id, node, calls, counted_at)
        SELECT id, $1::uuid, calls, clock_timestamp() FROM unnest($2::text[], $3::bigint[]) AS t (id, calls)
        ON CONFLICT (id, node) DO UPDATE SET calls = u.calls + excluded.calls, counted_at = excluded.counted_at
      ) SELECT id, sum(calls)::bigint AS calls FROM ${SCHEMA}.key_usage WHERE id = ANY($2) AND node <> $1 GROUP BY id`;
    const rows = await database.statement<{ id: string; calls: number }>(sql, [node, ids, [...taken.values()]]);
    const elsewhere = new Map<string, number>();
    for (const { id, calls } of rows) {
      const before = seen.get(id);
      if (before !== undefined && calls > before) elsewhere.set(id, calls - before);
    }
    seen.clear(); // of keys that were not used since the last exchange nothing is known any more
    for (const { id, calls } of rows) seen.set(id, calls);
    for (const id of ids) if (!seen.has(id)) seen.set(id, 0);
    if (performance.now() - forgottenAt > FORGET_EVERY_MS) {
      forgottenAt = performance.now();
      await database.statement(FORGET_USAGE, [], { idempotent: true });
    }
    return elsewhere;
  };
}

const COLUMNS = "id, label, access, projects, created_at, expires_at, last_used_at, secret_hash";
const CASTS = "$1, $2, $3, $4::text[], $5::timestamptz, $6::timestamptz, $7::timestamptz, $8";
const INSERT = `INSERT INTO ${SCHEMA}.api_keys (${COLUMNS}) VALUES (${CASTS})`;

interface KeyRow {
  readonly id: string;
  readonly label: string;
  readonly access: Access;
  readonly projects: string[] | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly secret_hash: string;
}

function paramsOf({ id, label, access, projects, createdAt, expiresAt, lastUsedAt, secretHash }: StoredApiKey): PgValue[] {
  const optional = (time: string | undefined) => (time === undefined ? null : toTimestamp(time));
  const listed = projects === "all" ? null : [...projects];
  return [id, label, access, listed, toTimestamp(createdAt), optional(expiresAt), optional(lastUsedAt), secretHash];
}

function toKey(row: KeyRow): StoredApiKey {
  return {
    id: row.id,
    label: row.label,
    access: row.access,
    projects: row.projects ?? "all",
    createdAt: row.created_at,
    ...(row.expires_at !== null && { expiresAt: row.expires_at }),
    ...(row.last_used_at !== null && { lastUsedAt: row.last_used_at }),
    secretHash: row.secret_hash,
  };
}

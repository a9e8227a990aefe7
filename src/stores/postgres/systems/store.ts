import { systemDatabaseName } from "../../../model/ids.ts";
import type { SnapshotPart } from "../../../model/system.ts";
import { snapshotNotFoundError } from "../../../model/system-rules.ts";
import type { LoadedComponent, LoadedPort, MessageKey, SystemStore } from "../../../ports/system-store.ts";
import { type HeadRow, type MessageRow, toHead, toMessage } from "../../rows/message-row.ts";
import { type SnapshotRow, toSnapshot } from "../../rows/snapshot-row.ts";
import { type PgValue, type PostgresDatabase, type PostgresTx, quoteName, type WriteOptions } from "../driver/driver.ts";
import { isGone } from "../driver/errors.ts";
import { toTimestamp } from "../driver/time.ts";
import { collectImages, restoreImages, systemOverview } from "./images.ts";
import { applyChange, portsOf } from "./rows.ts";

/** One system in its schema. `forget` is called when the schema turns out to be gone. */
export function postgresSystemStore(systemId: string, database: PostgresDatabase, forget: () => void): SystemStore {
  const schema = systemDatabaseName(systemId);
  const name = quoteName(schema);

  const forgetIfGone = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (isGone(error)) forget();
      throw error;
    }
  };
  const read = <T>(work: (tx: PostgresTx) => Promise<T>) => forgetIfGone(() => database.read(schema, work));
  const write = <T>(work: (tx: PostgresTx) => Promise<T>, options?: WriteOptions) =>
    forgetIfGone(() => database.write(schema, work, options));
  const ask = <Row>(sql: string, params: readonly PgValue[], options: WriteOptions = { idempotent: true }) =>
    forgetIfGone(() => database.statement<Row>(sql, params, options));

  /** Reads the version and the messages of these ids, which every commit needs, in one round trip. */
  async function quickLoad(component: string, keys: readonly { readonly port: string; readonly id: string }[]): Promise<LoadedComponent> {
    const rows = await ask<Partial<HeadRow> & { version: number }>(
      `SELECT v.version, m.* FROM (SELECT coalesce(max(version), 0) AS version FROM ${name}.components WHERE component_name = $1) v
       LEFT JOIN (
         SELECT c.port_name, c.message_id, c."offset", c.timestamp, c.status, c.attempts, c.reason
         FROM unnest($2::text[], $3::text[]) AS wanted (port, id)
         JOIN ${name}.checkpoints c ON c.component_name = $1 AND c.port_name = wanted.port AND c.message_id = wanted.id) m ON true`,
      [component, keys.map(({ port }) => port), keys.map(({ id }) => id)],
    );
    const found = rows.filter((row): row is HeadRow & { version: number } => row.message_id != null).map(toHead);
    const byKey = new Map(found.map((head) => [`${head.port}\0${head.id}`, head]));
    return { version: rows[0]!.version, messages: keys.map(({ port, id }) => byKey.get(`${port}\0${id}`)) };
  }

  return {
    systemId,

    async load(component, keys, knownVersion) {
      if (knownVersion !== undefined && keys.every(isId)) {
        const quick = await quickLoad(component, keys as { port: string; id: string }[]);
        if (quick.version === knownVersion) return quick;
      }
      return read(async (tx) => {
        const row = await tx.get<{ version: number }>("SELECT version FROM components WHERE component_name = $1", component);
        const version = row?.version ?? 0;
        const ports = version === knownVersion ? undefined : await loadedPorts(tx, component);
        const messages = [];
        for (const key of keys) messages.push(await findMessage(tx, component, key));
        return { version, ports, messages };
      });
    },

    async state(component, keys) {
      const rows = await ask<{ key: string; value: Uint8Array }>(
        `SELECT key, value FROM ${name}.state WHERE component_name = $1 AND key = ANY ($2::text[])`,
        [component, keys],
      );
      const byKey = new Map(rows.map(({ key, value }) => [key, value]));
      return keys.map((key) => byKey.get(key));
    },

    // Run again after a commit whose answer was lost, it finds another version and changes nothing.
    commit: (change) => write((tx) => applyChange(tx, change), { idempotent: true }),

    async messages({ component, port, status, after, limit }) {
      const rows = await ask<MessageRow>(
        `SELECT * FROM ${name}.checkpoints WHERE status = $1
           AND ($2::text IS NULL OR component_name = $2) AND ($3::text IS NULL OR port_name = $3)
           AND ($4::text IS NULL OR (component_name, port_name, "offset") > ($4 COLLATE "C", $5::text COLLATE "C", $6::bigint))
         ORDER BY component_name, port_name, "offset" LIMIT $7`,
        [status, component ?? null, port ?? null, after?.component ?? null, after?.port ?? null, after?.offset ?? null, limit],
      );
      return rows.map((row) => ({ ...toMessage(row), component: row.component_name }));
    },

    async firstSince(component, port, timestamp) {
      const [row] = await ask<{ first: number | null }>(
        `SELECT min("offset") AS first FROM ${name}.checkpoints WHERE component_name = $1 AND port_name = $2 AND timestamp >= $3`,
        [component, port, timestamp],
      );
      return row?.first ?? undefined;
    },

    async sweep(component, port, { upTo, limit }) {
      const swept = await ask(
        `DELETE FROM ${name}.checkpoints WHERE id IN (
           SELECT c.id FROM ${name}.checkpoints c JOIN ${name}.ports p USING (component_name, port_name)
           WHERE component_name = $1 AND port_name = $2 AND c."offset" <= least($3, p.pruned_to) AND c.status = 'done' ORDER BY c."offset" LIMIT $4)
         RETURNING 1`,
        [component, port, upTo, limit],
      );
      return swept.length;
    },

    overview: () => read(systemOverview),

    collect: (options) => read((tx) => collectImages(tx, options)),

    restore: (images, at) => write((tx) => restoreImages(tx, images, at), { idempotent: true }),

    async beginSnapshot({ id, createdAt, mode }) {
      await ask(`INSERT INTO ${name}.snapshots (id, created_at, mode) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`, [
        id,
        toTimestamp(createdAt),
        mode,
      ]);
    },

    async addSnapshotPart(snapshotId, { component, checksum, data }) {
      const added = await ask(
        `INSERT INTO ${name}.snapshot_parts (snapshot_id, component_name, checksum, data)
         SELECT id, $2, $3, $4 FROM ${name}.snapshots WHERE id = $1
         ON CONFLICT (snapshot_id, component_name) DO UPDATE SET checksum = excluded.checksum, data = excluded.data RETURNING 1`,
        [snapshotId, component, checksum, data],
      );
      if (added.length === 0) throw snapshotNotFoundError(snapshotId);
    },

    async completeSnapshot(id, { checksum, components, messages, stateKeys, bytes }) {
      const completed = await ask(
        `UPDATE ${name}.snapshots SET complete = true, checksum = $2, components = $3, messages = $4, state_keys = $5, bytes = $6
         WHERE id = $1 RETURNING 1`,
        [id, checksum, components, messages, stateKeys, bytes],
      );
      if (completed.length === 0) throw snapshotNotFoundError(id);
    },

    async snapshots() {
      return (await ask<SnapshotRow>(`SELECT * FROM ${name}.snapshots ORDER BY sequence DESC`, [])).map(toSnapshot);
    },

    snapshotParts: (snapshotId) =>
      read(async (tx) => {
        if (!(await tx.get("SELECT 1 FROM snapshots WHERE id = $1", snapshotId))) throw snapshotNotFoundError(snapshotId);
        return tx.all<SnapshotPart>(
          "SELECT component_name AS component, checksum, data FROM snapshot_parts WHERE snapshot_id = $1 ORDER BY component_name",
          snapshotId,
        );
      }),

    async deleteSnapshot(id) {
      await ask(`DELETE FROM ${name}.snapshots WHERE id = $1`, [id]);
    },
  };
}

async function loadedPorts(tx: PostgresTx, component: string): Promise<LoadedPort[]> {
  const counted = await tx.all<{ port_name: string; pending: number }>(
    "SELECT port_name, count(*) AS pending FROM checkpoints WHERE status = 'pending' AND component_name = $1 GROUP BY port_name",
    component,
  );
  const pending = new Map(counted.map((row) => [row.port_name, row.pending]));
  return (await portsOf(tx, component)).map((port) => ({ ...port, pending: pending.get(port.port) ?? 0 }));
}

function isId(key: MessageKey): boolean {
  return "id" in key;
}

const HEAD = `SELECT port_name, message_id, "offset", timestamp, status, attempts, reason FROM checkpoints WHERE component_name = $1 AND port_name = $2`;

async function findMessage(tx: PostgresTx, component: string, key: MessageKey) {
  const row =
    "id" in key
      ? await tx.get<HeadRow>(`${HEAD} AND message_id = $3`, component, key.port, key.id)
      : await tx.get<HeadRow>(`${HEAD} AND "offset" = $3 LIMIT 1`, component, key.port, key.offset);
  return row && toHead(row);
}

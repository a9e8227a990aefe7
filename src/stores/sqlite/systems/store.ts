import type { MessageHead, SnapshotPart } from "../../../model/system.ts";
import { snapshotNotFoundError } from "../../../model/system-rules.ts";
import type { ComponentChange, MessageKey, SystemStore } from "../../../ports/system-store.ts";
import { type MessageRow, toHead, toMessage } from "../../rows/message-row.ts";
import { type SnapshotRow, toSnapshot } from "../../rows/snapshot-row.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { noteWrite } from "../driver/write-activity.ts";
import { collectImages, restoreImages, systemOverview } from "./images.ts";
import { portsOf, putAhead, putMessage, putPort, putState } from "./rows.ts";

/** One system in its SQLite file. */
export function sqliteSystemStore(systemId: string, database: DatabaseHandle): SystemStore {
  return {
    systemId,

    async load(component, keys, knownVersion) {
      return (await database()).read((tx) => {
        const version = versionOf(tx, component);
        return {
          version,
          ports:
            version === knownVersion
              ? undefined
              : portsOf(tx, component).map((port) => ({ ...port, pending: pendingOf(tx, component, port.port) })),
          messages: keys.map((key) => findMessage(tx, component, key)),
        };
      });
    },

    async state(component, keys) {
      return (await database()).read((tx) =>
        keys.map(
          (key) => tx.get<{ value: Uint8Array }>("SELECT value FROM state WHERE component_name = ? AND key = ?", component, key)?.value,
        ),
      );
    },

    async commit(change) {
      const db = await database();
      const applied = await db.write((tx) => applyChange(tx, change));
      if (applied && [...change.state].some(([, value]) => value === null)) db.eraseLogLater();
      return applied;
    },

    async messages({ component, port, status, after, limit }) {
      const where = ["status = ?"];
      const params: (string | number)[] = [status];
      const add = (sql: string, ...values: (string | number)[]) => {
        where.push(sql);
        params.push(...values);
      };
      if (component !== undefined) add("component_name = ?", component);
      if (port !== undefined) add("port_name = ?", port);
      if (after) add("(component_name, port_name, offset) > (?, ?, ?)", after.component, after.port, after.offset);
      const sql = `SELECT * FROM checkpoints WHERE ${where.join(" AND ")} ORDER BY component_name, port_name, offset LIMIT ?`;
      return (await database()).read((tx) =>
        tx.all<MessageRow>(sql, ...params, limit).map((row) => ({ ...toMessage(row), component: row.component_name })),
      );
    },

    async firstSince(component, port, timestamp) {
      const row = (await database()).one<[first: number | null]>(
        "SELECT min(offset) FROM checkpoints WHERE component_name = ? AND port_name = ? AND timestamp >= ?",
        component,
        port,
        timestamp,
      );
      return row?.[0] ?? undefined;
    },

    async sweep(component, port, { upTo, limit }) {
      const db = await database();
      const swept = await db.write(
        (tx) =>
          tx.run(
            `DELETE FROM checkpoints WHERE id IN (
               SELECT c.id FROM checkpoints c JOIN ports p USING (component_name, port_name)
               WHERE component_name = ? AND port_name = ? AND c.offset <= min(?, p.pruned_to) AND c.status = 'done' ORDER BY c.offset LIMIT ?)`,
            component,
            port,
            upTo,
            limit,
          ).changes,
      );
      if (swept > 0) db.eraseLogLater();
      return swept;
    },

    async overview() {
      return (await database()).read(systemOverview);
    },

    async collect(options) {
      return (await database()).read((tx) => collectImages(tx, options));
    },

    async restore(images, at) {
      const db = await database();
      await db.write((tx) => restoreImages(tx, images, at));
      await db.eraseLog();
    },

    async beginSnapshot({ id, createdAt, mode }) {
      await (await database()).write((tx) => tx.run("INSERT INTO snapshots (id, created_at, mode) VALUES (?, ?, ?)", id, createdAt, mode));
    },

    async addSnapshotPart(snapshotId, { component, checksum, data }) {
      await (await database()).write((tx) => {
        assertSnapshot(tx, snapshotId);
        tx.run(
          "INSERT INTO snapshot_parts (snapshot_id, component_name, checksum, data) VALUES (?, ?, ?, ?)",
          snapshotId,
          component,
          checksum,
          data,
        );
      });
    },

    async completeSnapshot(id, { checksum, components, messages, stateKeys, bytes }) {
      await (await database()).write((tx) => {
        assertSnapshot(tx, id);
        tx.run(
          "UPDATE snapshots SET complete = 1, checksum = ?, components = ?, messages = ?, state_keys = ?, bytes = ? WHERE id = ?",
          checksum,
          components,
          messages,
          stateKeys,
          bytes,
          id,
        );
      });
    },

    async snapshots() {
      return (await database()).read((tx) => tx.all<SnapshotRow>("SELECT * FROM snapshots ORDER BY sequence DESC").map(toSnapshot));
    },

    async snapshotParts(snapshotId) {
      return (await database()).read((tx) => {
        assertSnapshot(tx, snapshotId);
        return tx.all<SnapshotPart>(
          "SELECT component_name AS component, checksum, data FROM snapshot_parts WHERE snapshot_id = ? ORDER BY component_name",
          snapshotId,
        );
      });
    },

    async deleteSnapshot(id) {
      const db = await database();
      await db.write((tx) => tx.run("DELETE FROM snapshots WHERE id = ?", id));
      await db.eraseLog();
    },
  };
}

function pendingOf(tx: SqliteTx, component: string, port: string): number {
  const sql = "SELECT count(*) AS pending FROM checkpoints WHERE status = 'pending' AND component_name = ? AND port_name = ?";
  return tx.get<{ pending: number }>(sql, component, port)!.pending;
}

function versionOf(tx: SqliteTx, component: string): number {
  return tx.get<{ version: number }>("SELECT version FROM components WHERE component_name = ?", component)?.version ?? 0;
}

const HEAD = "SELECT component_name, port_name, message_id, offset, timestamp, status, attempts, reason FROM checkpoints";

function findMessage(tx: SqliteTx, component: string, key: MessageKey): MessageHead | undefined {
  const row =
    "id" in key
      ? tx.get<MessageRow>(`${HEAD} WHERE component_name = ? AND port_name = ? AND message_id = ?`, component, key.port, key.id)
      : tx.get<MessageRow>(`${HEAD} WHERE component_name = ? AND port_name = ? AND offset = ? LIMIT 1`, component, key.port, key.offset);
  return row && toHead(row);
}

function applyChange(tx: SqliteTx, { component, version, at, messages, ports, state }: ComponentChange): boolean {
  const { changes } =
    version === 0
      ? tx.run("INSERT INTO components (component_name, version, updated_at) VALUES (?, 1, ?) ON CONFLICT DO NOTHING", component, at)
      : tx.run(
          "UPDATE components SET version = version + 1, updated_at = ? WHERE component_name = ? AND version = ?",
          at,
          component,
          version,
        );
  if (changes === 0) return false;
  noteWrite(tx, component, Date.parse(at) / 1_000);
  for (const port of ports) {
    putPort(tx, component, port);
    for (const offset of port.aheadAdded) putAhead(tx, component, port.port, offset);
    if (port.closesGap)
      tx.run("DELETE FROM offsets_ahead WHERE component_name = ? AND port_name = ? AND offset <= ?", component, port.port, port.position);
  }
  for (const message of messages) putMessage(tx, component, message);
  for (const [key, value] of state)
    if (value === null) tx.run("DELETE FROM state WHERE component_name = ? AND key = ?", component, key);
    else putState(tx, component, key, value);
  return true;
}

function assertSnapshot(tx: SqliteTx, id: string): void {
  if (!tx.get("SELECT 1 FROM snapshots WHERE id = ?", id)) throw snapshotNotFoundError(id);
}

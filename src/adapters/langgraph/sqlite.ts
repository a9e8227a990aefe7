import type { Clock } from "../../model/ids.ts";
import type { SqliteTx, SqlValue } from "../../stores/sqlite/driver/driver.ts";
import { singleDatabase } from "../../stores/sqlite/driver/single.ts";
import { threadSchema } from "./sqlite-schema.ts";
import { type CheckpointOutline, type StoredCheckpoint, type ThreadStore, type Typed, toWrite, type WriteRow } from "./thread-store.ts";

/** LangGraph's threads in one SQLite file that several processes may share. */
export function sqliteThreads({ path, now }: { readonly path: string; readonly now: Clock }): ThreadStore {
  const { open: database, close } = singleDatabase({ path, schema: threadSchema });

  const writesOf = (tx: SqliteTx, threadId: string, namespace: string, checkpointId: string) =>
    tx
      .all<WriteRow>(
        "SELECT * FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx",
        threadId,
        namespace,
        checkpointId,
      )
      .map(toWrite);

  return {
    async put({ threadId, namespace, checkpointId, parentId, checkpoint, metadata, changed, unchanged, deltas }) {
      const db = await database();
      await db.write((tx) => {
        const homes = unchanged.length === 0 || parentId === null ? {} : homesIn(tx, threadId, namespace, parentId, unchanged);
        tx.run(
          "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)",
          threadId,
          namespace,
          checkpointId,
          parentId,
          now(),
          JSON.stringify([...changed, ...Object.keys(homes)]),
          JSON.stringify(homes),
          JSON.stringify(deltas),
          metadata.type,
          metadata.data,
          checkpoint.type,
          checkpoint.data,
        );
      });
    },

    async putWrites({ threadId, namespace, checkpointId }, writes) {
      const db = await database();
      await db.write((tx) => {
        for (const { taskId, index, channel, value } of writes)
          tx.run(
            `INSERT ${index < 0 ? "OR REPLACE" : "OR IGNORE"} INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
            threadId,
            namespace,
            checkpointId,
            taskId,
            index,
            channel,
            value.type,
            value.data,
          );
      });
    },

    async get(threadId, namespace, checkpointId) {
      const db = await database();
      return db.read((tx) => {
        const row =
          checkpointId === undefined
            ? tx.get<WholeRow>(
                `SELECT ${WHOLE} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND hidden = 0 ORDER BY checkpoint_id DESC LIMIT 1`,
                threadId,
                namespace,
              )
            : tx.get<WholeRow>(
                `SELECT ${WHOLE} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?`,
                threadId,
                namespace,
                checkpointId,
              );
        if (!row) return undefined;
        const stored = fromWhole(row, threadId, namespace);
        const homes = new Map<string, Typed>();
        for (const id of Object.values(stored.homes)) {
          if (homes.has(id)) continue;
          const home = tx.get<{ type: string; data: Uint8Array }>(
            "SELECT type, checkpoint AS data FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
            threadId,
            namespace,
            id,
          );
          if (home) homes.set(id, home);
        }
        return { stored, writes: writesOf(tx, threadId, namespace, stored.checkpointId), homes };
      });
    },

    async list({ threadId, namespace, checkpointId, before, limit, after }) {
      const db = await database();
      const where = ["hidden = 0"];
      const params: SqlValue[] = [];
      const add = (sql: string, ...values: string[]) => {
        where.push(sql);
        params.push(...values);
      };
      if (threadId !== undefined) add("thread_id = ?", threadId);
      if (namespace !== undefined) add("checkpoint_ns = ?", namespace);
      if (checkpointId !== undefined) add("checkpoint_id = ?", checkpointId);
      if (before !== undefined) add("checkpoint_id < ?", before);
      if (after)
        add(
          "(checkpoint_id < ? OR (checkpoint_id = ? AND (thread_id, checkpoint_ns) > (?, ?)))",
          after.checkpointId,
          after.checkpointId,
          after.threadId,
          after.namespace,
        );
      const sql = `SELECT thread_id, checkpoint_ns, checkpoint_id, metadata_type, metadata FROM checkpoints WHERE ${where.join(" AND ")} ORDER BY checkpoint_id DESC, thread_id, checkpoint_ns LIMIT ?`;
      return db.read((tx) => tx.all<Row>(sql, ...params, limit).map(toListed));
    },

    async writes(threadId, namespace, checkpointIds, channels) {
      const db = await database();
      return db.read((tx) =>
        checkpointIds
          .flatMap((checkpointId) => writesOf(tx, threadId, namespace, checkpointId))
          .filter(({ channel }) => !channels || channels.includes(channel)),
      );
    },

    async lineage({ threadId, namespace, checkpointId }, limit) {
      const db = await database();
      return db.read((tx) => {
        const found: CheckpointOutline[] = [];
        for (let id: string | null = checkpointId; id !== null && found.length < limit; ) {
          const row: OutlineRow | undefined = tx.get<OutlineRow>(
            `SELECT ${OUTLINE} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?`,
            threadId,
            namespace,
            id,
          );
          if (!row) break;
          found.push(toOutline(row));
          id = row.parent_id;
        }
        return found;
      });
    },

    async deleteThread(threadId) {
      const db = await database();
      await db.write((tx) => {
        tx.run("DELETE FROM checkpoints WHERE thread_id = ?", threadId);
        tx.run("DELETE FROM writes WHERE thread_id = ?", threadId);
      });
      await db.eraseLog();
    },

    async threads(after, limit) {
      const db = await database();
      const sql = "SELECT DISTINCT thread_id FROM checkpoints WHERE thread_id > ? ORDER BY thread_id LIMIT ?";
      return db.read((tx) => tx.all<{ thread_id: string }>(sql, after, limit).map(({ thread_id }) => thread_id));
    },

    async outlines(threadId) {
      const db = await database();
      const rows = db.read((tx) =>
        tx.all<OutlineRow & { checkpoint_ns: string }>(
          `SELECT checkpoint_ns, ${OUTLINE} FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_ns, checkpoint_id DESC`,
          threadId,
        ),
      );
      const byNamespace = new Map<string, CheckpointOutline[]>();
      for (const row of rows) {
        const list = byNamespace.get(row.checkpoint_ns) ?? [];
        byNamespace.set(row.checkpoint_ns, list);
        list.push(toOutline(row));
      }
      return byNamespace;
    },

    async remove(threadId, namespace, gone, hidden) {
      const db = await database();
      const freed = await db.write((tx) => {
        let bytes = 0;
        for (const id of hidden)
          tx.run(
            "UPDATE checkpoints SET hidden = 1 WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
            threadId,
            namespace,
            id,
          );
        for (const id of gone) {
          const key = [threadId, namespace, id] as const;
          const sizes = tx.get<{ bytes: number }>(
            `SELECT coalesce((SELECT length(checkpoint) + length(metadata) FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3), 0)
               + coalesce((SELECT sum(length(value)) FROM writes WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3), 0) AS bytes`,
            ...key,
          );
          bytes += sizes!.bytes;
          tx.run("DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?", ...key);
          tx.run("DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?", ...key);
        }
        return bytes;
      });
      if (gone.length > 0) db.eraseLogLater();
      return freed;
    },

    close,
  };
}

const OUTLINE = "checkpoint_id, parent_id, created_at, channels, homes, deltas";

interface OutlineRow {
  checkpoint_id: string;
  parent_id: string | null;
  created_at: string;
  channels: string;
  homes: string;
  deltas: string;
}

interface Row extends OutlineRow {
  thread_id: string;
  checkpoint_ns: string;
  hidden: number;
  metadata_type: string;
  metadata: Uint8Array;
  type: string;
  checkpoint: Uint8Array;
}

/** Handing over one value costs as much as a text of a hundred characters, so the small ones go as one. */
const WHOLE = "json_array(checkpoint_id, parent_id, hidden, metadata_type, type, homes) AS outline, metadata, checkpoint";

interface WholeRow {
  outline: string;
  metadata: Uint8Array;
  checkpoint: Uint8Array;
}

function fromWhole({ outline, metadata, checkpoint }: WholeRow, threadId: string, namespace: string): StoredCheckpoint {
  const [checkpointId, parentId, hidden, metadataType, type, homes] = JSON.parse(outline);
  return {
    threadId,
    namespace,
    checkpointId,
    parentId,
    checkpoint: { type, data: checkpoint },
    metadata: { type: metadataType, data: metadata },
    hidden: hidden === 1,
    homes: homes === "{}" ? {} : JSON.parse(homes),
  };
}

function toListed(row: Row) {
  return {
    threadId: row.thread_id,
    namespace: row.checkpoint_ns,
    checkpointId: row.checkpoint_id,
    metadata: { type: row.metadata_type, data: row.metadata },
  };
}

/** Where the values of a checkpoint's unchanged channels stand: where its parent has them. */
function homesIn(
  tx: SqliteTx,
  threadId: string,
  namespace: string,
  parentId: string,
  unchanged: readonly string[],
): Record<string, string> {
  const parent = tx.get<OutlineRow>(
    `SELECT ${OUTLINE} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?`,
    threadId,
    namespace,
    parentId,
  );
  if (!parent) return {};
  const { channels, homes } = toOutline(parent);
  return Object.fromEntries(
    unchanged.filter((channel) => channels.includes(channel)).map((channel) => [channel, homes[channel] ?? parentId]),
  );
}

function toOutline(row: OutlineRow): CheckpointOutline {
  return {
    checkpointId: row.checkpoint_id,
    parentId: row.parent_id,
    createdAt: row.created_at,
    channels: JSON.parse(row.channels),
    homes: JSON.parse(row.homes),
    deltas: JSON.parse(row.deltas),
  };
}

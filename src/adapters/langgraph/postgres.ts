import { openPostgres, type PgValue } from "../../stores/postgres/driver/driver.ts";
import { ensureSchema } from "../../stores/postgres/driver/schema-version.ts";
import { THREADS_SCHEMA, threadSchema } from "./postgres-schema.ts";
import { type CheckpointOutline, type StoredCheckpoint, type ThreadStore, toWrite, type WriteRow } from "./thread-store.ts";

/** LangGraph's threads in the schema `langgraph` of a PostgreSQL database. Every call is one round trip. */
export function postgresThreads({ url, poolMax }: { readonly url: string; readonly poolMax?: number | undefined }): ThreadStore {
  const database = openPostgres({ url, ...(poolMax === undefined ? {} : { poolMax }) });
  let migrating: Promise<void> | undefined;

  function ready(): Promise<void> {
    migrating ??= ensureSchema(database, THREADS_SCHEMA, threadSchema).catch((error) => {
      migrating = undefined;
      throw error;
    });
    return migrating;
  }
  /** Every statement here can be repeated without harm, so that a restart of the server goes unnoticed. */
  const ask = async <Row>(sql: string, ...params: readonly PgValue[]): Promise<Row[]> => {
    await ready();
    return database.statement<Row>(sql, params, { idempotent: true });
  };

  return {
    async put({ threadId, namespace, checkpointId, parentId, checkpoint, metadata, changed, unchanged, deltas }) {
      await ask(
        `WITH inherited AS (
           SELECT channel, coalesce(parent.homes ->> channel, parent.checkpoint_id) AS home
           FROM langgraph.checkpoints AS parent, unnest($11::text[]) AS channel
           WHERE parent.thread_id = $1 AND parent.checkpoint_ns = $2 AND parent.checkpoint_id = $4::text AND channel = ANY (parent.channels))
         INSERT INTO langgraph.checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_id, channels, homes, deltas, metadata_type, metadata, type, checkpoint)
         SELECT $1, $2, $3, $4::text, $5::text[] || ARRAY(SELECT channel FROM inherited),
           coalesce((SELECT jsonb_object_agg(channel, home) FROM inherited), '{}'), $6, $7, $8, $9, $10
         ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET parent_id = excluded.parent_id, channels = excluded.channels,
           homes = excluded.homes, deltas = excluded.deltas, metadata_type = excluded.metadata_type, metadata = excluded.metadata,
           type = excluded.type, checkpoint = excluded.checkpoint, hidden = false`,
        threadId,
        namespace,
        checkpointId,
        parentId,
        changed,
        deltas,
        metadata.type,
        metadata.data,
        checkpoint.type,
        checkpoint.data,
        unchanged,
      );
    },

    async putWrites({ threadId, namespace, checkpointId }, writes) {
      // Two writes with one key in one statement would be refused; the last one counts, as it would one after the other.
      const distinct = [...new Map(writes.map((write) => [`${write.taskId}\u0000${write.index}`, write])).values()];
      if (distinct.length === 0) return;
      await ask(
        `INSERT INTO langgraph.writes AS known (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
         SELECT $1, $2, $3, task_id, idx, channel, type, decode(value, 'base64')
         FROM unnest($4::text[], $5::integer[], $6::text[], $7::text[], $8::text[]) AS given (task_id, idx, channel, type, value)
         ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE SET channel = excluded.channel, type = excluded.type, value = excluded.value
         WHERE known.idx < 0`,
        threadId,
        namespace,
        checkpointId,
        distinct.map(({ taskId }) => taskId),
        distinct.map(({ index }) => index),
        distinct.map(({ channel }) => channel),
        distinct.map(({ value }) => value.type),
        distinct.map(({ value }) => Buffer.from(value.data.buffer, value.data.byteOffset, value.data.byteLength).toString("base64")),
      );
    },

    async get(threadId, namespace, checkpointId) {
      // The checkpoint, its writes and the homes of its unchanged channels in one answer, every value sent once.
      const rows = await ask<Row & WriteRow & { part: number }>(
        `WITH target AS (
           SELECT * FROM langgraph.checkpoints
           WHERE thread_id = $1 AND checkpoint_ns = $2 AND CASE WHEN $3::text IS NULL THEN NOT hidden ELSE checkpoint_id = $3 END
           ORDER BY checkpoint_id DESC LIMIT 1)
         SELECT 0 AS part, thread_id, checkpoint_ns, checkpoint_id, parent_id, homes, hidden, metadata_type, metadata, type, checkpoint,
           NULL AS task_id, 0 AS idx, NULL AS channel, NULL::bytea AS value FROM target
         UNION ALL
         SELECT 1, NULL, NULL, w.checkpoint_id, NULL, NULL, NULL, NULL, NULL, w.type, NULL, w.task_id, w.idx, w.channel, w.value
         FROM langgraph.writes AS w, target WHERE w.thread_id = $1 AND w.checkpoint_ns = $2 AND w.checkpoint_id = target.checkpoint_id
         UNION ALL
         SELECT 2, NULL, NULL, c.checkpoint_id, NULL, NULL, NULL, NULL, NULL, c.type, c.checkpoint, NULL, 0, NULL, NULL
         FROM langgraph.checkpoints AS c, target
         WHERE c.thread_id = $1 AND c.checkpoint_ns = $2 AND c.checkpoint_id IN (SELECT value FROM jsonb_each_text(target.homes))
         ORDER BY part, task_id, idx`,
        threadId,
        namespace,
        checkpointId ?? null,
      );
      const [first] = rows;
      if (first?.part !== 0) return undefined;
      const homes = rows.filter(({ part }) => part === 2);
      return {
        stored: toStored(first),
        writes: rows.filter(({ part }) => part === 1).map(toWrite),
        homes: new Map(homes.map(({ checkpoint_id, type, checkpoint }) => [checkpoint_id, { type, data: checkpoint }])),
      };
    },

    async list({ threadId, namespace, checkpointId, before, limit, after }) {
      const rows = await ask<Row>(
        `SELECT thread_id, checkpoint_ns, checkpoint_id, metadata_type, metadata FROM langgraph.checkpoints
         WHERE NOT hidden AND ($1::text IS NULL OR thread_id = $1) AND ($2::text IS NULL OR checkpoint_ns = $2) AND ($3::text IS NULL OR checkpoint_id = $3)
           AND ($4::text IS NULL OR checkpoint_id < $4)
           AND ($5::text IS NULL OR checkpoint_id < $5 OR (checkpoint_id = $5 AND (thread_id, checkpoint_ns) > ($6::text, $7::text)))
         ORDER BY checkpoint_id DESC, thread_id, checkpoint_ns LIMIT $8`,
        threadId ?? null,
        namespace ?? null,
        checkpointId ?? null,
        before ?? null,
        after?.checkpointId ?? null,
        after?.threadId ?? null,
        after?.namespace ?? null,
        limit,
      );
      return rows.map(toListed);
    },

    async writes(threadId, namespace, checkpointIds, channels) {
      const rows = await ask<WriteRow>(
        `SELECT * FROM langgraph.writes WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = ANY ($3::text[])
           AND ($4::text[] IS NULL OR channel = ANY ($4)) ORDER BY checkpoint_id, task_id, idx`,
        threadId,
        namespace,
        checkpointIds,
        channels ?? null,
      );
      return rows.map(toWrite);
    },

    async lineage({ threadId, namespace, checkpointId }, limit) {
      const rows = await ask<OutlineRow>(
        `WITH RECURSIVE line AS (
           SELECT ${OUTLINE}, 1 AS depth FROM langgraph.checkpoints WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = $3
           UNION ALL
           SELECT up.checkpoint_id, up.parent_id, up.created_at, up.channels, up.homes, up.deltas, line.depth + 1
           FROM line JOIN langgraph.checkpoints AS up ON up.thread_id = $1 AND up.checkpoint_ns = $2 AND up.checkpoint_id = line.parent_id
           WHERE line.depth < $4)
         SELECT * FROM line ORDER BY depth`,
        threadId,
        namespace,
        checkpointId,
        limit,
      );
      return rows.map(toOutline);
    },

    async deleteThread(threadId) {
      await ask(
        "WITH gone AS (DELETE FROM langgraph.writes WHERE thread_id = $1) DELETE FROM langgraph.checkpoints WHERE thread_id = $1",
        threadId,
      );
    },

    async threads(after, limit) {
      const rows = await ask<{ thread_id: string }>(
        "SELECT DISTINCT thread_id FROM langgraph.checkpoints WHERE thread_id > $1 ORDER BY thread_id LIMIT $2",
        after,
        limit,
      );
      return rows.map(({ thread_id }) => thread_id);
    },

    async outlines(threadId) {
      const rows = await ask<OutlineRow & { checkpoint_ns: string }>(
        `SELECT checkpoint_ns, ${OUTLINE} FROM langgraph.checkpoints WHERE thread_id = $1 ORDER BY checkpoint_ns, checkpoint_id DESC`,
        threadId,
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
      const [sum] = await ask<{ bytes: number }>(
        `WITH hiding AS (
           UPDATE langgraph.checkpoints SET hidden = true WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = ANY ($4::text[])
         ), writes AS (
           DELETE FROM langgraph.writes WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = ANY ($3::text[]) RETURNING octet_length(value) AS bytes
         ), checkpoints AS (
           DELETE FROM langgraph.checkpoints WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = ANY ($3::text[])
           RETURNING octet_length(checkpoint) + octet_length(metadata) AS bytes
         ) SELECT (coalesce((SELECT sum(bytes) FROM writes), 0) + coalesce((SELECT sum(bytes) FROM checkpoints), 0))::bigint AS bytes`,
        threadId,
        namespace,
        gone,
        hidden,
      );
      return sum!.bytes;
    },

    close: () => database.close(),
  };
}

const OUTLINE = "checkpoint_id, parent_id, created_at, channels, homes, deltas";

interface OutlineRow {
  checkpoint_id: string;
  parent_id: string | null;
  created_at: string;
  channels: string[];
  homes: Record<string, string>;
  deltas: string[];
}

interface Row {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  parent_id: string | null;
  homes: Record<string, string>;
  hidden: boolean;
  metadata_type: string;
  metadata: Uint8Array;
  type: string;
  checkpoint: Uint8Array;
}

function toStored(row: Row): StoredCheckpoint {
  return {
    threadId: row.thread_id,
    namespace: row.checkpoint_ns,
    checkpointId: row.checkpoint_id,
    parentId: row.parent_id,
    checkpoint: { type: row.type, data: row.checkpoint },
    metadata: { type: row.metadata_type, data: row.metadata },
    homes: row.homes,
    hidden: row.hidden,
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

function toOutline(row: OutlineRow): CheckpointOutline {
  return {
    checkpointId: row.checkpoint_id,
    parentId: row.parent_id,
    createdAt: row.created_at,
    channels: row.channels,
    homes: row.homes,
    deltas: row.deltas,
  };
}

import type { Run, RunCheckpoint, RunCheckpointInfo } from "../../../model/run.ts";
import * as rules from "../../../model/run-rules.ts";
import type { RunStore } from "../../../ports/run-store.ts";
import { type PayloadEncoding, packState, unpackState } from "../../rows/run-payload.ts";
import { type RunRow, toRun } from "../../rows/run-row.ts";
import { databaseOf, type PgValue, type PostgresSource } from "../driver/driver.ts";
import { postgresEventLog } from "../driver/event-log.ts";
import { ensureSchema } from "../driver/schema-version.ts";
import { checkpointParams } from "./checkpoint-params.ts";
import { postgresGraphCatalog } from "./graphs.ts";
import { prunePostgresRuns } from "./prune.ts";
import { postgresRunQueue } from "./queue.ts";
import { RUNS_SCHEMA, runSchema } from "./schema.ts";
import * as sql from "./sql.ts";
import type { RunStatements } from "./statements.ts";
import { postgresWorkerRegistry } from "./workers.ts";

/** Runs in the schema `runs` of a PostgreSQL database, for any number of machines. Every save is one round trip. */
export function postgresRunStore(options: PostgresSource): RunStore {
  const database = databaseOf(options);
  let migrating: Promise<void> | undefined;

  /** The tables are made by the first call; one that fails is tried again by the next. */
  function ready(): Promise<void> {
    migrating ??= ensureSchema(database, RUNS_SCHEMA, runSchema).catch((error) => {
      migrating = undefined;
      throw error;
    });
    return migrating;
  }
  const ask = async <Row>(text: string, params: readonly PgValue[]): Promise<Row[]> => {
    await ready();
    return database.statement<Row>(text, params, { idempotent: true });
  };
  const change = async <Row>(text: string, params: readonly PgValue[]): Promise<Row[]> => {
    await ready();
    return database.statement<Row>(text, params);
  };
  const statements: RunStatements = { ask, change };
  const record = async (runId: string): Promise<Run | undefined> => {
    const [row] = await ask<RunRow>("SELECT * FROM runs.runs WHERE run_id = $1 AND NOT deleted", [runId]);
    return row && toRun(row);
  };

  const events = postgresEventLog({
    ask,
    change: async (text, params) => (await ask(`${text} RETURNING sequence`, params)).length,
    schema: RUNS_SCHEMA,
  });

  return {
    events,

    async save(checkpoint, { fence, status = null as never, expectedSequence } = {}) {
      const payload = await packState(checkpoint);
      const params = checkpointParams(checkpoint, payload);
      const [saved] =
        fence === undefined
          ? await change<Saved>(sql.SAVE_FREE, [...params, status, expectedSequence ?? null])
          : await change<Saved>(sql.SAVE_FENCED, [...params, fence, status]);
      if (saved) return rules.checkpointInfo(checkpoint, saved.sequence, saved.timestamp, payload.size);
      if (fence !== undefined) throw rules.leaseLostError(checkpoint.runId, fence);
      const until = (await record(checkpoint.runId))?.leaseUntil;
      throw until ? rules.leaseHeldError(checkpoint.runId, until) : rules.concurrentChangeError(checkpoint.runId);
    },

    async load(runId, nodeId) {
      const text = "SELECT * FROM runs.checkpoints WHERE run_id = $1 AND node_id = $2 ORDER BY sequence DESC LIMIT 1";
      const [row] = await ask<CheckpointRow>(text, [runId, nodeId]);
      if (!row) throw rules.checkpointNotFoundError(runId, nodeId);
      return withState(row);
    },

    async loadAt(runId, sequence) {
      const [row] = await ask<CheckpointRow>("SELECT * FROM runs.checkpoints WHERE run_id = $1 AND sequence = $2", [runId, sequence]);
      if (!row) throw rules.checkpointNotFoundError(runId, sequence);
      return withState(row);
    },

    async list(runId) {
      const text = `SELECT ${sql.INFO} FROM runs.checkpoints WHERE run_id = $1 AND sequence IN
        (SELECT max(sequence) FROM runs.checkpoints WHERE run_id = $1 GROUP BY node_id) ORDER BY sequence`;
      return (await ask<InfoRow>(text, [runId])).map(toInfo);
    },

    async history(runId, { before = Number.MAX_SAFE_INTEGER, limit } = {}) {
      const text = `SELECT ${sql.INFO} FROM runs.checkpoints WHERE run_id = $1 AND sequence < $2 ORDER BY sequence DESC LIMIT $3`;
      return (await ask<InfoRow>(text, [runId, before, limit ?? null])).map(toInfo);
    },

    async delete(runId, nodeId) {
      await ask("DELETE FROM runs.checkpoints WHERE run_id = $1 AND node_id = $2", [runId, nodeId]);
    },

    async deleteRun(runId) {
      await ask(sql.DELETE_RUN, [runId]);
    },

    getRun: record,

    async listRuns({ status, graph, project, abandoned = false, limit, after } = {}) {
      const text = `SELECT * FROM runs.runs WHERE NOT deleted
          AND ($1::text IS NULL OR status = $1) AND ($2::text IS NULL OR graph = $2) AND ($3::text IS NULL OR project = $3)
          AND (NOT $4::boolean OR (status = 'running' AND graph <> '' AND (lease_until IS NULL OR lease_until <= clock_timestamp())))
          AND ($5::timestamptz IS NULL OR updated_at < $5 OR (updated_at = $5 AND run_id > $6::text))
        ORDER BY updated_at DESC, run_id LIMIT $7`;
      const params = [
        status ?? null,
        graph ?? null,
        project ?? null,
        abandoned,
        after?.updatedAt ?? null,
        after?.runId ?? null,
        limit ?? null,
      ];
      return (await ask<RunRow>(text, params)).map(toRun);
    },

    async prune(pruneOptions) {
      rules.assertPruneRule(pruneOptions);
      await ready();
      return prunePostgresRuns(database, pruneOptions);
    },

    async start({ runId, graph, fingerprint, project = null, parent = null, owner, leaseMs, first }) {
      const checkpoint = { ...first, runId };
      const payload = await packState(checkpoint);
      const [started] = await change<Held>(sql.START, [
        ...checkpointParams(checkpoint, payload),
        graph,
        fingerprint,
        project,
        parent?.runId ?? null,
        parent?.sequence ?? null,
        owner,
        leaseMs,
      ]);
      if (!started) throw rules.runExistsError(runId);
      return { runId, owner, fence: started.fence, until: started.lease_until };
    },

    async acquire(runId, { owner, leaseMs, fingerprint = null, expected, endedOwner }) {
      const [taken] = await change<Held>(sql.ACQUIRE, [
        runId,
        owner,
        leaseMs,
        fingerprint,
        expected?.fence ?? null,
        expected?.lastSequence ?? null,
        expected?.status ?? null,
        endedOwner ?? null,
      ]);
      if (taken) return { runId, owner, fence: taken.fence, until: taken.lease_until };
      const run = await record(runId);
      if (!run) throw rules.runNotFoundError(runId);
      throw run.leaseUntil === null ? rules.concurrentChangeError(runId) : rules.leaseHeldError(runId, run.leaseUntil);
    },

    async renew(lease, leaseMs) {
      const [renewed] = await ask<Held>(sql.RENEW, [lease.runId, lease.fence, leaseMs]);
      if (!renewed) throw rules.leaseLostError(lease.runId, lease.fence);
      return { ...lease, until: renewed.lease_until };
    },

    async release(lease, { status, note = null }) {
      const [released] = await change(sql.RELEASE, [lease.runId, lease.fence, status, note]);
      if (!released) throw rules.leaseLostError(lease.runId, lease.fence);
    },

    ...postgresRunQueue(statements),
    ...postgresGraphCatalog(statements),
    ...postgresWorkerRegistry(statements),

    close: () => database.close(),
  };
}

interface Saved {
  sequence: number;
  timestamp: string;
}

interface Held {
  fence: number;
  lease_until: string;
}

interface InfoRow {
  run_id: string;
  node_id: string;
  sequence: number;
  timestamp: string;
  version: number;
  next_node: string | null;
  previous_node: string | null;
  attempt: number;
  branch: string;
  step: number;
  kind: RunCheckpointInfo["kind"];
  note: string | null;
  size: number;
}

interface CheckpointRow extends InfoRow {
  encoding: PayloadEncoding;
  data: Uint8Array;
}

function toInfo(row: InfoRow): RunCheckpointInfo {
  rules.assertKnownVersion(row.version, row.run_id);
  return {
    version: row.version,
    runId: row.run_id,
    nodeId: row.node_id,
    sequence: row.sequence,
    timestamp: row.timestamp,
    size: row.size,
    nextNode: row.next_node,
    previousNode: row.previous_node,
    attempt: row.attempt,
    branch: row.branch,
    step: row.step,
    kind: row.kind,
    note: row.note,
  };
}

async function withState(row: CheckpointRow): Promise<RunCheckpoint> {
  return { ...toInfo(row), state: await unpackState(row) };
}

import { type Clock, systemClock } from "../../../model/ids.ts";
import type { StoredState } from "../../../model/run.ts";
import * as rules from "../../../model/run-rules.ts";
import type { RunStore, SaveOptions } from "../../../ports/run-store.ts";
import { packState } from "../../rows/run-payload.ts";
import { type RunRow, toRun } from "../../rows/run-row.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { sqliteEventLog } from "../driver/event-log.ts";
import { singleDatabase } from "../driver/single.ts";
import { sqliteGraphCatalog } from "./graphs.ts";
import { pruneSqliteRuns } from "./prune.ts";
import { sqliteRunQueue } from "./queue.ts";
import { type InfoRow, insertCheckpoint, toCheckpoint, toInfo } from "./rows.ts";
import { MARK_DELETED, runSchema } from "./schema.ts";
import { sqliteWorkerRegistry } from "./workers.ts";

export interface SqliteRunStoreOptions {
  readonly path: string;
  readonly now?: Clock;
}

/** Runs in one SQLite file that several processes may share. */
export function sqliteRunStore({ path, now = systemClock }: SqliteRunStoreOptions): RunStore {
  const { open: database, getOpen, close } = singleDatabase({ path, schema: runSchema });

  return {
    events: sqliteEventLog(path, database),

    async save(checkpoint, options = NO_OPTIONS) {
      const packed = packState(checkpoint);
      const payload = packed instanceof Promise ? await packed : packed;
      const db = await database();
      return db.write((tx) => {
        const at = now();
        const sequence = nextSequence(tx, checkpoint.runId, options, at);
        return insertCheckpoint(tx, checkpoint, payload, sequence, at);
      });
    },

    async load(runId, nodeId) {
      const row = (getOpen() ?? (await database())).one<[string, StoredState]>(LOAD, runId, nodeId);
      if (!row) throw rules.checkpointNotFoundError(runId, nodeId);
      return toCheckpoint(runId, nodeId, row[0], row[1]);
    },

    async loadAt(runId, sequence) {
      const row = (getOpen() ?? (await database())).one<[string, StoredState, string]>(LOAD_AT, runId, sequence);
      if (!row) throw rules.checkpointNotFoundError(runId, sequence);
      return toCheckpoint(runId, row[2], row[0], row[1]);
    },

    async list(runId) {
      const db = await database();
      return db.read((tx) =>
        tx
          .all<InfoRow>(
            `SELECT node_id, envelope FROM checkpoints WHERE run_id = ? AND sequence IN
               (SELECT max(sequence) FROM checkpoints WHERE run_id = ? GROUP BY node_id) ORDER BY sequence`,
            runId,
            runId,
          )
          .map((row) => toInfo(runId, row)),
      );
    },

    async history(runId, { before = Number.MAX_SAFE_INTEGER, limit = NO_LIMIT } = {}) {
      const db = await database();
      return db.read((tx) =>
        tx
          .all<InfoRow>(
            `SELECT node_id, envelope FROM checkpoints WHERE run_id = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?`,
            runId,
            before,
            limit,
          )
          .map((row) => toInfo(runId, row)),
      );
    },

    async delete(runId, nodeId) {
      const db = await database();
      await db.write((tx) => tx.run("DELETE FROM checkpoints WHERE run_id = ? AND node_id = ?", runId, nodeId));
      await db.eraseLog();
    },

    async deleteRun(runId) {
      const db = await database();
      await db.write((tx) => {
        tx.run("DELETE FROM checkpoints WHERE run_id = ?", runId);
        tx.run(MARK_DELETED, runId);
      });
      await db.eraseLog();
    },

    async getRun(runId) {
      const db = await database();
      const row = db.read((tx) => tx.get<RunRow>("SELECT * FROM runs WHERE run_id = ? AND deleted = 0", runId));
      return row && toRun(row);
    },

    async listRuns({ status, graph, project, abandoned, limit = NO_LIMIT, after } = {}) {
      const db = await database();
      const where = ["deleted = 0"];
      const params: (string | number)[] = [];
      const add = (sql: string, ...values: string[]) => {
        where.push(sql);
        params.push(...values);
      };
      if (status !== undefined) add("status = ?", status);
      if (graph !== undefined) add("graph = ?", graph);
      if (project !== undefined) add("project = ?", project);
      if (abandoned) add("status = 'running' AND graph <> '' AND (lease_until IS NULL OR lease_until <= ?)", now());
      if (after) add("(updated_at < ? OR (updated_at = ? AND run_id > ?))", after.updatedAt, after.updatedAt, after.runId);
      const sql = `SELECT * FROM runs WHERE ${where.join(" AND ")} ORDER BY updated_at DESC, run_id LIMIT ?`;
      return db.read((tx) => tx.all<RunRow>(sql, ...params, limit).map(toRun));
    },

    async prune(options) {
      rules.assertPruneRule(options);
      return pruneSqliteRuns(await database(), options);
    },

    async start({ runId, graph, fingerprint, project = null, parent = null, owner, leaseMs, first }) {
      const checkpoint = { ...first, runId };
      const packed = packState(checkpoint);
      const payload = packed instanceof Promise ? await packed : packed;
      const db = await database();
      return db.write((tx) => {
        const at = now();
        const until = rules.addMs(at, leaseMs);
        const started = tx.get<{ fence: number; last_sequence: number }>(
          `INSERT INTO runs (run_id, graph, fingerprint, project, parent_run_id, parent_sequence, last_sequence, fence, lease_owner, lease_until, created_at, updated_at)
           VALUES (?, ?, ?, ?, ?, ?, 1, 1, ?, ?, ?, ?)
           ON CONFLICT (run_id) DO UPDATE SET deleted = 0, graph = excluded.graph, fingerprint = excluded.fingerprint, project = excluded.project,
             status = 'running', note = NULL, ready_at = NULL, claims = 0, claimed_sequence = 0, parent_run_id = excluded.parent_run_id, parent_sequence = excluded.parent_sequence,
             last_sequence = last_sequence + 1, fence = fence + 1, lease_owner = excluded.lease_owner, lease_until = excluded.lease_until,
             created_at = excluded.created_at, updated_at = excluded.updated_at
           WHERE deleted = 1
           RETURNING fence, last_sequence`,
          runId,
          graph,
          fingerprint,
          project,
          parent?.runId ?? null,
          parent?.sequence ?? null,
          owner,
          until,
          at,
          at,
        );
        if (!started) throw rules.runExistsError(runId);
        insertCheckpoint(tx, checkpoint, payload, started.last_sequence, at);
        return { runId, owner, fence: started.fence, until };
      });
    },

    async acquire(runId, { owner, leaseMs, fingerprint = null, expected, endedOwner }) {
      const db = await database();
      return db.write((tx) => {
        const at = now();
        const until = rules.addMs(at, leaseMs);
        const taken = tx.get<{ fence: number }>(
          `UPDATE runs SET fence = fence + 1, lease_owner = ?, lease_until = ?, status = 'running', note = NULL, ready_at = NULL,
             updated_at = ?, fingerprint = coalesce(?, fingerprint)
           WHERE run_id = ? AND deleted = 0 AND (lease_until IS NULL OR lease_until <= ? OR lease_owner = ?)
             AND fence = coalesce(?, fence) AND last_sequence = coalesce(?, last_sequence) AND status = coalesce(?, status) RETURNING fence`,
          owner,
          until,
          at,
          fingerprint,
          runId,
          at,
          endedOwner ?? null,
          expected?.fence ?? null,
          expected?.lastSequence ?? null,
          expected?.status ?? null,
        );
        if (taken) return { runId, owner, fence: taken.fence, until };
        const run = tx.get<RunRow>("SELECT * FROM runs WHERE run_id = ? AND deleted = 0", runId);
        if (!run) throw rules.runNotFoundError(runId);
        throw run.lease_until !== null && run.lease_until > at
          ? rules.leaseHeldError(runId, run.lease_until)
          : rules.concurrentChangeError(runId);
      });
    },

    async renew(lease, leaseMs) {
      const db = await database();
      return db.write((tx) => {
        const at = now();
        const until = rules.addMs(at, leaseMs);
        const { changes } = tx.run(
          "UPDATE runs SET lease_until = ? WHERE run_id = ? AND deleted = 0 AND fence = ? AND lease_until > ?",
          until,
          lease.runId,
          lease.fence,
          at,
        );
        if (changes === 0) throw rules.leaseLostError(lease.runId, lease.fence);
        return { ...lease, until };
      });
    },

    async release(lease, { status, note = null }) {
      const db = await database();
      await db.write((tx) => {
        const at = now();
        const { changes } = tx.run(
          `UPDATE runs SET status = ?1, note = ?2, lease_owner = NULL, lease_until = NULL, updated_at = ?3,
             ready_at = iif(?1 IN ('queued', 'answered'), ?3, NULL), claims = iif(?1 IN ('queued', 'answered'), max(0, claims - 1), claims)
           WHERE run_id = ?4 AND deleted = 0 AND fence = ?5 AND lease_until > ?3`,
          status,
          note,
          at,
          lease.runId,
          lease.fence,
        );
        if (changes === 0) throw rules.leaseLostError(lease.runId, lease.fence);
      });
    },

    ...sqliteRunQueue(database, now),
    ...sqliteGraphCatalog(database, now),
    ...sqliteWorkerRegistry(database, now),

    close,
  };
}

const NO_OPTIONS: SaveOptions = {};

/** SQLite treats a negative limit as no limit. */
const NO_LIMIT = -1;

const LOAD = `SELECT envelope, data FROM checkpoints WHERE run_id = ? AND node_id = ? ORDER BY sequence DESC LIMIT 1`;
const LOAD_AT = `SELECT envelope, data, node_id FROM checkpoints WHERE run_id = ? AND sequence = ?`;

/** Counts the run's sequence up, if this writer may write now. The check and the write are one statement. */
function nextSequence(tx: SqliteTx, runId: string, { fence, status, expectedSequence }: SaveOptions, at: string): number {
  const counted =
    fence === undefined
      ? tx.get<{ last_sequence: number }>(
          `INSERT INTO runs (run_id, last_sequence, created_at, updated_at, status, ready_at)
           SELECT ?1, 1, ?2, ?2, coalesce(?3, 'running'), iif(?3 IN ('queued', 'answered'), ?2, NULL) WHERE ?4 IS NULL OR ?4 = 0 OR EXISTS (SELECT 1 FROM runs WHERE run_id = ?1)
           ON CONFLICT (run_id) DO UPDATE SET last_sequence = last_sequence + 1, updated_at = excluded.updated_at, deleted = 0,
             created_at = iif(deleted = 1, excluded.created_at, created_at),
             status = iif(deleted = 1, excluded.status, coalesce(?3, status)),
             ready_at = iif(?3 IS NULL AND deleted = 0, ready_at, excluded.ready_at),
             note = iif(?3 IS NULL AND deleted = 0, note, NULL)
           WHERE (lease_until IS NULL OR lease_until <= excluded.updated_at)
             AND (?4 IS NULL OR iif(deleted = 1, 0, last_sequence) = ?4) RETURNING last_sequence`,
          runId,
          at,
          status ?? null,
          expectedSequence ?? null,
        )
      : status === undefined
        ? tx.get<{ last_sequence: number }>(
            `UPDATE runs SET last_sequence = last_sequence + 1, updated_at = ?
             WHERE run_id = ? AND fence = ? AND lease_until > ? AND deleted = 0 RETURNING last_sequence`,
            at,
            runId,
            fence,
            at,
          )
        : tx.get<{ last_sequence: number }>(
            `UPDATE runs SET last_sequence = last_sequence + 1, updated_at = ?1, status = ?2, note = NULL,
               lease_owner = iif(?2 = 'running', lease_owner, NULL), lease_until = iif(?2 = 'running', lease_until, NULL),
               ready_at = iif(?2 IN ('queued', 'answered'), ?1, NULL)
             WHERE run_id = ?3 AND fence = ?4 AND lease_until > ?1 AND deleted = 0 RETURNING last_sequence`,
            at,
            status,
            runId,
            fence,
          );
  if (counted) return counted.last_sequence;
  if (fence !== undefined) throw rules.leaseLostError(runId, fence);
  const held = tx.get<RunRow>("SELECT * FROM runs WHERE run_id = ?", runId);
  throw held?.lease_until && held.lease_until > at ? rules.leaseHeldError(runId, held.lease_until) : rules.concurrentChangeError(runId);
}

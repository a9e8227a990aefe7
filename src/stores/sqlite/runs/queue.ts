import type { Clock } from "../../../model/ids.ts";
import { longestWaitingFirst, mayClaim, withClaim, withRequeue } from "../../../model/run-queue-rules.ts";
import { addMs, runExistsError, runNotFoundError } from "../../../model/run-rules.ts";
import type { ClaimQuery, RunQueue } from "../../../ports/run-queue.ts";
import { packState } from "../../rows/run-payload.ts";
import { type RunRow, toRun } from "../../rows/run-row.ts";
import type { SqliteDatabase, SqliteTx } from "../driver/driver.ts";
import { insertCheckpoint } from "./rows.ts";

/** The queue of runs. A write transaction excludes every other writer, so that the rules are applied as they are. */
export function sqliteRunQueue(database: () => Promise<SqliteDatabase>, now: Clock): RunQueue {
  return {
    async enqueue({ runId, graph, fingerprint, project = null, parent = null, delayMs = 0, first }) {
      const checkpoint = { ...first, runId };
      const payload = await packState(checkpoint);
      const db = await database();
      return db.write((tx) => {
        const at = now();
        const row = tx.get<RunRow>(
          ENQUEUE,
          runId,
          graph,
          fingerprint,
          project,
          parent?.runId ?? null,
          parent?.sequence ?? null,
          addMs(at, delayMs),
          at,
        );
        if (!row) throw runExistsError(runId);
        insertCheckpoint(tx, checkpoint, payload, row.last_sequence, at);
        return toRun(row);
      });
    },

    async requeue(runId, options) {
      const db = await database();
      return db.write((tx) => {
        const row = tx.get<RunRow>("SELECT * FROM runs WHERE run_id = ? AND deleted = 0", runId);
        if (!row) throw runNotFoundError(runId);
        const run = withRequeue(toRun(row), options, now());
        const { status, readyAt, claims, claimedSequence, updatedAt } = run;
        tx.run(REQUEUE, status, readyAt, claims, claimedSequence, updatedAt, runId);
        return run;
      });
    },

    async claim(query) {
      const db = await database();
      // Most polls find nothing: they only read, and do not keep others from writing.
      if (db.read((tx) => claimable(tx, query, now())).length === 0) return [];
      return db.write((tx) => {
        const at = now();
        const until = addMs(at, query.leaseMs);
        return claimable(tx, query, at).map((run) => {
          const { runId, fence, updatedAt, claims, claimedSequence } = withClaim(run, query.owner, until, at);
          tx.run(CLAIM, fence, query.owner, until, claims, claimedSequence, updatedAt, runId);
          return { lease: { runId, owner: query.owner, fence, until }, status: run.status, claims };
        });
      });
    },
  };
}

/** Running runs that a claim looks at. Those with a valid lease are executed by a process, which limits their number. */
const RUNNING_MAX = 1_000;

function claimable(tx: SqliteTx, query: ClaimQuery, at: string) {
  const { graph, fingerprint, from, limit, endedOwners = [] } = query;
  const rows =
    from === "queued"
      ? tx.all<RunRow>(QUEUED, graph, fingerprint, at, limit)
      : tx.all<RunRow>(ABANDONED, graph, fingerprint, at, JSON.stringify(endedOwners), RUNNING_MAX);
  const runs = rows.map(toRun).filter((run) => mayClaim(run, query, at));
  return runs.sort(longestWaitingFirst).slice(0, limit);
}

const ENQUEUE = `INSERT INTO runs (run_id, graph, fingerprint, project, parent_run_id, parent_sequence, status, last_sequence, ready_at, created_at, updated_at)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'queued', 1, ?7, ?8, ?8)
  ON CONFLICT (run_id) DO UPDATE SET deleted = 0, graph = excluded.graph, fingerprint = excluded.fingerprint, project = excluded.project,
    status = 'queued', note = NULL, parent_run_id = excluded.parent_run_id, parent_sequence = excluded.parent_sequence,
    last_sequence = last_sequence + 1, ready_at = excluded.ready_at, claims = 0, claimed_sequence = 0,
    created_at = excluded.created_at, updated_at = excluded.updated_at
  WHERE deleted = 1 RETURNING *`;

const REQUEUE = `UPDATE runs SET status = ?, ready_at = ?, claims = ?, claimed_sequence = ?, updated_at = ?, lease_owner = NULL, lease_until = NULL
  WHERE run_id = ?`;

const CLAIM = `UPDATE runs SET fence = ?, lease_owner = ?, lease_until = ?, claims = ?, claimed_sequence = ?, updated_at = ?, status = 'running',
  note = NULL, ready_at = NULL WHERE run_id = ?`;

const QUEUED = `SELECT * FROM runs WHERE status IN ('queued', 'answered') AND deleted = 0 AND graph = ? AND fingerprint = ? AND ready_at <= ?
  ORDER BY ready_at, run_id LIMIT ?`;

const ABANDONED = `SELECT * FROM runs WHERE status = 'running' AND deleted = 0 AND graph = ? AND fingerprint = ?
  AND (lease_until IS NULL OR lease_until <= ? OR lease_owner IN (SELECT value FROM json_each(?))) ORDER BY updated_at, run_id LIMIT ?`;

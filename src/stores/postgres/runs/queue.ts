import type { RunStatus } from "../../../model/run.ts";
import { CLAIM_BACKOFF_MS } from "../../../model/run-queue-rules.ts";
import { concurrentChangeError, leaseHeldError, runExistsError, runNotFoundError } from "../../../model/run-rules.ts";
import type { RunQueue } from "../../../ports/run-queue.ts";
import { packState } from "../../rows/run-payload.ts";
import { type RunRow, toRun } from "../../rows/run-row.ts";
import { checkpointParams } from "./checkpoint-params.ts";
import { CHECKPOINT, CLOCK } from "./sql.ts";
import type { RunStatements } from "./statements.ts";

/** The queue of runs. Each verb is one statement; claims skip the rows that another claim has locked. */
export function postgresRunQueue({ ask, change }: RunStatements): RunQueue {
  return {
    async enqueue({ runId, graph, fingerprint, project = null, parent = null, delayMs = 0, first }) {
      const checkpoint = { ...first, runId };
      const params = checkpointParams(checkpoint, await packState(checkpoint));
      const of = [graph, fingerprint, project, parent?.runId ?? null, parent?.sequence ?? null, delayMs];
      const [row] = await change<RunRow>(ENQUEUE, [...params, ...of]);
      if (!row) throw runExistsError(runId);
      return toRun(row);
    },

    async requeue(runId, { status, delayMs = 0, expected, keepClaims = false }) {
      const { fence, lastSequence, status: before } = expected;
      const [row] = await change<RunRow>(REQUEUE, [runId, status, delayMs, fence, lastSequence, before, keepClaims]);
      if (row) return toRun(row);
      const [found] = await ask<RunRow & { held: boolean }>(FIND, [runId]);
      if (!found) throw runNotFoundError(runId);
      throw found.held ? leaseHeldError(runId, found.lease_until!) : concurrentChangeError(runId);
    },

    async claim({ graph, fingerprint, from, owner, leaseMs, limit, endedOwners = [] }) {
      const params = [graph, fingerprint, owner, leaseMs, limit];
      const rows =
        from === "queued"
          ? await change<ClaimedRow>(CLAIM_QUEUED, params)
          : await change<ClaimedRow>(CLAIM_ABANDONED, [...params, [...endedOwners]]);
      return rows.map(({ run_id: runId, fence, lease_until: until, status, claims }) => ({
        lease: { runId, owner, fence, until },
        status,
        claims,
      }));
    },
  };
}

interface ClaimedRow {
  run_id: string;
  fence: number;
  lease_until: string;
  status: RunStatus;
  claims: number;
}

const FIND = "SELECT *, coalesce(lease_until > clock_timestamp(), false) AS held FROM runs.runs WHERE run_id = $1 AND NOT deleted";

/** $14 graph, $15 fingerprint, $16 project, $17 and $18 parent, $19 delay in ms. */
const ENQUEUE = `WITH ${CLOCK}, counted AS (
  INSERT INTO runs.runs AS known (run_id, graph, fingerprint, project, parent_run_id, parent_sequence, status, last_sequence, ready_at, created_at, updated_at)
  SELECT $1::text, $14::text, $15::text, $16::text, $17::text, $18::bigint, 'queued', 1, clock.at + $19::bigint * interval '1 millisecond', clock.at, clock.at FROM clock
  ON CONFLICT (run_id) DO UPDATE SET deleted = false, graph = excluded.graph, fingerprint = excluded.fingerprint, project = excluded.project,
    status = 'queued', note = NULL, parent_run_id = excluded.parent_run_id, parent_sequence = excluded.parent_sequence,
    last_sequence = known.last_sequence + 1, ready_at = excluded.ready_at, claims = 0, claimed_sequence = 0,
    created_at = excluded.created_at, updated_at = excluded.updated_at
  WHERE known.deleted
  RETURNING *
), first AS (${CHECKPOINT("counted")})
SELECT counted.* FROM counted, first`;

/** $1 run, $2 status, $3 delay in ms, $4 to $6 the expected fence, last sequence and status, $7 whether the claims are kept. */
const REQUEUE = `WITH ${CLOCK} UPDATE runs.runs SET status = $2::text, ready_at = clock.at + $3::bigint * interval '1 millisecond', lease_owner = NULL,
  lease_until = NULL, claims = CASE WHEN $7::boolean THEN claims ELSE 0 END, claimed_sequence = last_sequence, updated_at = clock.at
  FROM clock WHERE run_id = $1::text AND NOT deleted AND (lease_until IS NULL OR lease_until <= clock.at)
  AND fence = $4::bigint AND last_sequence = $5::bigint AND status = $6::text RETURNING runs.*`;

/** $1 graph, $2 fingerprint, $3 owner, $4 lease in ms, $5 limit, and what `found` needs. */
const claimSql = (found: string) => `WITH ${CLOCK}, found AS (${found} LIMIT $5::integer FOR UPDATE OF candidate SKIP LOCKED)
  UPDATE runs.runs AS run SET fence = run.fence + 1, lease_owner = $3::text, lease_until = clock.at + $4::bigint * interval '1 millisecond',
    status = 'running', note = NULL, ready_at = NULL, updated_at = clock.at,
    claims = CASE WHEN run.last_sequence > run.claimed_sequence THEN 1 ELSE run.claims + 1 END, claimed_sequence = run.last_sequence
  FROM found, clock WHERE run.run_id = found.run_id RETURNING run.run_id, run.fence, run.lease_until, found.status, run.claims`;

const CLAIM_QUEUED = claimSql(`SELECT run_id, status FROM runs.runs AS candidate, clock
  WHERE status IN ('queued', 'answered') AND NOT deleted AND graph = $1::text AND fingerprint = $2::text AND ready_at <= clock.at
    AND (lease_until IS NULL OR lease_until <= clock.at)
  ORDER BY ready_at, run_id`);

/** $6 owners that have ended. The delay is that of `claimDelayMs` in model/run-queue-rules.ts. */
const CLAIM_ABANDONED = claimSql(`SELECT run_id, status FROM runs.runs AS candidate, clock
  WHERE status = 'running' AND NOT deleted AND graph = $1::text AND fingerprint = $2::text
    AND (lease_until IS NULL OR lease_until <= clock.at OR lease_owner = ANY ($6::text[]))
    AND updated_at + interval '1 millisecond' * CASE WHEN claims > 0 AND last_sequence <= claimed_sequence
      THEN least(${CLAIM_BACKOFF_MS.max}, ${CLAIM_BACKOFF_MS.first} * power(2, least(claims, 20) - 1)) ELSE 0 END <= clock.at
  ORDER BY updated_at, run_id`);

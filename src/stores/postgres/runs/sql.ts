/** Statements that each do a whole verb in one round trip. The server's clock decides about leases, so that machines need not agree on the time. */

export const CLOCK = "clock AS (SELECT date_trunc('milliseconds', clock_timestamp()) AS at)";

const COLUMNS =
  "run_id, node_id, sequence, timestamp, version, next_node, previous_node, attempt, branch, step, kind, note, size, encoding, data";

/** $1 to $12: a checkpoint, as \`checkpointParams\` lists it. */
export const CHECKPOINT = (counted: string) => `INSERT INTO runs.checkpoints (${COLUMNS})
  SELECT $1::text, $2::text, ${counted}.last_sequence, ${counted}.updated_at, $3::integer, $4::text, $5::text, $6::integer, $7::text, $8::integer,
    $9::text, $10::text, $11::bigint, $12::text, $13::bytea FROM ${counted} RETURNING sequence, timestamp`;

/** $14 fence, $15 status. The check of the token, the count and the row are one statement: all of it or none. */
export const SAVE_FENCED = `WITH ${CLOCK}, counted AS (
  UPDATE runs.runs SET last_sequence = last_sequence + 1, updated_at = clock.at, status = coalesce($15::text, status),
    note = CASE WHEN $15::text IS NULL THEN note END,
    lease_owner = CASE WHEN coalesce($15::text, 'running') = 'running' THEN lease_owner END,
    lease_until = CASE WHEN coalesce($15::text, 'running') = 'running' THEN lease_until END,
    ready_at = CASE WHEN $15::text IN ('queued', 'answered') THEN clock.at END
  FROM clock WHERE run_id = $1::text AND NOT deleted AND fence = $14::bigint AND lease_until > clock.at
  RETURNING last_sequence, updated_at
) ${CHECKPOINT("counted")}`;

/** $14 status, $15 the expected last sequence. */
export const SAVE_FREE = `WITH ${CLOCK}, counted AS (
  INSERT INTO runs.runs AS known (run_id, last_sequence, created_at, updated_at, status, ready_at)
  SELECT $1::text, 1, clock.at, clock.at, coalesce($14::text, 'running'), CASE WHEN $14::text IN ('queued', 'answered') THEN clock.at END FROM clock
  WHERE coalesce($15::bigint, 0) = 0 OR EXISTS (SELECT 1 FROM runs.runs WHERE run_id = $1::text)
  ON CONFLICT (run_id) DO UPDATE SET last_sequence = known.last_sequence + 1, updated_at = excluded.updated_at, deleted = false,
    created_at = CASE WHEN known.deleted THEN excluded.created_at ELSE known.created_at END,
    status = CASE WHEN known.deleted THEN excluded.status ELSE coalesce($14::text, known.status) END,
    ready_at = CASE WHEN $14::text IS NULL AND NOT known.deleted THEN known.ready_at ELSE excluded.ready_at END,
    note = CASE WHEN $14::text IS NULL AND NOT known.deleted THEN known.note END
  WHERE (known.lease_until IS NULL OR known.lease_until <= excluded.updated_at)
    AND ($15::bigint IS NULL OR CASE WHEN known.deleted THEN 0 ELSE known.last_sequence END = $15::bigint)
  RETURNING last_sequence, updated_at
) ${CHECKPOINT("counted")}`;

/** $14 graph, $15 fingerprint, $16 project, $17 and $18 parent, $19 owner, $20 lease in ms. */
export const START = `WITH ${CLOCK}, counted AS (
  INSERT INTO runs.runs AS known (run_id, graph, fingerprint, project, parent_run_id, parent_sequence, last_sequence, fence, lease_owner, lease_until, created_at, updated_at)
  SELECT $1::text, $14::text, $15::text, $16::text, $17::text, $18::bigint, 1, 1, $19::text, clock.at + $20::bigint * interval '1 millisecond', clock.at, clock.at FROM clock
  ON CONFLICT (run_id) DO UPDATE SET deleted = false, graph = excluded.graph, fingerprint = excluded.fingerprint, project = excluded.project,
    status = 'running', note = NULL, ready_at = NULL, claims = 0, claimed_sequence = 0,
    parent_run_id = excluded.parent_run_id, parent_sequence = excluded.parent_sequence, last_sequence = known.last_sequence + 1, fence = known.fence + 1, lease_owner = excluded.lease_owner, lease_until = excluded.lease_until,
    created_at = excluded.created_at, updated_at = excluded.updated_at
  WHERE known.deleted
  RETURNING last_sequence, updated_at, fence, lease_until
), first AS (${CHECKPOINT("counted")})
SELECT counted.fence, counted.lease_until FROM counted, first`;

/** $1 run, $2 owner, $3 lease in ms, $4 fingerprint, $5 to $7 the expected fence, last sequence and status, $8 an owner that has ended. */
export const ACQUIRE = `WITH ${CLOCK} UPDATE runs.runs SET fence = fence + 1, lease_owner = $2::text,
  lease_until = clock.at + $3::bigint * interval '1 millisecond', status = 'running', note = NULL, ready_at = NULL, updated_at = clock.at,
  fingerprint = coalesce($4::text, fingerprint)
  FROM clock WHERE run_id = $1::text AND NOT deleted AND (lease_until IS NULL OR lease_until <= clock.at OR lease_owner = $8::text)
  AND fence = coalesce($5::bigint, fence) AND last_sequence = coalesce($6::bigint, last_sequence) AND status = coalesce($7::text, status) RETURNING fence, lease_until`;

/** $1 run, $2 fence, $3 lease in ms. */
export const RENEW = `WITH ${CLOCK} UPDATE runs.runs SET lease_until = clock.at + $3::bigint * interval '1 millisecond'
  FROM clock WHERE run_id = $1::text AND NOT deleted AND fence = $2::bigint AND lease_until > clock.at RETURNING lease_until`;

/** $1 run, $2 fence, $3 status, $4 note. */
export const RELEASE = `WITH ${CLOCK} UPDATE runs.runs SET status = $3::text, note = $4::text, lease_owner = NULL, lease_until = NULL, updated_at = clock.at,
  ready_at = CASE WHEN $3::text IN ('queued', 'answered') THEN clock.at END,
  claims = CASE WHEN $3::text IN ('queued', 'answered') THEN greatest(0, claims - 1) ELSE claims END
  FROM clock WHERE run_id = $1::text AND NOT deleted AND fence = $2::bigint AND lease_until > clock.at RETURNING fence`;

/** Deletes everything of a run but its counters, and fences off its lease holder. */
export const MARK_DELETED = `UPDATE runs.runs SET deleted = true, fence = fence + 1, lease_owner = NULL, lease_until = NULL, graph = '', fingerprint = '',
  project = NULL, note = NULL, ready_at = NULL, claims = 0, claimed_sequence = 0 WHERE run_id = $1::text AND NOT deleted`;

export const DELETE_RUN = `WITH gone AS (DELETE FROM runs.checkpoints WHERE run_id = $1::text) ${MARK_DELETED}`;

/** The columns of a checkpoint without its state. */
export const INFO = COLUMNS.replace(", encoding, data", "");

const FINISHED = "(graph = '' OR status IN ('completed', 'failed', 'cancelled'))";

/** $1 run, $2 time. */
export const MAY_DELETE_RUN = `SELECT 1 FROM runs.runs WHERE run_id = $1::text AND NOT deleted AND updated_at < $2::timestamptz AND ${FINISHED} FOR UPDATE`;

/** What retention removes of one run: see \`selectPrunable\` in model/run-rules.ts. $1 run, $2 time, $3 how many to keep, $4 batch. */
export const PRUNABLE = `SELECT sequence FROM runs.checkpoints AS old
  WHERE run_id = $1::text AND timestamp < $2::timestamptz
    AND sequence <= coalesce((SELECT sequence FROM runs.checkpoints WHERE run_id = $1::text ORDER BY sequence DESC LIMIT 1 OFFSET $3::bigint), 0)
    AND EXISTS (SELECT 1 FROM runs.checkpoints AS newer WHERE newer.run_id = $1::text AND newer.node_id = old.node_id AND newer.sequence > old.sequence)
    AND (EXISTS (SELECT 1 FROM runs.runs WHERE run_id = $1::text AND ${FINISHED})
      OR sequence < coalesce((SELECT sequence FROM runs.checkpoints WHERE run_id = $1::text AND branch = '' ORDER BY sequence DESC LIMIT 1), 0))
  LIMIT $4::integer`;

export const deleteSql = (sequences: string) => `WITH gone AS (
    DELETE FROM runs.checkpoints WHERE run_id = $1::text AND sequence = ANY (ARRAY(${sequences})) RETURNING octet_length(data) AS bytes
  ) SELECT count(*) AS n, coalesce(sum(bytes), 0)::bigint AS bytes FROM gone`;

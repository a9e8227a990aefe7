import type { Run, RunStatus } from "../../model/run.ts";

/** A row of `runs`, which has the same columns in SQLite and PostgreSQL. */
export interface RunRow {
  run_id: string;
  graph: string;
  fingerprint: string;
  project: string | null;
  status: RunStatus;
  note: string | null;
  parent_run_id: string | null;
  parent_sequence: number | null;
  last_sequence: number;
  fence: number;
  lease_owner: string | null;
  lease_until: string | null;
  ready_at: string | null;
  claims: number;
  claimed_sequence: number;
  created_at: string;
  updated_at: string;
}

export function toRun(row: RunRow): Run {
  return {
    runId: row.run_id,
    graph: row.graph,
    fingerprint: row.fingerprint,
    project: row.project,
    status: row.status,
    note: row.note,
    parent: row.parent_run_id === null ? null : { runId: row.parent_run_id, sequence: row.parent_sequence! },
    lastSequence: row.last_sequence,
    fence: row.fence,
    leaseOwner: row.lease_owner,
    leaseUntil: row.lease_until,
    readyAt: row.ready_at,
    claims: row.claims,
    claimedSequence: row.claimed_sequence,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

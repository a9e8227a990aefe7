import type { RunWorker } from "../../model/run-worker.ts";

/** A row of `workers`, which has the same columns in SQLite and PostgreSQL. */
export interface WorkerRow {
  worker_id: string;
  graph: string;
  fingerprint: string;
  owner: string;
  command: string | null;
  folder: string | null;
  started_at: string;
  until: string;
  listening: boolean | number;
}

export function toWorker(row: WorkerRow): RunWorker {
  return {
    workerId: row.worker_id,
    graph: row.graph,
    fingerprint: row.fingerprint,
    owner: row.owner,
    command: row.command,
    folder: row.folder,
    startedAt: row.started_at,
    until: row.until,
    listening: row.listening === true || row.listening === 1,
  };
}

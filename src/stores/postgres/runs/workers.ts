import { WORKER_RETENTION_MS } from "../../../model/run-worker.ts";
import type { WorkerRegistry } from "../../../ports/run-queue.ts";
import { toWorker, type WorkerRow } from "../../rows/worker-row.ts";
import { CLOCK } from "./sql.ts";
import type { RunStatements } from "./statements.ts";

/** The workers that listen for runs, one row per worker and graph. */
export function postgresWorkerRegistry({ ask }: RunStatements): WorkerRegistry {
  return {
    async announce({ workerId, owner, graphs, command, folder }, leaseMs) {
      const names = graphs.map(({ graph }) => graph);
      const fingerprints = graphs.map(({ fingerprint }) => fingerprint);
      await ask(ANNOUNCE, [workerId, names, fingerprints, owner, command, folder, leaseMs]);
    },

    async withdraw(workerId) {
      await ask("UPDATE runs.workers SET until = date_trunc('milliseconds', clock_timestamp()) WHERE worker_id = $1", [workerId]);
    },

    async listWorkers({ graph, limit }) {
      const text = `SELECT *, until > clock_timestamp() AS listening FROM runs.workers WHERE $1::text IS NULL OR graph = $1
        ORDER BY until DESC, worker_id, graph LIMIT $2`;
      return (await ask<WorkerRow>(text, [graph ?? null, limit])).map(toWorker);
    },
  };
}

/**
 * $1 worker, $2 graphs, $3 fingerprints, $4 owner, $5 command, $6 folder, $7 lease in ms. Deletes expired workers that this one replaces or
 * that expired long ago: see `withAnnouncement` in model/run-worker.ts.
 */
const ANNOUNCE = `WITH ${CLOCK}, gone AS (
  DELETE FROM runs.workers USING clock WHERE worker_id <> $1::text AND until <= clock.at
    AND ((command IS NOT DISTINCT FROM $5::text AND folder IS NOT DISTINCT FROM $6::text) OR until < clock.at - interval '${WORKER_RETENTION_MS} milliseconds')
) INSERT INTO runs.workers (worker_id, graph, fingerprint, owner, command, folder, started_at, until)
  SELECT $1::text, graph, fingerprint, $4::text, $5::text, $6::text, clock.at, clock.at + $7::bigint * interval '1 millisecond'
  FROM clock, unnest($2::text[], $3::text[]) AS of (graph, fingerprint)
  ON CONFLICT (worker_id, graph, fingerprint) DO UPDATE SET until = excluded.until`;

import type { Clock } from "../../../model/ids.ts";
import { addMs } from "../../../model/run-rules.ts";
import { WORKER_RETENTION_MS } from "../../../model/run-worker.ts";
import type { WorkerRegistry } from "../../../ports/run-queue.ts";
import { toWorker, type WorkerRow } from "../../rows/worker-row.ts";
import type { SqliteDatabase } from "../driver/driver.ts";

/** The workers that listen for runs, one row per worker and graph. */
export function sqliteWorkerRegistry(database: () => Promise<SqliteDatabase>, now: Clock): WorkerRegistry {
  return {
    async announce({ workerId, owner, graphs, command, folder }, leaseMs) {
      const db = await database();
      await db.write((tx) => {
        const at = now();
        tx.run(REMOVE_EXPIRED, workerId, at, command, folder, addMs(at, -WORKER_RETENTION_MS));
        for (const { graph, fingerprint } of graphs)
          tx.run(ANNOUNCE, workerId, graph, fingerprint, owner, command, folder, at, addMs(at, leaseMs));
      });
    },

    async withdraw(workerId) {
      const db = await database();
      await db.write((tx) => tx.run("UPDATE workers SET until = ? WHERE worker_id = ?", now(), workerId));
    },

    async listWorkers({ graph, limit }) {
      const db = await database();
      const sql =
        "SELECT *, until > ?1 AS listening FROM workers WHERE ?2 IS NULL OR graph = ?2 ORDER BY until DESC, worker_id, graph LIMIT ?3";
      return db.read((tx) => tx.all<WorkerRow>(sql, now(), graph ?? null, limit)).map(toWorker);
    },
  };
}

/** Deletes expired workers that this one replaces or that expired long ago: see `withAnnouncement` in model/run-worker.ts. */
const REMOVE_EXPIRED = `DELETE FROM workers WHERE worker_id <> ?1 AND until <= ?2 AND ((command IS ?3 AND folder IS ?4) OR until < ?5)`;

const ANNOUNCE = `INSERT INTO workers (worker_id, graph, fingerprint, owner, command, folder, started_at, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET until = excluded.until`;

import type { GraphShape } from "../../model/graph-shape.ts";
import type { Clock } from "../../model/ids.ts";
import { addMs } from "../../model/run-rules.ts";
import { type StoredWorker, selectWorkers, withAnnouncement } from "../../model/run-worker.ts";
import type { GraphCatalog, WorkerRegistry } from "../../ports/run-queue.ts";

/** The shapes of graphs in memory, in the order in which they were saved. */
export function memoryGraphCatalog(): GraphCatalog {
  const shapes = new Map<string, GraphShape>();
  const keyOf = (graph: string, fingerprint: string) => JSON.stringify([graph, fingerprint]);
  return {
    async saveGraph(shape) {
      const key = keyOf(shape.graph, shape.fingerprint);
      if (!shapes.has(key)) shapes.set(key, structuredClone(shape));
    },
    getGraph: async (graph, fingerprint) => structuredClone(shapes.get(keyOf(graph, fingerprint))),
    async listGraphs({ graph, limit }) {
      const found = [...shapes.values()].filter((shape) => graph === undefined || shape.graph === graph);
      return structuredClone(found.reverse().slice(0, limit));
    },
  };
}

/** The workers of this process. */
export function memoryWorkerRegistry(now: Clock): WorkerRegistry {
  let workers: readonly StoredWorker[] = [];
  return {
    async announce(worker, leaseMs) {
      const at = now();
      workers = withAnnouncement(workers, worker, at, addMs(at, leaseMs));
    },
    async withdraw(workerId) {
      const at = now();
      workers = workers.map((worker) => (worker.workerId === workerId ? { ...worker, until: at } : worker));
    },
    listWorkers: async (query) => selectWorkers(workers, query, now()),
  };
}

import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { isAbandoned } from "../model/migration.ts";
import type { NewRunCheckpoint, RunCheckpointInfo, RunLease } from "../model/run.ts";
import type { GraphCatalog } from "../ports/run-queue.ts";
import type { AcquireOptions, NewRun, RunStore, SaveOptions } from "../ports/run-store.ts";
import { retry } from "../scheduling/retry.ts";
import type { GraphDefinition } from "./definition.ts";
import { shapeOf } from "./shape.ts";

/** The writes of the engine, retried while the database is unavailable. */
export interface RetryingStore {
  /** Stores the shape of the graph if this process has not stored it yet. */
  storeShape(graph: GraphDefinition): Promise<void>;
  start(run: NewRun): Promise<RunLease>;
  acquire(runId: string, options: AcquireOptions): Promise<RunLease>;
  save(checkpoint: NewRunCheckpoint, options: SaveOptions): Promise<RunCheckpointInfo>;
  release(lease: RunLease, outcome: Parameters<RunStore["release"]>[1]): Promise<void>;
}

/**
 * Retries while the store is unavailable. A write whose response was lost may have been applied: a retry checks that first, so that
 * the history of a run has every step once.
 */
export function retryingStore(store: RunStore, waitMs: number): RetryingStore {
  function retryUnlessDone<T>(attempt: () => Promise<T>, done: () => Promise<T | undefined>, triedBefore = 0): Promise<T> {
    const once = async (number: number) => {
      const found = triedBefore + number > 1 ? await done() : undefined;
      return found ?? attempt();
    };
    return retry(once, { backoff: BACKOFF, isRetryable: isTransient, limitMs: waitMs });
  }

  /** Returns the lease of the run if this owner has it. */
  async function heldBy(runId: string, owner: string): Promise<RunLease | undefined> {
    const run = await store.getRun(runId);
    return run?.leaseOwner === owner && run.leaseUntil ? { runId, owner, fence: run.fence, until: run.leaseUntil } : undefined;
  }

  return {
    async storeShape(graph) {
      if (storedShapes.get(store)?.has(graph.fingerprint)) return;
      await retry(() => storeShape(store, graph), { backoff: BACKOFF, isRetryable: isTransient, limitMs: waitMs });
    },
    start: (run) =>
      retryUnlessDone(
        () => store.start(run),
        () => heldBy(run.runId, run.owner),
      ),
    acquire: (runId, options) =>
      retryUnlessDone(
        () => store.acquire(runId, options),
        () => heldBy(runId, options.owner),
      ),
    async save(checkpoint, options) {
      try {
        return await store.save(checkpoint, options); // the common case
      } catch (error) {
        if (!isTransient(error)) throw error;
      }
      return retryUnlessDone(
        () => store.save(checkpoint, options),
        async () => {
          const { branch = "", step = 0, kind = "node", attempt = 1 } = checkpoint;
          const recent = await store.history(checkpoint.runId, { limit: 100 });
          return recent.find(
            (info) =>
              info.branch === branch &&
              info.step === step &&
              info.kind === kind &&
              info.attempt === attempt &&
              info.nodeId === checkpoint.nodeId &&
              info.note === (checkpoint.note ?? null),
          );
        },
        1,
      );
    },
    async release(lease, outcome) {
      await retryUnlessDone(
        async () => {
          await store.release(lease, outcome);
          return true;
        },
        async () => {
          const run = await store.getRun(lease.runId);
          return (run?.fence === lease.fence && run.leaseOwner === null && run.status === outcome.status) || undefined;
        },
      );
    },
  };
}

/** The fingerprints of the shapes that this process has stored, by store. */
const storedShapes = new WeakMap<object, Set<string>>();

/** Stores the shape of a graph once per store and process. A shape above the limit is not stored: its runs are drawn by their steps. */
export async function storeShape(store: GraphCatalog, graph: GraphDefinition): Promise<void> {
  const known = storedShapes.get(store) ?? new Set();
  if (known.has(graph.fingerprint)) return;
  const shape = shapeOf(graph);
  if (JSON.stringify(shape).length <= LIMITS.runShapeChars) await store.saveGraph(shape);
  storedShapes.set(store, known.add(graph.fingerprint));
}

const BACKOFF = { firstMs: 20, maxMs: 1_000 };

/** Returns whether waiting can help. A damaged database and an abandoned migration need an operator. */
function isTransient(error: unknown): boolean {
  return error instanceof CairnError && error.code === "unavailable" && error.details?.damaged !== true && !isAbandoned(error);
}

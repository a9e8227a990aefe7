import { CairnError } from "../model/errors.ts";
import type { ClaimedRun } from "../ports/run-queue.ts";
import type { RunStore } from "../ports/run-store.ts";
import { tokenBucket } from "../scheduling/rate-limit.ts";
import { retryDelayMs } from "../scheduling/retry.ts";
import type { HandOver } from "./hand-over.ts";
import { messageOf } from "./run-error.ts";
import type { WorkerEvent, WorkerGraph, WorkerSettings } from "./worker-options.ts";

export interface LaneDeps {
  readonly store: RunStore;
  readonly settings: WorkerSettings;
  readonly handOver: HandOver;
  readonly owner: string;
  readonly emit: (event: WorkerEvent) => void;
  /** Called when an execution has ended. */
  readonly onEnd: () => void;
}

/** The runs of one graph in a worker: claims them within the limits of the graph, and executes them. */
export interface WorkerLane {
  readonly graph: string;
  readonly fingerprint: string;
  readonly active: ReadonlySet<Promise<void>>;
  /** Claims and starts up to `limit` runs; returns their number. */
  take(from: "queued" | "abandoned", limit: number, endedOwners?: readonly string[]): Promise<number>;
}

const RETRY_BACKOFF = { firstMs: 1_000, maxMs: 300_000 };

export function workerLane(
  { graph, concurrency, perSecond, retry, run: options = {} }: WorkerGraph,
  { store, settings, handOver, owner, emit, onEnd }: LaneDeps,
): WorkerLane {
  const { name, fingerprint } = graph;
  const active = new Set<Promise<void>>();
  const bucket = perSecond === undefined ? undefined : tokenBucket({ perSecond, burst: Math.max(1, perSecond) });
  const room = () => Math.min((concurrency ?? settings.concurrency) - active.size, bucket?.count() ?? Number.POSITIVE_INFINITY);

  async function execute(claim: ClaimedRun): Promise<void> {
    const { runId } = claim.lease;
    try {
      if (claim.claims > Math.max(settings.maxClaims, retry?.attempts ?? 0)) await giveUp(claim);
      const result = await graph.continueClaimed(claim, { ...options, store, leaseMs: settings.leaseMs, handOver });
      emit({ type: "ended", runId, graph: name, status: result.status });
    } catch (error) {
      const retryInMs = await requeueFailed(claim).catch((problem) => void emit({ type: "problem", error: problem }));
      emit({ type: "failed", runId, graph: name, error, ...(retryInMs !== undefined && { retryInMs }) });
    }
  }

  /** Fails a run whose workers ended again and again, so that it does not end the next one. */
  async function giveUp({ lease, claims }: ClaimedRun): Promise<never> {
    const message = `The processes of ${claims - 1} executions ended without finishing a step. Check the step, then resume the run.`;
    await store.release(lease, { status: "failed", note: JSON.stringify({ kind: "node", message }) });
    throw new CairnError("internal", message, { details: { kind: "claims", runId: lease.runId } });
  }

  /** Puts a failed run back into the queue if it has attempts left, and returns the delay. */
  async function requeueFailed({ lease, claims }: ClaimedRun): Promise<number | undefined> {
    if (retry === undefined || claims >= retry.attempts) return undefined;
    const run = await store.getRun(lease.runId);
    if (run?.status !== "failed" || run.fence !== lease.fence) return undefined;
    const delayMs = Math.round(retryDelayMs({ ...RETRY_BACKOFF, ...retry }, claims));
    await store.requeue(lease.runId, { status: "queued", delayMs, expected: run, keepClaims: true });
    return delayMs;
  }

  return {
    graph: name,
    fingerprint,
    active,
    async take(from, limit, endedOwners) {
      const most = Math.min(limit, Math.floor(room()));
      if (most < 1) return 0;
      const claims = await store.claim({ graph: name, fingerprint, from, owner, leaseMs: settings.leaseMs, limit: most, endedOwners });
      for (const claim of claims) {
        bucket?.take();
        emit({ type: "claimed", runId: claim.lease.runId, graph: name, status: claim.status });
        const task: Promise<void> = execute(claim)
          .catch((error) => emit({ type: "problem", error: new Error(messageOf(error), { cause: error }) }))
          .finally(() => {
            active.delete(task);
            onEnd();
          });
        active.add(task);
      }
      return claims.length;
    },
  };
}

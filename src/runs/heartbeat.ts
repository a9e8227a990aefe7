import { CairnError } from "../model/errors.ts";
import type { RunLease } from "../model/run.ts";
import type { RunLeaseStore } from "../ports/run-store.ts";
import type { Scope } from "./scope.ts";

/** Renews the lease during the run and aborts the run's scope when the lease is lost. Returns the function that stops it. */
export function keepLease(store: RunLeaseStore, lease: RunLease, leaseMs: number, scope: Scope): () => void {
  let renewedAt = Date.now();
  let asking = false;

  async function beat(): Promise<void> {
    if (asking || scope.aborted) return;
    asking = true;
    try {
      const at = Date.now();
      await store.renew(lease, leaseMs);
      renewedAt = at;
    } catch (error) {
      const lost = error instanceof CairnError && error.code === "conflict";
      if (lost) scope.abort(error);
      else if (Date.now() - renewedAt > leaseMs)
        scope.abort(
          new CairnError(
            "conflict",
            `The lease on the run could not be renewed for ${leaseMs} ms, so another process may have it by now. Resume the run.`,
            {
              cause: error,
              details: { kind: "fenced", runId: lease.runId, fence: lease.fence },
            },
          ),
        );
    } finally {
      asking = false;
    }
  }

  const timer = setInterval(() => void beat(), leaseMs / 3);
  timer.unref();
  return () => clearInterval(timer);
}

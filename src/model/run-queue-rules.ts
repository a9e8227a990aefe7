import { isQueued, type Run, type RunStatus } from "./run.ts";
import { addMs, concurrentChangeError, leaseHeldError } from "./run-rules.ts";

/** The state transitions of the queue of runs, as pure functions. The SQL stores implement the same rules. */

/** Milliseconds before a run without progress is claimed again: doubled after each claim, up to the maximum. */
export const CLAIM_BACKOFF_MS = { first: 1_000, max: 300_000 } as const;

/** Selects the runs that a worker claims. */
export interface ClaimQuery {
  readonly graph: string;
  readonly fingerprint: string;
  /** `queued`: runs that wait for a worker. `abandoned`: running ones whose lease has expired or whose owner has ended. */
  readonly from: "queued" | "abandoned";
  readonly owner: string;
  readonly leaseMs: number;
  readonly limit: number;
  /** Owners whose processes have ended: their leases are taken over before they expire. */
  readonly endedOwners?: readonly string[] | undefined;
}

/** Returns whether the query may claim the run now. */
export function mayClaim(run: Run, { graph, fingerprint, from, endedOwners = [] }: ClaimQuery, now: string): boolean {
  if (run.graph !== graph || run.fingerprint !== fingerprint) return false;
  const expired = run.leaseUntil === null || run.leaseUntil <= now;
  if (from === "queued") return isQueued(run.status) && expired && run.readyAt !== null && run.readyAt <= now;
  const ended = run.leaseOwner !== null && endedOwners.includes(run.leaseOwner);
  return run.status === "running" && (expired || ended) && addMs(run.updatedAt, claimDelayMs(run)) <= now;
}

/** Returns the delay before the next claim of an abandoned run: none after progress, so that a healthy run is taken over at once. */
export function claimDelayMs({ claims, lastSequence, claimedSequence }: Run): number {
  if (claims === 0 || lastSequence > claimedSequence) return 0;
  return Math.min(CLAIM_BACKOFF_MS.max, CLAIM_BACKOFF_MS.first * 2 ** (claims - 1));
}

/** Compares runs by the time since which they wait, ties by id. */
export function longestWaitingFirst(a: Run, b: Run): number {
  const [waitsA, waitsB] = [a.readyAt ?? a.updatedAt, b.readyAt ?? b.updatedAt];
  if (waitsA !== waitsB) return waitsA < waitsB ? -1 : 1;
  return a.runId < b.runId ? -1 : 1;
}

/** Returns the record after a claim. */
export function withClaim(run: Run, owner: string, until: string, now: string): Run {
  return {
    ...run,
    fence: run.fence + 1,
    leaseOwner: owner,
    leaseUntil: until,
    status: "running",
    note: null,
    readyAt: null,
    claims: run.lastSequence > run.claimedSequence ? 1 : run.claims + 1,
    claimedSequence: run.lastSequence,
    updatedAt: now,
  };
}

/** How a run is put back into the queue. */
export interface RequeueOptions {
  readonly status: "queued" | "answered";
  /** Milliseconds before a worker may claim it; default 0. */
  readonly delayMs?: number | undefined;
  /** Puts it back only if it still has these values; otherwise raises `conflict`. */
  readonly expected: Pick<Run, "fence" | "lastSequence" | "status">;
  /** Keeps the count of claims, because the run failed again. Default: counts from 0. */
  readonly keepClaims?: boolean | undefined;
}

/** Returns the record of a run that waits for a worker again; raises `conflict` while a process executes it. */
export function withRequeue(run: Run, { status, delayMs = 0, expected, keepClaims = false }: RequeueOptions, now: string): Run {
  if (run.leaseUntil !== null && run.leaseUntil > now) throw leaseHeldError(run.runId, run.leaseUntil);
  if (expected.fence !== run.fence || expected.lastSequence !== run.lastSequence || expected.status !== run.status)
    throw concurrentChangeError(run.runId);
  return {
    ...run,
    status,
    readyAt: addMs(now, delayMs),
    leaseOwner: null,
    leaseUntil: null,
    claims: keepClaims ? run.claims : 0,
    claimedSequence: run.lastSequence,
    updatedAt: now,
  };
}

/** Returns the record after its lease was released. A run that goes back to the queue unfinished does not count as a claim. */
export function withRelease(run: Run, status: RunStatus, note: string | null, now: string): Run {
  const queued = isQueued(status);
  return {
    ...run,
    status,
    note,
    leaseOwner: null,
    leaseUntil: null,
    readyAt: queued ? now : null,
    claims: queued ? Math.max(0, run.claims - 1) : run.claims,
    updatedAt: now,
  };
}

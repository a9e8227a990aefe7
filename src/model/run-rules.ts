import { CairnError } from "./errors.ts";
import {
  CHECKPOINT_VERSION,
  isFinished,
  isQueued,
  type NewRunCheckpoint,
  type Run,
  type RunCheckpointInfo,
  type RunLease,
  type RunQuery,
  type RunStatus,
} from "./run.ts";

/** The state transitions of a run's record, as pure functions. The memory and file stores apply them; the SQL stores implement the same rules. */

/** Raises `conflict` unless this writer may save to the run now. */
export function assertMayWrite(run: Run | undefined, runId: string, fence: number | undefined, now: string): void {
  const held = run?.leaseUntil != null && run.leaseUntil > now;
  if (fence === undefined) {
    if (held) throw leaseHeldError(runId, run.leaseUntil!);
  } else if (!held || run.fence !== fence) throw leaseLostError(runId, fence);
}

/** Returns the record after one more checkpoint. */
export function withCheckpoint(run: Run | undefined, runId: string, status: RunStatus | undefined, now: string): Run {
  const before = run ?? newRecord(runId, now);
  const release = status !== undefined && status !== "running";
  return {
    ...before,
    lastSequence: before.lastSequence + 1,
    status: status ?? before.status,
    note: status === undefined ? before.note : null,
    leaseOwner: release ? null : before.leaseOwner,
    leaseUntil: release ? null : before.leaseUntil,
    readyAt: status === undefined ? before.readyAt : isQueued(status) ? now : null,
    updatedAt: now,
  };
}

/** Raises `conflict` unless the run has this newest sequence. */
export function assertUnchanged(run: Run | undefined, runId: string, lastSequence: number | undefined): void {
  if (lastSequence !== undefined && (run?.lastSequence ?? 0) !== lastSequence) throw concurrentChangeError(runId);
}

/** Returns the record with a new lease and a higher fencing token. */
export function withLease(
  run: Run,
  owner: string,
  until: string,
  now: string,
  { expected, endedOwner }: { expected?: Pick<Run, "fence" | "lastSequence" | "status"> | undefined; endedOwner?: string | undefined } = {},
): Run {
  const ended = endedOwner !== undefined && run.leaseOwner === endedOwner;
  if (run.leaseUntil !== null && run.leaseUntil > now && !ended) throw leaseHeldError(run.runId, run.leaseUntil);
  if (expected && (expected.fence !== run.fence || expected.lastSequence !== run.lastSequence || expected.status !== run.status))
    throw concurrentChangeError(run.runId);
  return {
    ...run,
    fence: run.fence + 1,
    leaseOwner: owner,
    leaseUntil: until,
    status: "running",
    note: null,
    readyAt: null,
    updatedAt: now,
  };
}

/** Raises `conflict` unless the lease is valid. */
export function assertHeld(run: Run | undefined, lease: RunLease, now: string): asserts run is Run {
  if (run?.leaseUntil == null || run.fence !== lease.fence || run.leaseUntil <= now) throw leaseLostError(lease.runId, lease.fence);
}

export function newRecord(runId: string, now: string): Run {
  return {
    runId,
    graph: "",
    fingerprint: "",
    project: null,
    status: "running",
    note: null,
    parent: null,
    lastSequence: 0,
    fence: 0,
    leaseOwner: null,
    leaseUntil: null,
    readyAt: null,
    claims: 0,
    claimedSequence: 0,
    createdAt: now,
    updatedAt: now,
  };
}

export function addMs(now: string, ms: number): string {
  return new Date(Date.parse(now) + ms).toISOString();
}

export function leaseLostError(runId: string, fence: number): CairnError {
  return new CairnError(
    "conflict",
    `This process lost the lease of the run ${JSON.stringify(runId)}: it expired, or another process acquired it. Nothing was written; resume the run to continue.`,
    { details: { kind: "fenced", runId, fence } },
  );
}

export function leaseHeldError(runId: string, until: string): CairnError {
  return new CairnError(
    "conflict",
    `Another process executes the run ${JSON.stringify(runId)} (its lease ends at ${until}). Wait until it finishes, or try again after that time.`,
    { details: { kind: "held", runId, until }, retryAfterMs: Math.max(1, Date.parse(until) - Date.now()) },
  );
}

export function concurrentChangeError(runId: string): CairnError {
  return new CairnError("conflict", `Another process changed the run ${JSON.stringify(runId)} meanwhile. Read it again, then retry.`, {
    details: { kind: "moved", runId },
  });
}

export function runExistsError(runId: string): CairnError {
  return new CairnError("conflict", `The run ${JSON.stringify(runId)} already exists. Resume it, or choose another id.`, {
    details: { kind: "exists", runId },
  });
}

export function runNotFoundError(runId: string): CairnError {
  return new CairnError("not_found", `There is no run ${JSON.stringify(runId)}. run_list shows the runs.`, {
    details: { kind: "run", runId },
  });
}

export function checkpointNotFoundError(runId: string, which: string | number): CairnError {
  const named = typeof which === "number" ? `with sequence ${which}` : `of node ${JSON.stringify(which)}`;
  return new CairnError("not_found", `The run ${JSON.stringify(runId)} has no checkpoint ${named}. Its history lists the checkpoints.`, {
    details: { kind: "checkpoint", runId, which },
  });
}

/** Reports whether the run can be resumed, so that its newest position must be kept. Checkpoints saved without a graph cannot be resumed. */
export function isResumable(run: Pick<Run, "graph" | "status">): boolean {
  return run.graph !== "" && !isFinished(run.status);
}

/** Selects the checkpoints that retention deletes: `"run"` for all of them, else their sequences. `newestFirst` is the whole history. */
export function selectPrunable(
  run: Run,
  newestFirst: readonly Pick<RunCheckpointInfo, "sequence" | "timestamp" | "nodeId" | "branch">[],
  { olderThan, keepLast }: { readonly olderThan?: string | undefined; readonly keepLast?: number | undefined },
): "run" | number[] {
  if (olderThan !== undefined && !keepLast && !isResumable(run) && run.updatedAt < olderThan) return "run";
  const position = isResumable(run) ? (newestFirst.find(({ branch }) => branch === "")?.sequence ?? 0) : Number.POSITIVE_INFINITY;
  const seen = new Set<string>();
  const gone: number[] = [];
  for (const [rank, { sequence, timestamp, nodeId }] of newestFirst.entries()) {
    const newestOfNode = !seen.has(nodeId);
    seen.add(nodeId);
    if (newestOfNode || sequence >= position) continue;
    if (olderThan !== undefined && timestamp >= olderThan) continue;
    if (keepLast !== undefined && rank < keepLast) continue;
    gone.push(sequence);
  }
  return gone;
}

/** Raises `invalid_input` unless at least one retention rule is given. */
export function assertPruneRule({
  olderThan,
  keepLast,
}: {
  readonly olderThan?: string | undefined;
  readonly keepLast?: number | undefined;
}): void {
  if (olderThan === undefined && keepLast === undefined) throw new CairnError("invalid_input", "prune: give olderThan, keepLast or both.");
  // JavaScript callers may pass a Date, which stores would compare with text.
  if (olderThan !== undefined && (typeof olderThan !== "string" || Number.isNaN(Date.parse(olderThan))))
    throw new CairnError("invalid_input", "prune: olderThan must be a time in ISO 8601, as text.");
  if (keepLast !== undefined && !(Number.isInteger(keepLast) && keepLast >= 0))
    throw new CairnError("invalid_input", "prune: keepLast must be a whole number from 0.");
}

/** Returns the stored form of a checkpoint, with defaults for omitted fields. */
export function checkpointInfo(checkpoint: NewRunCheckpoint, sequence: number, timestamp: string, size: number): RunCheckpointInfo {
  return {
    version: CHECKPOINT_VERSION,
    runId: checkpoint.runId,
    nodeId: checkpoint.nodeId,
    sequence,
    timestamp,
    size,
    nextNode: checkpoint.nextNode ?? null,
    previousNode: checkpoint.previousNode ?? null,
    attempt: checkpoint.attempt ?? 1,
    branch: checkpoint.branch ?? "",
    step: checkpoint.step ?? 0,
    kind: checkpoint.kind ?? "node",
    note: checkpoint.note ?? null,
  };
}

export function matchesRun(run: Run, { status, graph, project, abandoned, after }: RunQuery, at: string): boolean {
  if (status !== undefined && run.status !== status) return false;
  if (graph !== undefined && run.graph !== graph) return false;
  if (project !== undefined && run.project !== project) return false;
  if (abandoned && !(run.status === "running" && run.graph !== "" && (run.leaseUntil === null || run.leaseUntil <= at))) return false;
  return !after || newestRunFirst(run, after) > 0;
}

/** Compares runs: newest change first, ties by id. */
export function newestRunFirst(a: { updatedAt: string; runId: string }, b: { updatedAt: string; runId: string }): number {
  if (a.updatedAt !== b.updatedAt) return a.updatedAt < b.updatedAt ? 1 : -1;
  return a.runId < b.runId ? -1 : a.runId > b.runId ? 1 : 0;
}

/** Refuses a checkpoint of a newer format, which this version could misread. */
export function assertKnownVersion(version: number, runId: string): void {
  if (version !== CHECKPOINT_VERSION)
    throw new CairnError(
      "unavailable",
      `A checkpoint of the run ${JSON.stringify(runId)} has format ${version}; this version of Cairn reads ${CHECKPOINT_VERSION}. Upgrade Cairn to resume it.`,
      { details: { kind: "version", runId, version } },
    );
}

import { join } from "node:path";
import { asCairnError } from "../../model/errors.ts";
import { projectDatabaseName } from "../../model/ids.ts";
import type { IndexReport } from "../../model/index-report.ts";
import { redactMessage } from "../../text/redact-message.ts";
import { openHashCache } from "../files/hash-cache.ts";
import { resolveJobRoot } from "../files/root.ts";
import type { OnFolder } from "../files/walk.ts";
import { type IndexTarget, type TargetRetryOptions, withRetry } from "./index-target.ts";
import { indexTree } from "./index-tree.ts";
import type { Job } from "./job.ts";
import { jobFiles } from "./job-files.ts";
import { type Lease, leases } from "./lease.ts";
import { tally } from "./tally.ts";

export interface IndexSettings extends TargetRetryOptions {
  readonly batchFiles?: number | undefined;
  readonly batchBytes?: number | undefined;
}

export interface OpenTarget {
  readonly target: IndexTarget;
  close(): Promise<void>;
}

export interface JobRun extends IndexSettings {
  readonly dataDir: string;
  readonly job: Job;
  /** The lease that was acquired for this job. */
  readonly lease: Lease;
  /** Opens the target for the job, which closes it at the end. */
  readonly openTarget: () => Promise<OpenTarget>;
  /** Interrupts the job when aborted; it can be resumed. */
  readonly stop: AbortSignal;
  readonly onFolder?: OnFolder | undefined;
}

/** Milliseconds between two writes of the job's file. */
const REPORT_MS = 250;
const PUBLISH_MS = 2_000;
/** Milliseconds that a report to the index may take. */
const ANNOUNCE_MS = 5_000;

/** Runs a job to its end, reports its progress and result in its file, and releases the lease. Errors of the job are reported, not thrown. */
export async function runJob({ dataDir, job, lease, openTarget, stop, onFolder, ...settings }: JobRun): Promise<Job> {
  const files = jobFiles(dataDir);
  const ending = new AbortController();
  let endedBy: "stop" | "cancel" | "lost lease" | undefined;
  const end = (reason: NonNullable<typeof endedBy>) => {
    endedBy ??= reason;
    ending.abort();
  };
  const onStop = () => end("stop");
  if (stop.aborted) onStop();
  else stop.addEventListener("abort", onStop, { once: true });
  const held = await leases(dataDir).hold(lease, () => end("lost lease"));

  const counting = tally();
  let reported: Job = { ...job, status: "running", startedAt: job.startedAt ?? new Date().toISOString() };
  const report = async (change: Partial<Job> = {}) => {
    if (endedBy === "lost lease") return; // the job and its file belong to another process now
    reported = { ...reported, ...counting.state(), updatedAt: new Date().toISOString(), ...change };
    await files.write(reported);
  };
  let publishedAt = 0;
  const tick = async () => {
    await report();
    if (await files.isCancelRequested(job.jobId)) end("cancel");
    if (Date.now() - publishedAt > PUBLISH_MS) {
      publishedAt = Date.now();
      await files.publish();
      await announce();
    }
  };
  let announceTo: ((signal: AbortSignal) => Promise<{ readonly cancelRequested: boolean }>) | undefined;
  /** Reports the job in the index, where the console reads it. The job does not depend on it. A watch announces only what changed something. */
  const announce = async () => {
    const answer = await announceTo?.(AbortSignal.timeout(ANNOUNCE_MS)).catch(() => undefined);
    if (answer?.cancelRequested) end("cancel");
  };
  let ticking = Promise.resolve();
  let isTicking = false;
  const timer = setInterval(() => {
    if (isTicking) return; // ticks must not queue on a slow disk
    isTicking = true;
    // A full disk prevents the report, not the job.
    ticking = tick()
      .catch(() => {})
      .finally(() => {
        isTicking = false;
      });
  }, REPORT_MS);

  let index: Job["index"];
  let closeTarget = async () => {};
  const work = async (): Promise<void> => {
    ending.signal.throwIfAborted();
    await tick();
    const root = await resolveJobRoot(job);
    const cache = await openHashCache(join(dataDir, "jobs", `${projectDatabaseName(job.projectPath)}.hashes`), root);
    const { target, close } = await openTarget();
    closeTarget = close;
    const isWatch = onFolder !== undefined;
    // A report creates the index, and only a missing index can be copied from another project.
    const isEarly = () => target.seed !== undefined && EARLY_PHASES.has(counting.state().phase);
    announceTo = async (signal) => (isEarly() || (isWatch && isIdle(reported)) ? NOT_CANCELLED : target.report(toReport(reported), signal));
    await announce();
    try {
      const { batchFiles, batchBytes } = settings;
      const { includeIgnored, anywhere } = job;
      const choice = { includeIgnored, anywhere, batchFiles, batchBytes, onFolder };
      await indexTree({ root, target: withRetry(target, settings), cache, tally: counting, signal: ending.signal, ...choice });
      index = await target.counts(ending.signal).catch(() => undefined); // the job is complete without them
    } finally {
      await cache.save().catch(() => {}); // files are read again then
    }
  };
  const outcome = await work().then(
    (): Partial<Job> => ({ status: counting.state().counts.failed > 0 ? "partial" : "completed", index }),
    (error: unknown): Partial<Job> => {
      if (endedBy === "stop") return { status: "pending" };
      if (endedBy === "cancel") return { status: "cancelled" };
      return { status: "failed", error: reasonOf(error) };
    },
  );

  clearInterval(timer);
  stop.removeEventListener("abort", onStop);
  await ticking;
  const isInterrupted = outcome.status === "pending";
  await report({
    phase: isInterrupted ? "interrupted" : "ended",
    currentFile: undefined,
    etaSeconds: undefined,
    ...outcome,
    ...(!isInterrupted && { finishedAt: new Date().toISOString() }),
  }).catch(() => {});
  if (endedBy !== "lost lease") await announce();
  await closeTarget();
  await held.release().catch(() => {}); // it expires
  await files.publish().catch(() => {}); // the next job does it
  return reported;
}

/** Phases before the index may be created. */
const EARLY_PHASES: ReadonlySet<string> = new Set(["starting", "walking", "copying"]);
const NOT_CANCELLED = { cancelRequested: false };

/** Whether a job found nothing to do. */
function isIdle({ status, counts: { indexed, renamed, removed, failed } }: Job): boolean {
  return status !== "failed" && indexed + renamed + removed + failed === 0;
}

function toReport(job: Job): IndexReport {
  const { jobId, status, phase, updatedAt, finishedAt, filesProcessed, filesTotal, currentFile, etaSeconds, error } = job;
  return {
    ...{ jobId, status, phase, updatedAt, filesProcessed, filesTotal },
    startedAt: job.startedAt ?? job.createdAt,
    ...(finishedAt !== undefined && { finishedAt }),
    ...(currentFile !== undefined && { currentFile }),
    ...(etaSeconds !== undefined && { etaSeconds }),
    ...(error !== undefined && { error }),
    counts: job.counts,
    skipped: job.skipped,
    skippedFiles: job.skippedFiles,
    failedFiles: job.failedFiles.map(({ path, reason }) => ({ path, reason })),
  };
}

function reasonOf(thrown: unknown): string {
  const { code, message, cause } = asCairnError(thrown);
  return redactMessage(code === "internal" && cause instanceof Error ? cause.message : message);
}

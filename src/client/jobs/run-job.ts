import { join } from "node:path";
import { asCairnError } from "../../model/errors.ts";
import { projectDatabaseName } from "../../model/ids.ts";
import { redactMessage } from "../../text/redact-message.ts";
import { openMemo } from "../files/memo.ts";
import { resolveJobRoot } from "../files/root.ts";
import type { OnFolder } from "../files/walk.ts";
import { indexPass } from "./index-pass.ts";
import { type IndexTarget, type Patience, patient } from "./index-target.ts";
import type { Job } from "./job.ts";
import { jobFiles } from "./job-files.ts";
import { type Lease, leases } from "./lease.ts";
import { tally } from "./tally.ts";

/** What can be chosen about how an index is sent. */
export interface IndexSettings extends Patience {
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
  /** Taken for this job by whoever made it. */
  readonly lease: Lease;
  /** Opened for the job and closed after it. */
  readonly openTarget: () => Promise<OpenTarget>;
  /** Aborted to stop here: the job waits to be taken up again. */
  readonly stop: AbortSignal;
  readonly onFolder?: OnFolder | undefined;
}

/** Often enough for a person who watches; the file is small. */
const TELL_MS = 250;
const PUBLISH_MS = 2_000;

/** Runs a job to its end, and tells of it in its file. Whatever happens, the lease is given back. Never throws for what goes wrong in the job. */
export async function runJob({ dataDir, job, lease, openTarget, stop, onFolder, ...settings }: JobRun): Promise<Job> {
  const jobs = jobFiles(dataDir);
  const ending = new AbortController();
  let why: "stopped" | "cancelled" | "lost" | undefined;
  const end = (reason: NonNullable<typeof why>) => {
    why ??= reason;
    ending.abort();
  };
  const stopped = () => end("stopped");
  if (stop.aborted) stopped();
  else stop.addEventListener("abort", stopped, { once: true });
  const kept = await leases(dataDir).keep(lease, () => end("lost"));

  const counting = tally();
  let told: Job = { ...job, status: "running", started_at: job.started_at ?? new Date().toISOString() };
  const tell = async (change: Partial<Job> = {}) => {
    if (why === "lost") return; // the job is another's now, and so is its file
    told = { ...told, ...counting.state(), updated_at: new Date().toISOString(), ...change };
    await jobs.write(told);
  };
  let publishedAt = 0;
  const tick = async () => {
    await tell();
    if (await jobs.isAskedToCancel(job.id)) end("cancelled");
    if (Date.now() - publishedAt > PUBLISH_MS) {
      publishedAt = Date.now();
      await jobs.publish();
    }
  };
  let ticking = Promise.resolve();
  let behind = false;
  const timer = setInterval(() => {
    if (behind) return; // a slow disk must not gather ticks
    behind = true;
    // A disk that is full costs the progress, not the job.
    ticking = tick()
      .catch(() => {})
      .finally(() => {
        behind = false;
      });
  }, TELL_MS);

  let index: Job["index"];
  const work = async (): Promise<void> => {
    ending.signal.throwIfAborted();
    await tick();
    const root = await resolveJobRoot(job);
    const memo = await openMemo(join(dataDir, "jobs", `${projectDatabaseName(job.project_id)}.seen`), root);
    const { target, close } = await openTarget();
    try {
      const { batchFiles, batchBytes } = settings;
      const choice = { includeIgnored: job.include_ignored, anywhere: job.anywhere, batchFiles, batchBytes, onFolder };
      await indexPass({ root, target: patient(target, settings), memo, tally: counting, signal: ending.signal, ...choice });
      index = await target.counts(ending.signal).catch(() => undefined); // the job is done without
    } finally {
      await memo.save().catch(() => {}); // what was read need not be read again
      await close();
    }
  };
  const outcome = await work().then(
    (): Partial<Job> => ({ status: counting.state().counts.failed > 0 ? "partial" : "completed", index }),
    (error: unknown): Partial<Job> => {
      if (why === "stopped") return { status: "pending" };
      if (why === "cancelled") return { status: "cancelled" };
      return { status: "failed", error: reasonOf(error) };
    },
  );

  clearInterval(timer);
  stop.removeEventListener("abort", stopped);
  await ticking;
  const finished = outcome.status === "pending" ? {} : { finished_at: new Date().toISOString() };
  await tell({
    phase: outcome.status === "pending" ? "waiting to go on" : "over",
    current_file: undefined,
    eta_seconds: undefined,
    ...outcome,
    ...finished,
  }).catch(() => {});
  await kept.release().catch(() => {}); // it runs out by itself
  await jobs.publish().catch(() => {}); // the next job does it
  return told;
}

function reasonOf(thrown: unknown): string {
  const { code, message, cause } = asCairnError(thrown);
  return redactMessage(code === "internal" && cause instanceof Error ? cause.message : message);
}

import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../../model/errors.ts";
import { newId } from "../../model/ids.ts";
import { poll } from "../../scheduling/retry.ts";
import { resolveJobRoot } from "../files/root.ts";
import { type StaleCheck, staleCheck } from "../files/stale.ts";
import type { IndexCounts } from "./index-target.ts";
import { hasEnded, type Job } from "./job.ts";
import { jobFiles } from "./job-files.ts";
import { type Lease, leases } from "./lease.ts";

export interface IndexRequest {
  readonly projectPath: string;
  readonly includeIgnored?: boolean | undefined;
  readonly anywhere?: boolean | undefined;
  /** Waits until the job has ended. */
  readonly wait?: boolean | undefined;
}

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number | undefined, message?: string) => void) | undefined;
}

/** Indexing on the client side: jobs that walk a tree and send changed files to the index. */
export interface IndexJobs {
  /** Starts a job, or joins the job of the project that runs in any process. */
  index(request: IndexRequest, options?: WaitOptions): Promise<Job>;
  /** Returns the jobs of a project, newest first. */
  jobs(projectPath: string): Promise<Job[]>;
  /** Cancels the job of a project, also one of another process. */
  cancel(of: { readonly projectPath: string; readonly jobId?: string | undefined }): Promise<Job>;
  /** Continues the interrupted job of a project, if there is one. */
  resume(projectPath: string): Promise<Job | undefined>;
  /** Counts what the index holds of a project. While a job runs, it returns the counts that the jobs recorded, so as not to slow the job down. */
  counts(projectPath: string, jobs: readonly Job[]): Promise<IndexCounts>;
  /** Returns whether a file has changed since it was indexed. */
  readonly isStale: StaleCheck;
  /** Stops the jobs of this process. They continue at the next start. */
  close(): Promise<void>;
}

export interface LaunchedJob {
  /** The job outlives this process; `ended` then resolves when it was started. */
  readonly detached?: boolean;
  /** Resolves when the process, thread or function of the job has ended, with any result. */
  readonly ended: Promise<void>;
  /** Interrupts the job; it can be resumed. */
  stop(): void;
}

/** Runs a job that holds its lease. */
export type Launch = (job: Job, lease: Lease) => LaunchedJob;

export interface IndexJobsDeps {
  readonly dataDir: string;
  readonly launch: Launch;
  readonly counts: (projectPath: string) => Promise<IndexCounts>;
  /** Cancels an awaited job when its caller aborts: Ctrl-C on the command line. */
  readonly cancelWithCaller?: boolean | undefined;
  /** Jobs that this process may run at once; unlimited by default. Joining a running job is always possible. */
  readonly maxRunning?: number | undefined;
}

/** Milliseconds between two reads of the file of an awaited job. */
const POLL_MS = 150;
/** Milliseconds in which a detached process must take over its job. */
const START_MS = 10_000;
/** Milliseconds to wait for a lease whose job has ended or is not written yet. */
const HAND_OVER_MS = 5_000;
/** Milliseconds in which a job that is being cancelled may finish its batch. */
const CANCEL_WAIT_MS = 10_000;

export function indexJobs(deps: IndexJobsDeps): IndexJobs {
  const { dataDir, launch, counts, cancelWithCaller = false, maxRunning = Number.POSITIVE_INFINITY } = deps;
  const files = jobFiles(dataDir);
  const projectLeases = leases(dataDir);
  /** Jobs that run in this process. `settled` resolves when the lease is released as well. */
  const launched = new Map<string, { readonly running: LaunchedJob; readonly settled: Promise<void> }>();
  /** Cancel requests of callers that aborted, by job. */
  const cancelling = new Map<string, Promise<void>>();
  const starting = new Set<Promise<Job>>();
  let closing = false;

  async function jobs(projectPath: string): Promise<Job[]> {
    const holder = await projectLeases.holder(projectPath);
    const own = (await files.list()).filter((job) => job.projectPath === projectPath);
    return own.map((job) => (job.status === "running" && job.jobId !== holder ? markInterrupted(job) : job));
  }

  async function launchJob(job: Job, lease: Lease): Promise<void> {
    const running = launch(job, lease);
    if (running.detached) {
      await running.ended;
      // This process may end only after the other one has taken over the lease.
      const hasStarted = async () => (await files.read(job.jobId))?.status !== "pending" || undefined;
      if (await poll(hasStarted, { everyMs: 20, limitMs: START_MS })) return;
      await projectLeases.release(lease);
      throw new CairnError("unavailable", "The indexing process did not start. Try again with wait (--wait).");
    }
    const settled = running.ended
      .then(() => settle(job, lease))
      .catch(() => {}) // the lease expires
      .then(() => {
        if (launched.get(job.jobId)?.running === running) launched.delete(job.jobId);
      });
    launched.set(job.jobId, { running, settled });
  }

  /** Records the end of a job whose thread failed before it could, and releases the lease. */
  async function settle({ jobId, projectPath }: Job, lease: Lease): Promise<void> {
    const left = await files.read(jobId);
    if (left?.status === "running" && (await projectLeases.holder(projectPath)) === jobId) {
      const finishedAt = new Date().toISOString();
      await files.write(
        closing
          ? markInterrupted(left) // it was terminated, because it did not stop in time
          : { ...left, status: "failed", error: "Indexing ended unexpectedly. Start it again.", finishedAt },
      );
    }
    await projectLeases.release(lease);
  }

  /** Acquires the lease, or returns the job that holds it. */
  async function acquireOrJoin(projectPath: string, jobId: string): Promise<Lease | Job> {
    const attempt = async (): Promise<Lease | Job | undefined> => {
      if (closing) throw closedError();
      const lease = await projectLeases.acquire(projectPath, jobId);
      if ("token" in lease) return lease;
      const running = await files.read(lease.heldBy);
      // Without one, the job has ended or is not written yet: soon the lease is free or has a job.
      return running && !hasEnded(running) && running.projectPath === projectPath ? running : undefined;
    };
    const found = await poll(attempt, { everyMs: 20, limitMs: HAND_OVER_MS });
    if (found) return found;
    throw new CairnError("unavailable", "Another process holds the lease of this project without a job. Try again in a moment.", {
      retryAfterMs: 1_000,
    });
  }

  /** Starts a job. `close` waits for it, so that no job starts after the end. */
  async function start(request: IndexRequest): Promise<Job> {
    const started = startNow(request);
    starting.add(started);
    try {
      return await started;
    } finally {
      starting.delete(started);
    }
  }

  async function startNow({ projectPath, includeIgnored = false, anywhere = false }: IndexRequest): Promise<Job> {
    await resolveJobRoot({ projectPath, anywhere });
    const unfinished = (await jobs(projectPath)).find(({ status }) => status === "pending");
    const now = new Date().toISOString();
    const job: Job = {
      ...(unfinished ?? newJob(projectPath, now)),
      status: "pending",
      phase: "starting",
      updatedAt: now,
      includeIgnored,
      anywhere,
    };
    const lease = await acquireOrJoin(projectPath, job.jobId);
    if (!("token" in lease)) return lease;
    const current = await files.read(job.jobId);
    if (current && hasEnded(current)) {
      // Another process has resumed and finished it in the meantime.
      await projectLeases.release(lease);
      return startNow({ projectPath, includeIgnored, anywhere });
    }
    const refusal = closing ? closedError() : launched.size + starting.size > maxRunning ? tooManyError(maxRunning) : undefined;
    if (refusal) {
      await projectLeases.release(lease);
      throw refusal;
    }
    await files.write(job);
    await launchJob(job, lease);
    return job;
  }

  /** Waits until the job has ended, or no process runs it. */
  async function waitFor(jobId: string, { signal, progress = () => {} }: WaitOptions): Promise<Job> {
    for (;;) {
      const job = await files.read(jobId);
      if (!job) throw new CairnError("not_found", `There is no job ${jobId} any more.`);
      if (hasEnded(job)) return job;
      const isWalking = job.phase === "walking" || job.filesTotal === 0;
      progress(job.filesProcessed, isWalking ? undefined : job.filesTotal, progressText(job));
      if (!launched.has(jobId) && (await projectLeases.holder(job.projectPath)) !== jobId) {
        const last = await files.read(jobId);
        return last && hasEnded(last) ? last : markInterrupted(job);
      }
      await sleep(POLL_MS, undefined, { signal });
    }
  }

  return {
    jobs,
    async counts(projectPath, of) {
      const running = of.find(({ status }) => status === "running");
      if (!running) return counts(projectPath);
      const { indexed, unchanged, renamed, chunks } = running.counts;
      // Without an earlier job, the index holds what this one has indexed.
      return of.find(({ index }) => index !== undefined)?.index ?? { files: indexed + unchanged + renamed, chunks };
    },
    isStale: staleCheck(),

    async index({ wait = false, ...request }, options = {}) {
      const job = await start(request);
      if (!wait) return job;
      const cancel = () => launched.has(job.jobId) && cancelling.set(job.jobId, files.requestCancel(job.jobId));
      if (cancelWithCaller) options.signal?.addEventListener("abort", cancel, { once: true });
      try {
        return await waitFor(job.jobId, options);
      } finally {
        options.signal?.removeEventListener("abort", cancel);
      }
    },

    async cancel({ projectPath, jobId }) {
      const job = (await jobs(projectPath)).find((one) => (jobId === undefined ? !hasEnded(one) : one.jobId === jobId));
      if (!job)
        throw new CairnError("not_found", jobId === undefined ? "No index job of this project is running." : `There is no job ${jobId}.`);
      if (hasEnded(job)) return job;
      await files.requestCancel(job.jobId);
      const lease = await projectLeases.acquire(projectPath, job.jobId);
      if ("token" in lease) {
        // No process runs it: it was interrupted.
        const now = new Date().toISOString();
        const cancelled: Job = { ...job, status: "cancelled", phase: "ended", updatedAt: now, finishedAt: now };
        await files.write(cancelled);
        await projectLeases.release(lease);
        await files.publish();
        return cancelled;
      }
      const deadline = AbortSignal.timeout(CANCEL_WAIT_MS);
      return waitFor(job.jobId, { signal: deadline }).catch(async () => (await files.read(job.jobId)) ?? job);
    },

    async resume(projectPath) {
      const [unfinished] = (await jobs(projectPath)).filter(({ status }) => status === "pending");
      if (!unfinished || (await projectLeases.holder(projectPath)) !== undefined) return undefined;
      // `anywhere` is not resumed: a file must not be able to make Cairn walk a home directory.
      return start({ projectPath, includeIgnored: unfinished.includeIgnored });
    },

    async close() {
      closing = true;
      await Promise.allSettled(starting);
      const open = [...launched];
      for (const [jobId, { running }] of open) if (!cancelling.has(jobId)) running.stop();
      await Promise.all([...cancelling.values(), ...open.map(([, { settled }]) => settled)]);
    },
  };
}

function closedError(): CairnError {
  return new CairnError("unavailable", "Cairn is closing. Index again after the next start.");
}

function tooManyError(maxRunning: number): CairnError {
  return new CairnError("unavailable", `${maxRunning} index jobs are running. Wait until one of them has ended, then index again.`, {
    retryAfterMs: 5_000,
  });
}

/** Returns a job that no process runs, as it is reported. */
function markInterrupted(job: Job): Job {
  return { ...job, status: "pending", phase: "interrupted; continues with the next index or start of cairn mcp" };
}

function newJob(projectPath: string, now: string): Job {
  return {
    jobId: newId(),
    projectPath,
    status: "pending",
    phase: "starting",
    createdAt: now,
    updatedAt: now,
    filesProcessed: 0,
    filesTotal: 0,
    counts: { indexed: 0, unchanged: 0, renamed: 0, removed: 0, failed: 0, chunks: 0, bytes: 0 },
    skipped: {},
    skippedFiles: [],
    failedFiles: [],
    includeIgnored: false,
    anywhere: false,
  };
}

function progressText({ phase, currentFile, etaSeconds }: Job): string {
  return [phase, currentFile, etaSeconds === undefined ? undefined : `${etaSeconds} s left`].filter(Boolean).join(", ");
}

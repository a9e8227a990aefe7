import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../../model/errors.ts";
import { newId } from "../../model/ids.ts";
import { resolveJobRoot } from "../files/root.ts";
import { type StaleCheck, staleCheck } from "../files/stale.ts";
import type { IndexCounts } from "./index-target.ts";
import { isOver, type Job } from "./job.ts";
import { jobFiles } from "./job-files.ts";
import { type Lease, leases } from "./lease.ts";

export interface IndexRequest {
  readonly projectPath: string;
  readonly includeIgnored?: boolean | undefined;
  readonly anywhere?: boolean | undefined;
  /** Until the job is over. */
  readonly wait?: boolean | undefined;
}

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number | undefined, message?: string) => void) | undefined;
}

/** Indexing as it is done beside the files: jobs that walk a tree and send what changed. */
export interface IndexJobs {
  /** Begins a job, or joins the one that the project has, in whatever process. */
  index(request: IndexRequest, options?: WaitOptions): Promise<Job>;
  /** The jobs of a project, newest first. */
  jobs(projectPath: string): Promise<Job[]>;
  /** Ends the project's job, also one of another process. */
  cancel(of: { readonly projectPath: string; readonly jobId?: string | undefined }): Promise<Job>;
  /** Goes on with a job that was interrupted, if the project has one. */
  resume(projectPath: string): Promise<Job | undefined>;
  /** What the index holds of a project. While one of its jobs runs, which must not be held up, it is what the jobs know. */
  counts(projectPath: string, jobs: readonly Job[]): Promise<IndexCounts>;
  /** Whether files have changed since they were indexed. */
  readonly isStale: StaleCheck;
  /** Stops what runs in this process; it goes on at the next start. */
  close(): Promise<void>;
}

export interface LaunchedJob {
  /** It goes on after this process has ended; then `ended` says only that it was begun. */
  readonly detached?: boolean;
  /** When the job's process, thread or function has ended, whatever became of the job. */
  readonly ended: Promise<void>;
  /** Stops it here; the job waits to be taken up again. */
  stop(): void;
}

/** Runs a job that has its lease. */
export type Launch = (job: Job, lease: Lease) => LaunchedJob;

export interface IndexJobsDeps {
  readonly dataDir: string;
  readonly launch: Launch;
  readonly counts: (projectPath: string) => Promise<IndexCounts>;
  /** A caller that waits and goes away takes the job with it: the command line, where that is Ctrl-C. */
  readonly cancelWithCaller?: boolean | undefined;
}

const LOOK_EVERY_MS = 150;
const BEGIN_MS = 10_000;
const HAND_OVER_MS = 5_000;
/** How long a job that was asked to end may take for the batch it has under way. */
const CANCEL_WAIT_MS = 10_000;

export function indexJobs({ dataDir, launch, counts, cancelWithCaller = false }: IndexJobsDeps): IndexJobs {
  const files = jobFiles(dataDir);
  const rights = leases(dataDir);
  /** What runs in this process, each with the moment when its lease is given back as well. */
  const launched = new Map<string, { readonly running: LaunchedJob; readonly settled: Promise<void> }>();
  /** Jobs whose caller went away and wants them cancelled. */
  const leaving = new Map<string, Promise<void>>();
  const beginning = new Set<Promise<Job>>();
  let closing = false;

  async function jobs(projectPath: string): Promise<Job[]> {
    const holder = await rights.holder(projectPath);
    const all = (await files.list()).filter(({ project_id }) => project_id === projectPath);
    return all.map((job) => (job.status === "running" && job.id !== holder ? { ...job, status: "pending", phase: INTERRUPTED } : job));
  }

  async function start(job: Job, lease: Lease): Promise<void> {
    const running = launch(job, lease);
    if (running.detached) {
      await running.ended;
      // Only when it has taken the lease over may this process end.
      for (const deadline = Date.now() + BEGIN_MS; (await files.read(job.id))?.status === "pending"; await sleep(20))
        if (Date.now() > deadline) {
          await rights.release(lease);
          throw new CairnError("unavailable", "The process that indexes did not start. Try again with wait (--wait).");
        }
      return;
    }
    const settled = running.ended
      .then(() => tidyUp(job, lease))
      .catch(() => {}) // the lease runs out by itself
      .then(() => {
        if (launched.get(job.id)?.running === running) launched.delete(job.id);
      });
    launched.set(job.id, { running, settled });
  }

  async function tidyUp(job: Job, lease: Lease): Promise<void> {
    // A thread that broke down had no time to say so.
    const left = await files.read(job.id);
    if (left?.status === "running" && (await rights.holder(job.project_id)) === job.id) {
      const at = new Date().toISOString();
      await files.write(
        closing
          ? { ...left, status: "pending", phase: INTERRUPTED } // it was stopped, and did not come to an end of its own in time
          : { ...left, status: "failed", error: "The indexing ended unexpectedly. Start it again.", finished_at: at },
      );
    }
    await rights.release(lease);
  }

  /** The lease, or the job that has it. */
  async function takeOrJoin(projectPath: string, jobId: string): Promise<Lease | Job> {
    for (const deadline = Date.now() + HAND_OVER_MS; ; await sleep(20)) {
      if (closing) throw closed();
      const lease = await rights.take(projectPath, jobId);
      if ("token" in lease) return lease;
      const running = await files.read(lease.heldBy);
      if (running && !isOver(running) && running.project_id === projectPath) return running;
      // Its job is over, or not yet written down: a moment later it is free, or has one.
      if (Date.now() > deadline)
        throw new CairnError("unavailable", "Another process has this project's lease and no job. Try again in a moment.", {
          retryAfterMs: 1_000,
        });
    }
  }

  /** Closing waits for what is just beginning, so that nothing begins after it. */
  async function begin(request: IndexRequest): Promise<Job> {
    const begun = beginNow(request);
    beginning.add(begun);
    try {
      return await begun;
    } finally {
      beginning.delete(begun);
    }
  }

  async function beginNow({ projectPath, includeIgnored = false, anywhere = false }: IndexRequest): Promise<Job> {
    await resolveJobRoot({ project_id: projectPath, anywhere });
    const unfinished = (await jobs(projectPath)).find(({ status }) => status === "pending");
    const now = new Date().toISOString();
    const job: Job = {
      ...(unfinished ?? newJob(projectPath, now)),
      status: "pending",
      phase: "starting",
      updated_at: now,
      include_ignored: includeIgnored,
      anywhere,
    };
    const lease = await takeOrJoin(projectPath, job.id);
    if (!("token" in lease)) return lease;
    const meanwhile = await files.read(job.id);
    if (meanwhile && isOver(meanwhile)) {
      // Another has taken it up and ended it since it was looked at.
      await rights.release(lease);
      return beginNow({ projectPath, includeIgnored, anywhere });
    }
    if (closing) {
      await rights.release(lease);
      throw closed();
    }
    await files.write(job);
    await start(job, lease);
    return job;
  }

  /** Until the job is over, or nobody runs it any more. */
  async function follow(id: string, { signal, progress = () => {} }: WaitOptions): Promise<Job> {
    for (;;) {
      const job = await files.read(id);
      if (!job) throw new CairnError("not_found", `The job ${id} is gone.`);
      if (isOver(job)) return job;
      const told = progressText(job);
      progress(job.files_processed, job.phase === "walking" || job.files_total === 0 ? undefined : job.files_total, told);
      if (!launched.has(id) && (await rights.holder(job.project_id)) !== id) {
        const last = await files.read(id);
        return last && isOver(last) ? last : { ...job, status: "pending", phase: INTERRUPTED };
      }
      await sleep(LOOK_EVERY_MS, undefined, { signal });
    }
  }

  return {
    jobs,
    async counts(projectPath, of) {
      const running = of.find(({ status }) => status === "running");
      if (!running) return counts(projectPath);
      const { indexed, unchanged, chunks } = running.counts;
      // Without an earlier one, what there is, this one has made.
      return of.find(({ index }) => index !== undefined)?.index ?? { files: indexed + unchanged, chunks };
    },
    isStale: staleCheck(),

    async index({ wait = false, ...request }, options = {}) {
      const job = await begin(request);
      if (!wait) return job;
      const leave = () => launched.has(job.id) && leaving.set(job.id, files.askToCancel(job.id));
      if (cancelWithCaller) options.signal?.addEventListener("abort", leave, { once: true });
      try {
        return await follow(job.id, options);
      } finally {
        options.signal?.removeEventListener("abort", leave);
      }
    },

    async cancel({ projectPath, jobId }) {
      const job = (await jobs(projectPath)).find((one) => (jobId === undefined ? !isOver(one) : one.id === jobId));
      if (!job)
        throw new CairnError("not_found", jobId === undefined ? "No job of this project is under way." : `There is no job ${jobId}.`);
      if (isOver(job)) return job;
      await files.askToCancel(job.id);
      const lease = await rights.take(projectPath, job.id);
      if ("token" in lease) {
        // Nobody runs it: it was waiting to be taken up again.
        const at = new Date().toISOString();
        const cancelled: Job = { ...job, status: "cancelled", phase: "over", updated_at: at, finished_at: at };
        await files.write(cancelled);
        await rights.release(lease);
        await files.publish();
        return cancelled;
      }
      const deadline = AbortSignal.timeout(CANCEL_WAIT_MS);
      return follow(job.id, { signal: deadline }).catch(async () => (await files.read(job.id)) ?? job);
    },

    async resume(projectPath) {
      const [unfinished] = (await jobs(projectPath)).filter(({ status }) => status === "pending");
      if (!unfinished || (await rights.holder(projectPath)) !== undefined) return undefined;
      // A whole home directory is walked only when somebody asks for it now, never because a file says so.
      return begin({ projectPath, includeIgnored: unfinished.include_ignored });
    },

    async close() {
      closing = true;
      await Promise.allSettled(beginning);
      const jobs = [...launched];
      for (const [id, { running }] of jobs) if (!leaving.has(id)) running.stop();
      await Promise.all([...leaving.values(), ...jobs.map(([, { settled }]) => settled)]);
    },
  };
}

function closed(): CairnError {
  return new CairnError("unavailable", "Cairn is being closed. Index again with the next start.");
}

const INTERRUPTED = "interrupted; it goes on with the next index or start of cairn mcp";

function newJob(projectPath: string, now: string): Job {
  return {
    id: newId(),
    project_id: projectPath,
    status: "pending",
    phase: "starting",
    created_at: now,
    updated_at: now,
    files_processed: 0,
    files_total: 0,
    counts: { indexed: 0, unchanged: 0, renamed: 0, removed: 0, failed: 0, chunks: 0, bytes: 0 },
    skipped: {},
    skipped_files: [],
    failed_files: [],
    include_ignored: false,
    anywhere: false,
  };
}

function progressText({ phase, current_file: file, eta_seconds: eta }: Job): string {
  return [phase, file, eta === undefined ? undefined : `${eta} s left`].filter(Boolean).join(", ");
}

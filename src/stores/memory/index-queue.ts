import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../../model/errors.ts";
import type { Clock } from "../../model/ids.ts";
import { type IndexJob, type IndexOutcome, type IndexWork, isFinished } from "../../model/index-job.ts";
import { type IndexQueue, type PerformIndexWork, shareOf } from "../../ports/index-queue.ts";

export interface MemoryIndexQueueOptions {
  readonly perform: PerformIndexWork;
  readonly now: Clock;
  readonly newId: () => string;
  /** Maximum number of unfinished jobs. Each holds its files in memory, at most 2 MB. */
  readonly capacity?: number | undefined;
  /** Projects that are indexed at the same time. */
  readonly projectsAtOnce?: number;
  /** Milliseconds that `close` waits for running jobs. */
  readonly drainMs?: number;
}

const CAPACITY = 32;
/** Limits of finished jobs that are remembered, and of their files in all. */
const REMEMBERED_JOBS = 1_000;
const REMEMBERED_FILES = 50_000;

interface Entry {
  readonly sender: string | undefined;
  job: IndexJob;
  /** Undefined once the job has ended. */
  work: IndexWork | undefined;
  readonly stop: AbortController;
}

/** Returns an index queue in memory. Its jobs are lost with the process: a later request for a job gets not_found, and the client sends the files again. */
export function memoryIndexQueue({
  perform,
  now,
  newId,
  capacity = CAPACITY,
  projectsAtOnce = 2,
  drainMs = 20_000,
}: MemoryIndexQueueOptions): IndexQueue {
  const entries = new Map<string, Entry>(); // in the order of acceptance
  const busy = new Map<string, Promise<void>>(); // by project
  let closed = false;

  const listUnfinished = () => [...entries.values()].filter(({ job }) => !isFinished(job));

  function startPending(): void {
    for (const entry of listUnfinished()) {
      if (busy.size >= projectsAtOnce) return;
      const { projectPath, status } = entry.job;
      if (status !== "pending" || busy.has(projectPath)) continue;
      const ended = run(entry).finally(() => {
        busy.delete(projectPath);
        startPending();
      });
      busy.set(projectPath, ended);
    }
  }

  async function run(entry: Entry): Promise<void> {
    entry.job = { ...entry.job, status: "running", startedAt: now() };
    end(entry, await perform(entry.work!, entry.stop.signal));
  }

  function end(entry: Entry, outcome: IndexOutcome): void {
    entry.job = { ...entry.job, ...outcome, finishedAt: now() };
    entry.work = undefined;
    const ended = [...entries.values()].filter(({ job }) => isFinished(job));
    let files = ended.reduce((sum, { job }) => sum + (job.result?.files.length ?? 0), 0);
    for (const [index, { job }] of ended.entries()) {
      if (ended.length - index <= REMEMBERED_JOBS && files <= REMEMBERED_FILES) break;
      entries.delete(job.id);
      files -= job.result?.files.length ?? 0;
    }
  }

  return {
    async add(work, sender) {
      const queued = listUnfinished().length;
      const own = listUnfinished().filter((entry) => entry.sender === sender).length;
      if (!closed && sender !== undefined && own >= shareOf(capacity))
        throw new CairnError("unavailable", `You already have ${own} queued batches. Send this one again in a moment.`, {
          retryAfterMs: 1_000,
        });
      if (closed || queued >= capacity)
        throw new CairnError(
          "unavailable",
          closed ? "The server is shutting down." : `The index queue is full (${queued} batches). Send this one again in a moment.`,
          { retryAfterMs: 1_000 },
        );
      const job: IndexJob = { id: newId(), projectPath: work.projectPath, kind: work.kind, status: "pending", acceptedAt: now() };
      entries.set(job.id, { sender, job, work, stop: new AbortController() });
      startPending();
      return job;
    },

    get: async (id) => entries.get(id)?.job,

    async cancel(id) {
      const entry = entries.get(id);
      if (!entry) return undefined;
      entry.stop.abort();
      if (entry.job.status === "pending") end(entry, { status: "cancelled" });
      else if (entry.job.status === "running") await busy.get(entry.job.projectPath);
      return entry.job;
    },

    async depth(projectPath) {
      const jobs = listUnfinished().filter(({ job }) => projectPath === undefined || job.projectPath === projectPath);
      const running = jobs.filter(({ job }) => job.status === "running").length;
      return { pending: jobs.length - running, running, capacity };
    },

    async start() {},

    async close() {
      closed = true;
      const deadline = Date.now() + drainMs;
      while (busy.size > 0 && Date.now() < deadline)
        await Promise.race([...busy.values(), sleep(deadline - Date.now(), undefined, { ref: false })]);
      for (const { stop, job } of listUnfinished()) if (!isFinished(job)) stop.abort();
      for (const entry of listUnfinished()) if (entry.job.status === "pending") end(entry, { status: "cancelled" });
      await Promise.all(busy.values());
    },
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../../model/errors.ts";
import { type IndexJob, type IndexOutcome, type IndexWork, isFinished } from "../../model/index-job.ts";
import type { Clock } from "../../ports/clock.ts";
import { type IndexQueue, type PerformIndexWork, shareOf } from "../../ports/index-queue.ts";

export interface MemoryIndexQueueOptions {
  readonly perform: PerformIndexWork;
  readonly now: Clock;
  readonly newId: () => string;
  /** Jobs that may wait. Each holds its files in memory, at most 2 MB of them. */
  readonly capacity?: number | undefined;
  /** Projects worked on at the same time. */
  readonly projectsAtOnce?: number;
  /** How long `close` waits for what was accepted. */
  readonly drainMs?: number;
}

const CAPACITY = 32;
/** Limits of finished jobs that are remembered, and of their files in all. */
const REMEMBERED_JOBS = 1_000;
const REMEMBERED_FILES = 50_000;

interface Entry {
  readonly sender: string | undefined;
  job: IndexJob;
  /** Gone when the job has ended. */
  work: IndexWork | undefined;
  readonly stop: AbortController;
}

/** A queue of this process. What it accepted ends with the process: a later request for such a job gets not_found, and the client sends again. */
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

  const unfinished = () => [...entries.values()].filter(({ job }) => !isFinished(job));

  function startWhatCan(): void {
    for (const entry of unfinished()) {
      if (busy.size >= projectsAtOnce) return;
      const { projectPath, status } = entry.job;
      if (status !== "pending" || busy.has(projectPath)) continue;
      const ended = run(entry).finally(() => {
        busy.delete(projectPath);
        startWhatCan();
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
      const waiting = unfinished().length;
      const own = unfinished().filter((entry) => entry.sender === sender).length;
      if (!closed && sender !== undefined && own >= shareOf(capacity))
        throw new CairnError("unavailable", `${own} batches of yours wait to be indexed already. Send this one again in a moment.`, {
          retryAfterMs: 1_000,
        });
      if (closed || waiting >= capacity)
        throw new CairnError(
          "unavailable",
          closed ? "The server is shutting down." : `${waiting} batches wait to be indexed already. Send this one again in a moment.`,
          { retryAfterMs: 1_000 },
        );
      const job: IndexJob = { id: newId(), projectPath: work.projectPath, kind: work.kind, status: "pending", acceptedAt: now() };
      entries.set(job.id, { sender, job, work, stop: new AbortController() });
      startWhatCan();
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
      const jobs = unfinished().filter(({ job }) => projectPath === undefined || job.projectPath === projectPath);
      const running = jobs.filter(({ job }) => job.status === "running").length;
      return { pending: jobs.length - running, running, capacity };
    },

    async start() {},

    async close() {
      closed = true;
      const deadline = Date.now() + drainMs;
      while (busy.size > 0 && Date.now() < deadline)
        await Promise.race([...busy.values(), sleep(deadline - Date.now(), undefined, { ref: false })]);
      for (const { stop, job } of unfinished()) if (!isFinished(job)) stop.abort();
      for (const entry of unfinished()) if (entry.job.status === "pending") end(entry, { status: "cancelled" });
      await Promise.all(busy.values());
    },
  };
}

import { access, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import { readOwnFile } from "../../files/own-file.ts";
import { toCamel, toWire } from "../../operations/wire.ts";
import { writeAtomically } from "../files/write-atomically.ts";
import { hasEnded, JOB_ID, type Job, JobRecord } from "./job.ts";

/** The state of index jobs on disk: one file per job, so that two processes never overwrite each other, and a summary of all jobs. */
export interface JobFiles {
  read(jobId: string): Promise<Job | undefined>;
  write(job: Job): Promise<void>;
  /** Returns all jobs, newest first. */
  list(): Promise<Job[]>;
  remove(jobId: string): Promise<void>;
  /** Asks the process that runs the job to cancel it. */
  requestCancel(jobId: string): Promise<void>;
  isCancelRequested(jobId: string): Promise<boolean>;
  /** Writes the summary from the job files, and removes the oldest jobs that have ended. */
  publish(): Promise<void>;
}

/** Ended jobs that are kept. */
const KEPT_JOBS = 20;
const RECENT_PATHS = 10;
/** Bytes of a job file; the lists in it are bounded. */
const JOB_BYTES = 4 * 1024 * 1024;

export function jobFiles(dataDir: string): JobFiles {
  const folder = join(dataDir, "jobs");
  const pathOf = (jobId: string) => join(folder, `${jobId}.json`);
  const cancelPath = (jobId: string) => join(folder, `${jobId}.cancel`);

  async function read(jobId: string): Promise<Job | undefined> {
    if (!JOB_ID.test(jobId)) return undefined;
    try {
      const job = toCamel(JobRecord(), JobRecord().parse(JSON.parse(readOwnFile(pathOf(jobId), JOB_BYTES).toString("utf8"))));
      return job.jobId === jobId ? job : undefined;
    } catch {
      return undefined; // missing, written by another user, or not a job
    }
  }
  async function list(): Promise<Job[]> {
    const names = await readdir(folder).catch(() => [] as string[]); // no job yet
    const ids = names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
    const jobs = (await Promise.all(ids.map(read))).filter((job) => job !== undefined);
    return jobs.sort((a, b) => (a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : 0));
  }
  async function remove(jobId: string): Promise<void> {
    await Promise.all([rm(pathOf(jobId), { force: true }), rm(cancelPath(jobId), { force: true })]);
  }
  return {
    read,
    list,
    remove,
    async write(job) {
      await writeAtomically(pathOf(job.jobId), `${JSON.stringify(toWire(JobRecord(), job), null, 2)}\n`);
      if (hasEnded(job)) await rm(cancelPath(job.jobId), { force: true });
    },
    requestCancel: (jobId) => writeFile(cancelPath(jobId), "", { mode: 0o600 }),
    isCancelRequested: (jobId) =>
      access(cancelPath(jobId)).then(
        () => true,
        () => false,
      ),
    async publish() {
      const jobs = await list();
      for (const { jobId } of jobs.filter(hasEnded).slice(KEPT_JOBS)) await remove(jobId);
      const current = jobs.filter((job) => !hasEnded(job));
      const ends = jobs.flatMap(({ status, finishedAt: end }) => ((status === "completed" || status === "partial") && end ? [end] : []));
      const summary = {
        current_jobs: Object.fromEntries(current.map((job) => [job.jobId, summarize(job)])),
        recent_paths: [...new Set(jobs.map(({ projectPath }) => projectPath))].slice(0, RECENT_PATHS),
        last_sync: ends.sort().at(-1) ?? null,
      };
      await writeAtomically(join(dataDir, "mcp-state.json"), `${JSON.stringify(summary, null, 2)}\n`);
    },
  };
}

/** Returns a job as mcp-state.json lists it. */
function summarize(job: Job) {
  const record = toWire(JobRecord(), job) as z.output<ReturnType<typeof JobRecord>>;
  const { project_path: path, created_at, started_at = created_at, status, phase, files_processed, files_total, eta_seconds } = record;
  return { project_id: path, path, started_at, status, phase, files_processed, files_total, eta_seconds };
}

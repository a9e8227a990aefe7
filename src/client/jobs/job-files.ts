import { access, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readOwnFile } from "../../files/own-file.ts";
import { writeWhole } from "../files/write-file.ts";
import { isOver, type Job, JobRecord } from "./job.ts";

/** One file per job, so that two processes never overwrite each other, and one file that sums them up. */
export interface JobFiles {
  read(id: string): Promise<Job | undefined>;
  write(job: Job): Promise<void>;
  /** Newest first. */
  list(): Promise<Job[]>;
  remove(id: string): Promise<void>;
  /** Asks whoever runs the job to end it. */
  askToCancel(id: string): Promise<void>;
  isAskedToCancel(id: string): Promise<boolean>;
  /** Writes the summary anew from the files of the jobs, and clears away the oldest of those that are over. */
  publish(): Promise<void>;
}

const KEPT_JOBS = 20;
const RECENT_PATHS = 10;
const ID = /^[0-9a-f-]{36}$/;
/** Bytes of a job file; the lists in it are bounded. */
const JOB_BYTES = 4 * 1024 * 1024;

export function jobFiles(dataDir: string): JobFiles {
  const folder = join(dataDir, "jobs");
  const pathOf = (id: string) => join(folder, `${id}.json`);
  const cancelPath = (id: string) => join(folder, `${id}.cancel`);

  async function read(id: string): Promise<Job | undefined> {
    if (!ID.test(id)) return undefined;
    try {
      const job = JobRecord.parse(JSON.parse(readOwnFile(pathOf(id), JOB_BYTES).toString("utf8")));
      return job.id === id ? job : undefined;
    } catch {
      return undefined; // missing, written by somebody else, or not a job
    }
  }
  async function list(): Promise<Job[]> {
    const names = await readdir(folder).catch(() => [] as string[]); // no job yet
    const ids = names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
    const jobs = (await Promise.all(ids.map(read))).filter((job) => job !== undefined);
    return jobs.sort((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : 0));
  }
  async function remove(id: string): Promise<void> {
    await Promise.all([rm(pathOf(id), { force: true }), rm(cancelPath(id), { force: true })]);
  }
  return {
    read,
    list,
    remove,
    async write(job) {
      await writeWhole(pathOf(job.id), `${JSON.stringify(job, null, 2)}\n`);
      if (isOver(job)) await rm(cancelPath(job.id), { force: true });
    },
    askToCancel: (id) => writeFile(cancelPath(id), "", { mode: 0o600 }),
    isAskedToCancel: (id) =>
      access(cancelPath(id)).then(
        () => true,
        () => false,
      ),
    async publish() {
      const jobs = await list();
      for (const { id } of jobs.filter(isOver).slice(KEPT_JOBS)) await remove(id);
      const current = jobs.filter((job) => !isOver(job));
      const ends = jobs.flatMap(({ status, finished_at: end }) => ((status === "completed" || status === "partial") && end ? [end] : []));
      const summary = {
        current_jobs: Object.fromEntries(current.map((job) => [job.id, summaryOf(job)])),
        recent_paths: [...new Set(jobs.map(({ project_id }) => project_id))].slice(0, RECENT_PATHS),
        last_sync: ends.sort().at(-1) ?? null,
      };
      await writeWhole(join(dataDir, "mcp-state.json"), `${JSON.stringify(summary, null, 2)}\n`);
    },
  };
}

function summaryOf({ project_id, started_at, created_at, status, phase, files_processed, files_total, eta_seconds }: Job) {
  return { project_id, path: project_id, started_at: started_at ?? created_at, status, phase, files_processed, files_total, eta_seconds };
}

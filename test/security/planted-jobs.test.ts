import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type IndexJobs, indexJobs } from "../../src/client/jobs/index-jobs.ts";
import type { IndexTarget } from "../../src/client/jobs/index-target.ts";
import { type Job, JobRecord } from "../../src/client/jobs/job.ts";
import { jobFiles } from "../../src/client/jobs/job-files.ts";
import { launchHere } from "../../src/client/jobs/launch.ts";
import { leases } from "../../src/client/jobs/lease.ts";
import { runJob } from "../../src/client/jobs/run-job.ts";
import { newId } from "../../src/model/ids.ts";
import { toCamel } from "../../src/operations/wire.ts";

let folder: string;
let dataDir: string;
let project: string;
let elsewhere: string;
let sent: string[];
let local: IndexJobs;

const target: IndexTarget = {
  atOnce: 1,
  hashes: async () => new Map(),
  async send(files) {
    sent.push(...files.map(({ path }) => path));
    return files.map(({ path }) => ({ path, status: "indexed" as const, chunks: 1 }));
  },
  finish: async () => ({ removed: 0, renamed: 0 }),
  counts: async () => ({ files: sent.length, chunks: sent.length }),
  report: async () => ({ cancelRequested: false }),
};
const openTarget = async () => ({ target, close: async () => {} });

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-planted-")));
  [dataDir, project, elsewhere] = ["data", "project", "elsewhere"].map((name) => join(folder, name)) as [string, string, string];
  for (const path of [join(dataDir, "jobs"), project, elsewhere]) mkdirSync(path, { recursive: true });
  writeFileSync(join(project, "own.py"), "def own(): pass\n");
  writeFileSync(join(elsewhere, "private.py"), "def private(): pass\n");
  sent = [];
  local = indexJobs({
    dataDir,
    launch: launchHere((job, lease, stop) => runJob({ dataDir, job, lease, stop, openTarget })),
    counts: target.counts as () => Promise<{ files: number; chunks: number }>,
  });
});
afterEach(async () => {
  await local.close();
  rmSync(folder, { recursive: true });
});

const job = (change: Record<string, unknown> = {}): Record<string, unknown> => ({
  job_id: newId(),
  project_path: project,
  status: "pending",
  phase: "interrupted",
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
  files_processed: 0,
  files_total: 0,
  counts: { indexed: 0, unchanged: 0, renamed: 0, removed: 0, failed: 0, chunks: 0, bytes: 0 },
  skipped: {},
  skipped_files: [],
  failed_files: [],
  include_ignored: false,
  anywhere: false,
  ...change,
});
function plant(content: Record<string, unknown>, name = String(content.job_id)): void {
  writeFileSync(join(dataDir, "jobs", `${name}.json`), JSON.stringify(content), { mode: 0o600 });
}
async function resumed(path = project): Promise<Job | undefined> {
  const begun = await local.resume(path);
  if (!begun) return undefined;
  for (;;) {
    const [now] = (await local.jobs(path)).filter(({ jobId }) => jobId === begun.jobId);
    if (now && now.status !== "pending" && now.status !== "running") return now;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe("a planted index job", () => {
  it("is resumed when it is genuine", async () => {
    plant(job());
    expect((await resumed())?.status).toBe("completed");
    expect(sent).toEqual(["own.py"]);
  });

  it("cannot make the indexer walk a folder other than its project", async () => {
    plant(job({ path: elsewhere }));
    expect(await resumed()).toBeUndefined();
    expect(sent).toEqual([]);
  });

  it("cannot make the indexer walk a home directory by a field of the job", async () => {
    plant(job({ project_path: homedir(), anywhere: true }));
    await expect(local.resume(homedir())).rejects.toThrow(/holds a whole home directory/);
    expect(sent).toEqual([]);
  });

  it("cannot name a link to a folder, or a folder inside a project, as its root", async () => {
    symlinkSync(elsewhere, join(folder, "link"));
    mkdirSync(join(project, ".git"));
    mkdirSync(join(project, "inner"));
    for (const path of [join(folder, "link"), join(project, "inner")]) {
      plant(job({ project_path: path }));
      await expect(local.resume(path)).rejects.toThrow(/not the root of a project/);
    }
    expect(sent).toEqual([]);
  });

  it("is checked again by the process that runs it", async () => {
    const work = toCamel(JobRecord(), JobRecord().parse(job({ project_path: join(folder, "link") })));
    symlinkSync(elsewhere, join(folder, "link"));
    const lease = await leases(dataDir).acquire(work.projectPath, work.jobId);
    if (!("token" in lease)) throw new Error("The lease is taken.");
    const done = await runJob({ dataDir, job: work, lease, openTarget, stop: new AbortController().signal });
    expect(done).toMatchObject({ status: "failed", error: expect.stringMatching(/not the root of a project/) });
    expect(sent).toEqual([]);
  });

  it("cannot write outside of its folder through its id", async () => {
    const id = newId();
    plant(job({ job_id: "../../escaped" }), id);
    plant(job({ job_id: newId() }), newId());
    expect(await jobFiles(dataDir).list()).toEqual([]);
    expect(existsSync(join(folder, "escaped.json"))).toBe(false);
  });

  it("is refused with fields that no job has, and when another user could have written it", async () => {
    plant(job({ command: "rm -rf /" }));
    expect(await local.jobs(project)).toEqual([]);
    const open = job();
    plant(open);
    chmodSync(join(dataDir, "jobs", `${open.job_id}.json`), 0o666);
    expect(await local.jobs(project)).toEqual([]);
  });

  it("is not read when it is huge, a FIFO or a link to a device", async () => {
    const ids = [newId(), newId()];
    execFileSync("mkfifo", ["-m", "600", join(dataDir, "jobs", `${newId()}.json`)]);
    writeFileSync(join(dataDir, "jobs", `${ids[0]}.json`), " ".repeat(5 * 1024 * 1024), { mode: 0o600 });
    symlinkSync("/dev/zero", join(dataDir, "jobs", `${ids[1]}.json`));
    expect(await jobFiles(dataDir).list()).toEqual([]);
  });

  it("of another project is not joined because a planted lease names it", async () => {
    const other = job({ project_path: elsewhere, status: "running" });
    plant(other);
    await leases(dataDir).acquire(project, String(other.job_id));
    // The lease of this process is alive, and its job is that of another project: nothing to join.
    await expect(local.index({ projectPath: project })).rejects.toThrow(/without a job/);
  });
});

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { z } from "zod";
import { type IndexJobs, indexJobs } from "../../src/client/jobs/index-jobs.ts";
import type { IndexTarget } from "../../src/client/jobs/index-target.ts";
import { JobRecord } from "../../src/client/jobs/job.ts";
import { launchHere } from "../../src/client/jobs/launch.ts";
import { leases } from "../../src/client/jobs/lease.ts";
import { runJob } from "../../src/client/jobs/run-job.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import type { FileOutcome } from "../../src/model/index-job.ts";
import type { IndexReport } from "../../src/model/index-report.ts";
import { toCamel } from "../../src/operations/wire.ts";

let folder: string;
let dataDir: string;
let projectPath: string;
const opened: IndexJobs[] = [];

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-jobs-")));
  dataDir = join(folder, "data");
  projectPath = join(folder, "project");
  mkdirSync(projectPath);
  for (let n = 0; n < 30; n++) writeFileSync(join(projectPath, `f${n}.py`), `def f${n}(): pass\n`);
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((local) => local.close()));
  rmSync(folder, { recursive: true });
});

/** An index of its own, whose batches pass a gate one by one. */
function gate() {
  const index = new Map<string, string>();
  const waiting: (() => void)[] = [];
  let isOpen = false;
  const reports: IndexReport[] = [];
  let cancelRequested = () => false;
  const target: IndexTarget = {
    atOnce: 1,
    hashes: async (paths) => new Map(paths.flatMap((path) => (index.has(path) ? [[path, index.get(path)!] as const] : []))),
    async send(files, signal) {
      if (!isOpen)
        await new Promise<void>((resolve, reject) => {
          waiting.push(resolve);
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        });
      for (const { path, hash } of files) index.set(path, hash!);
      return files.map(({ path }): FileOutcome => ({ path, status: "indexed", chunks: 1 }));
    },
    finish: async () => ({ removed: 0, renamed: 0 }),
    counts: async () => ({ files: index.size, chunks: index.size }),
    async report(report) {
      reports.push(report);
      return { cancelRequested: cancelRequested() };
    },
  };
  return {
    index,
    target,
    reports,
    /** Answers further reports with the request to cancel. */
    requestCancel() {
      cancelRequested = () => true;
    },
    /** Lets one batch through. */
    async pass() {
      while (waiting.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      waiting.shift()!();
    },
    open() {
      isOpen = true;
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
}

/** What a process has, but for being one. */
function local(target: IndexTarget, options: { cancelWithCaller?: boolean } = {}): IndexJobs {
  const openTarget = async () => ({ target, close: async () => {} });
  const made = indexJobs({
    dataDir,
    launch: launchHere((job, lease, stop) => runJob({ dataDir, job, lease, stop, openTarget })),
    counts: async () => ({ files: 0, chunks: 0 }),
    ...options,
  });
  opened.push(made);
  return made;
}
const jobFile = (id: string): z.output<ReturnType<typeof JobRecord>> =>
  JSON.parse(readFileSync(join(dataDir, "jobs", `${id}.json`), "utf8"));
const summary = () => JSON.parse(readFileSync(join(dataDir, "mcp-state.json"), "utf8"));
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
}

describe("an index job", () => {
  it("returns at once, reports its progress, and records both in the job file and in mcp-state.json", async () => {
    const { target, pass, open } = gate();
    const one = local(target);
    const begun = await one.index({ projectPath });
    expect(begun).toMatchObject({ status: "pending", projectPath, filesProcessed: 0 });
    await pass();
    await until(() => jobFile(begun.jobId).files_processed === 10);
    expect(jobFile(begun.jobId)).toMatchObject({ status: "running", phase: "sending", files_total: 30, counts: { indexed: 10 } });
    expect(summary()).toEqual({
      current_jobs: {
        [begun.jobId]: expect.objectContaining({
          project_id: projectPath,
          path: projectPath,
          started_at: expect.any(String),
          status: "running",
        }),
      },
      recent_paths: [projectPath],
      last_sync: null,
    });
    const reported: (number | undefined)[][] = [];
    const waiting = one.index({ projectPath, wait: true }, { progress: (at, of) => reported.push([at, of]) });
    await until(() => reported.length > 0);
    open();
    const done = await waiting;
    expect(done).toMatchObject({ jobId: begun.jobId, status: "completed", filesProcessed: 30, counts: { indexed: 30 } });
    expect(reported[0]).toEqual([10, 30]);
    await one.close(); // the summary is the last thing that a job writes
    expect(summary()).toMatchObject({ current_jobs: {}, last_sync: done.finishedAt });
    expect(readdirSync(join(dataDir, "jobs")).filter((name) => /lease|lock|tmp|cancel/.test(name))).toEqual([]);
  });

  it("reports its start, and its end with the reason of each skipped file, to the index", async () => {
    writeFileSync(join(projectPath, ".gitignore"), "out/\n");
    mkdirSync(join(projectPath, "out"));
    writeFileSync(join(projectPath, "logo.png"), "png");
    writeFileSync(join(projectPath, "data.sql"), "x".repeat(1_000_001));
    const { target, open, reports } = gate();
    open();
    await local(target).index({ projectPath, wait: true });
    await until(() => reports.at(-1)?.status === "completed");
    expect(reports[0]).toMatchObject({ status: "running", filesProcessed: 0 });
    expect(reports.at(-1)).toMatchObject({
      filesProcessed: 31,
      skipped: { ignored: 1, binary: 1, too_large: 1 },
      skippedFiles: [
        { path: "data.sql", reason: "too_large", detail: "1000001 bytes" },
        { path: "logo.png", reason: "binary" },
        { path: "out/", reason: "ignored", detail: "out/ in .gitignore" },
      ],
    });
  });

  it("is cancelled by the answer to its report", async () => {
    const { target, pass, requestCancel, reports } = gate();
    const { jobId } = await local(target).index({ projectPath });
    await pass();
    requestCancel();
    await until(() => jobFile(jobId).status === "cancelled");
    await until(() => reports.at(-1)?.status === "cancelled");
  });

  it("runs as well when the index refuses its reports", async () => {
    const { target, open } = gate();
    open();
    const refusing = { ...target, report: () => Promise.reject(new Error("no such operation")) };
    expect(await local(refusing).index({ projectPath, wait: true })).toMatchObject({ status: "completed" });
  });

  it("exists once per project: a second request joins it, also from another process", async () => {
    const { target, open } = gate();
    const first = await local(target).index({ projectPath });
    const others = await Promise.all([local(target), local(target)].map((other) => other.index({ projectPath })));
    expect(others.map(({ jobId }) => jobId)).toEqual([first.jobId, first.jobId]);
    open();
  });

  it("exists once per project also for concurrent requests", async () => {
    const { target, open } = gate();
    const asked = await Promise.allSettled(Array.from({ length: 8 }, () => local(target).index({ projectPath })));
    const ids = new Set(asked.flatMap((one) => (one.status === "fulfilled" ? [one.value.jobId] : [])));
    expect(ids.size).toBe(1);
    expect(asked.filter(({ status }) => status === "rejected")).toEqual([]);
    open();
  });

  it("is cancelled from another process, and its indexed files stay", async () => {
    const { target, pass, index } = gate();
    const { jobId: id } = await local(target).index({ projectPath });
    await pass();
    const cancelled = await local(target).cancel({ projectPath });
    expect(cancelled).toMatchObject({ jobId: id, status: "cancelled" });
    expect(index.size).toBe(10);
    await expect(local(target).cancel({ projectPath })).rejects.toMatchObject({ code: "not_found" });
    expect(await local(target).resume(projectPath)).toBeUndefined();
  });

  it("is cancelled when the waiting command line is aborted", async () => {
    const { target, pass } = gate();
    const stop = new AbortController();
    const one = local(target, { cancelWithCaller: true });
    const waiting = one.index({ projectPath, wait: true }, { signal: stop.signal });
    await pass();
    stop.abort();
    await expect(waiting).rejects.toThrow();
    await one.close();
    expect(await local(target).jobs(projectPath)).toMatchObject([{ status: "cancelled" }]);
  });

  it("is interrupted when its process ends, resumes at the next start, and sends no file twice", async () => {
    const { target, pass, open, index } = gate();
    const first = local(target);
    const { jobId: id } = await first.index({ projectPath, includeIgnored: true });
    await pass();
    await until(() => index.size === 10);
    await first.close();
    const second = local(target);
    expect(await second.jobs(projectPath)).toMatchObject([{ jobId: id, status: "pending" }]);
    open();
    expect(await second.resume(projectPath)).toMatchObject({ jobId: id, includeIgnored: true });
    await until(() => jobFile(id).status === "completed");
    expect(jobFile(id)).toMatchObject({ counts: { indexed: 20, unchanged: 10 } });
    expect((await second.index({ projectPath, wait: true })).jobId).not.toBe(id);
  });

  it("does not start in a process that is closing", async () => {
    const { target, open, index } = gate();
    open();
    const one = local(target);
    const begun = one.index({ projectPath });
    await one.close();
    await expect(begun).rejects.toMatchObject({ code: "unavailable" });
    await expect(one.index({ projectPath })).rejects.toMatchObject({ code: "unavailable" });
    expect(index.size).toBe(0);
    expect(await local(target).jobs(projectPath)).toEqual([]);
    expect(await local(target).index({ projectPath, wait: true })).toMatchObject({ status: "completed" });
  });

  it("is taken over at once from a killed process", async () => {
    const { target, open } = gate();
    open();
    const one = local(target);
    const { jobId: id } = await one.index({ projectPath, wait: true });
    // As kill -9 leaves it: running, with the lease of a process that is no more.
    writeFileSync(join(dataDir, "jobs", `${id}.json`), JSON.stringify({ ...jobFile(id), status: "running", finished_at: undefined }));
    const lease = {
      job_id: id,
      token: "of the dead",
      pid: 2 ** 22 - 1,
      host: (await import("node:os")).hostname(),
      renewed_at_ms: Date.now(),
    };
    writeFileSync(join(dataDir, "jobs", `${projectDatabaseName(projectPath)}.lease`), JSON.stringify(lease));
    expect(await one.jobs(projectPath)).toMatchObject([{ jobId: id, status: "pending", phase: expect.stringContaining("interrupted") }]);
    expect(await one.index({ projectPath, wait: true })).toMatchObject({ jobId: id, status: "completed", counts: { unchanged: 30 } });
  });

  it("is cancelled also when no process runs it", async () => {
    const { target, pass } = gate();
    const first = local(target);
    await first.index({ projectPath });
    await pass();
    await first.close();
    expect(await local(target).cancel({ projectPath })).toMatchObject({ status: "cancelled" });
  });

  it("stops when another process has acquired its lease", async () => {
    const rights = leases(dataDir, { leaseMs: 6_000 });
    const lease = await rights.acquire(projectPath, "job");
    if (!("token" in lease)) throw new Error("the lease was free");
    let lost = 0;
    const kept = await rights.hold(lease, () => lost++);
    expect(await rights.acquire(projectPath, "other")).toEqual({ heldBy: "job" });
    // A process that hangs does not beat; here the file is set back instead.
    const path = join(dataDir, "jobs", `${projectDatabaseName(projectPath)}.lease`);
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), token: "another's" }));
    await until(() => lost > 0);
    await kept.release();
    // Not removed by who had lost it; and without a beat it runs out.
    expect(readdirSync(join(dataDir, "jobs")).filter((name) => name.endsWith(".lease"))).toHaveLength(1);
    const impatient = leases(dataDir, { leaseMs: 0 });
    expect(await impatient.holder(projectPath)).toBeUndefined();
    expect(await impatient.acquire(projectPath, "other")).toMatchObject({ jobId: "other" });
  });

  it("does not write the job file after another process has taken it over", async () => {
    const { target, open } = gate();
    open();
    const { jobId: id } = await local(target).index({ projectPath, wait: true });
    const theirs = jobFile(id);
    let asked = 0;
    const openTarget = async () => {
      asked++;
      return { target, close: async () => {} };
    };
    const lease = { projectPath, jobId: id, token: "run out while the machine slept" };
    await runJob({
      dataDir,
      job: { ...toCamel(JobRecord(), theirs), status: "pending" },
      lease,
      openTarget,
      stop: new AbortController().signal,
    });
    expect(jobFile(id)).toEqual(theirs);
    expect(asked).toBe(0);
  });

  it("fails with the reason of the target, and the next job continues", async () => {
    const { target, open, index } = gate();
    open();
    const refusing: IndexTarget = { ...target, hashes: () => Promise.reject(new Error("no key")) };
    const failed = await local(refusing).index({ projectPath, wait: true });
    expect(failed).toMatchObject({ status: "failed", error: "no key" });
    expect(await local(target).index({ projectPath, wait: true })).toMatchObject({ status: "completed", counts: { indexed: 30 } });
    expect(index.size).toBe(30);
  });

  it("rejects a home directory, a file and a missing folder before it starts", async () => {
    const one = local(gate().target);
    for (const path of ["/", join(projectPath, "f1.py"), join(projectPath, "nowhere")])
      await expect(one.index({ projectPath: path })).rejects.toMatchObject({ code: /invalid_input|not_found/ });
    expect(await one.jobs("/")).toEqual([]);
  });

  it("ignores damaged job files, and keeps only the newest jobs", async () => {
    const { target, open } = gate();
    open();
    const one = local(target);
    const { jobId: id } = await one.index({ projectPath, wait: true });
    const template = jobFile(id);
    for (let n = 0; n < 120; n++) {
      const other = `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
      writeFileSync(
        join(dataDir, "jobs", `${other}.json`),
        n % 2 ? JSON.stringify({ ...template, job_id: other, created_at: "2020-01-01T00:00:00.000Z" }) : "{",
      );
    }
    for (let n = 0; n < 2; n++) await one.index({ projectPath, wait: true });
    await one.close(); // the clearing is the last thing that a job does
    expect((await one.jobs(projectPath)).length).toBeLessThanOrEqual(20);
    await expect(one.cancel({ projectPath, jobId: "../../etc/passwd" })).rejects.toMatchObject({ code: "not_found" });
  });
});

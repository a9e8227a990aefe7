import type { IndexedFile } from "../model/code-index.ts";
import { CairnError } from "../model/errors.ts";
import { hasReportEnded, type IndexReport, REPORT_SILENCE_MS, type StoredReport } from "../model/index-report.ts";
import type { CodeStore, FilePageQuery } from "../ports/code-store.ts";
import { redactSecrets } from "../text/redact.ts";

/** The report of an index job, as it is listed. */
export interface ReportedJob extends StoredReport {
  /** The job reported to be running, and then nothing for a minute: its process was stopped, or cannot reach this index. */
  readonly isSilent: boolean;
}

/** The jobs that fill the index, as the clients that run them report. */
export interface CodeJobs {
  /** Stores what a job did so far. Returns whether somebody asked to cancel it. */
  report(of: { readonly projectPath: string; readonly report: IndexReport }): Promise<{ readonly cancelRequested: boolean }>;
  /** Returns the jobs of a project, newest first. */
  jobs(of: { readonly projectPath: string }): Promise<readonly ReportedJob[]>;
  /** Asks a job to end: the given one, or the newest that has not ended. A job that no longer reports is recorded as cancelled at once. */
  cancelJob(of: { readonly projectPath: string; readonly jobId?: string | undefined }): Promise<ReportedJob>;
  /** Returns a page of the indexed files. */
  files(of: { readonly projectPath: string } & FilePageQuery): Promise<{ readonly files: readonly IndexedFile[]; readonly total: number }>;
}

export interface CodeJobsDeps {
  readonly find: (projectPath: string) => Promise<CodeStore | undefined>;
  readonly create: (projectPath: string) => Promise<CodeStore>;
  readonly now: () => string;
}

export function codeJobs({ find, create, now }: CodeJobsDeps): CodeJobs {
  const list = (report: StoredReport): ReportedJob => ({
    ...report,
    isSilent: report.status === "running" && Date.parse(now()) - Date.parse(report.updatedAt) > REPORT_SILENCE_MS,
  });

  return {
    async report({ projectPath, report }) {
      return (await create(projectPath)).report(withoutSecrets(report));
    },

    async jobs({ projectPath }) {
      return ((await (await find(projectPath))?.reports()) ?? []).map(list);
    },

    async cancelJob({ projectPath, jobId }) {
      const store = await find(projectPath);
      const known = (await store?.reports())?.find((one) => (jobId === undefined ? !hasReportEnded(one) : one.jobId === jobId));
      const found = known && (await store!.requestCancel(known.jobId));
      if (!found)
        throw new CairnError(
          "not_found",
          jobId === undefined ? "No index job of this project is running." : `There is no job ${JSON.stringify(jobId)}.`,
        );
      const job = list(found);
      if (!job.isSilent) return job;
      const { isSilent: _, cancelRequested, ...report } = job;
      const ended: IndexReport = { ...report, status: "cancelled", phase: "ended", updatedAt: now(), finishedAt: now() };
      await store!.report(ended);
      return { ...ended, cancelRequested, isSilent: false };
    },

    async files({ projectPath, ...query }) {
      const store = await find(projectPath);
      return store ? store.filePage(query) : { files: [], total: 0 };
    },
  };
}

/** Removes secrets from every text of a report: paths, rules and messages of other programs may contain some. */
function withoutSecrets<Value>(value: Value): Value {
  if (typeof value === "string") return redactSecrets(value).text as Value;
  if (Array.isArray(value)) return value.map(withoutSecrets) as Value;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [redactSecrets(key).text, withoutSecrets(inner)])) as Value;
}

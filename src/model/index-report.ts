import type { IndexJobStatus } from "./index-job.ts";

/** What a job that indexes a folder reports to the index. The job runs where the files are; the report is for those who look elsewhere. */
export interface IndexReport {
  readonly jobId: string;
  readonly status: IndexJobStatus;
  readonly phase: string;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly finishedAt?: string | undefined;
  readonly filesProcessed: number;
  readonly filesTotal: number;
  readonly currentFile?: string | undefined;
  readonly etaSeconds?: number | undefined;
  /** Files by outcome: indexed, unchanged, renamed, removed, failed; and the chunks and bytes of the indexed files. */
  readonly counts: Readonly<Record<string, number>>;
  /** Excluded entries by reason. */
  readonly skipped: Readonly<Record<string, number>>;
  /** The first of each reason. A folder ends with `/` and stands for everything in it. */
  readonly skippedFiles: readonly SkippedFile[];
  readonly failedFiles: readonly { readonly path: string; readonly reason: string }[];
  readonly error?: string | undefined;
}

export interface SkippedFile {
  readonly path: string;
  readonly reason: string;
  /** The rule, size or target that decided. */
  readonly detail?: string | undefined;
}

/** A report in the store. */
export interface StoredReport extends IndexReport {
  /** Somebody asked to cancel the job. It ends when it reports next. */
  readonly cancelRequested: boolean;
}

/** Reports that the index of a project keeps: those of the newest jobs. */
export const REPORTS_KEPT = 20;

/** Milliseconds after which a job that reported to be running, and reported nothing since, counts as interrupted. */
export const REPORT_SILENCE_MS = 60_000;

export function hasReportEnded({ status }: Pick<IndexReport, "status">): boolean {
  return status !== "pending" && status !== "running";
}

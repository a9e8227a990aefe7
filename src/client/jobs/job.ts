import { z } from "zod";

/** The form of a job id. It is part of file names. */
const JOB_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** How a job is written down, and how the edges tell of it. */
export const JobStatus = z.enum(["pending", "running", "completed", "partial", "failed", "cancelled"]);

/** A job as its file holds it. The file is read again after a crash, so nothing beyond these fields is accepted. */
export const JobRecord = z.strictObject({
  id: z.string().regex(JOB_ID),
  /** The project in the index, which is also the root that is walked: the real path of the working tree. */
  project_id: z.string(),
  status: JobStatus,
  phase: z.string(),
  created_at: z.iso.datetime(),
  started_at: z.iso.datetime().optional(),
  updated_at: z.iso.datetime(),
  finished_at: z.iso.datetime().optional(),
  current_file: z.string().optional(),
  files_processed: z.int(),
  files_total: z.int(),
  eta_seconds: z.int().optional(),
  counts: z.strictObject({
    indexed: z.int(),
    unchanged: z.int(),
    renamed: z.int(),
    removed: z.int(),
    failed: z.int(),
    chunks: z.int(),
    bytes: z.int(),
  }),
  skipped: z.record(z.string(), z.int()),
  /** The first of each reason. */
  skipped_files: z.array(z.strictObject({ path: z.string(), reason: z.string() })).default([]),
  failed_files: z.array(z.strictObject({ path: z.string(), reason: z.string(), searchable: z.boolean().optional() })),
  /** What the index held at the end. Counting takes a moment, so while the next job runs, whoever asks is told this. */
  index: z.strictObject({ files: z.int(), chunks: z.int() }).optional(),
  error: z.string().optional(),
  include_ignored: z.boolean(),
  anywhere: z.boolean(),
});

export type Job = z.output<typeof JobRecord>;
export type JobState = Pick<
  Job,
  "phase" | "current_file" | "files_processed" | "files_total" | "eta_seconds" | "counts" | "skipped" | "skipped_files" | "failed_files"
>;

export const isOver = ({ status }: Pick<Job, "status">): boolean => status !== "pending" && status !== "running";

import { z } from "zod";

/** How a job is written down, and how the edges tell of it. */
export const JobStatus = z.enum(["pending", "running", "completed", "partial", "failed", "cancelled"]);

export const JobRecord = z.object({
  id: z.string(),
  /** The project in the index; here the absolute path as it was given. */
  project_id: z.string(),
  path: z.string(),
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
  counts: z.object({
    indexed: z.int(),
    unchanged: z.int(),
    moved: z.int(),
    removed: z.int(),
    failed: z.int(),
    chunks: z.int(),
    bytes: z.int(),
  }),
  skipped: z.record(z.string(), z.int()),
  /** The first of each reason. */
  skipped_files: z.array(z.object({ path: z.string(), reason: z.string() })).default([]),
  failed_files: z.array(z.object({ path: z.string(), reason: z.string(), searchable: z.boolean().optional() })),
  /** What the index held at the end. Counting takes a moment, so while the next job runs, whoever asks is told this. */
  index: z.object({ files: z.int(), chunks: z.int() }).optional(),
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

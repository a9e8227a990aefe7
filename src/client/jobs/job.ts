import { z } from "zod";
import { once } from "../../model/once.ts";
import type { Camel } from "../../operations/wire.ts";

/** The form of a job id. It is part of file names. */
export const JOB_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const JobStatus = z.enum(["pending", "running", "completed", "partial", "failed", "cancelled"]);

/** The content of a job file, with the field names of the wire. It is read after a crash, so unknown fields are rejected. */
export const JobRecord = once(() =>
  z.strictObject({
    job_id: z.string().regex(JOB_ID),
    /** The project in the index, and the root of the walk: the real path of the working tree. */
    project_path: z.string(),
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
    /** Each file is counted once, as indexed, unchanged, renamed or failed. `removed` counts files that are gone and were not renamed. */
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
    /** The first files of each reason. */
    skipped_files: z.array(z.strictObject({ path: z.string(), reason: z.string(), detail: z.string().optional() })).default([]),
    failed_files: z.array(z.strictObject({ path: z.string(), reason: z.string(), searchable: z.boolean().optional() })),
    /** Size of the index when the job ended. code_status returns it while the next job runs, because counting would slow that job down. */
    index: z.strictObject({ files: z.int(), chunks: z.int() }).optional(),
    error: z.string().optional(),
    include_ignored: z.boolean(),
    anywhere: z.boolean(),
  }),
);

/** An index job. Files and surfaces have the same fields in snake_case; `operations/wire.ts` translates by the schema. */
export type Job = Camel<z.output<ReturnType<typeof JobRecord>>>;
export type JobState = Pick<
  Job,
  "phase" | "currentFile" | "filesProcessed" | "filesTotal" | "etaSeconds" | "counts" | "skipped" | "skippedFiles" | "failedFiles"
>;

/** Returns whether a job has ended. */
export const hasEnded = ({ status }: Pick<Job, "status">): boolean => status !== "pending" && status !== "running";

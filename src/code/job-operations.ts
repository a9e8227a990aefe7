import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { Id, ProjectId } from "../operations/schemas.ts";
import { jobText } from "./job-text.ts";
import type { ReportedJob } from "./jobs.ts";
import { FilterFields, JobView, readLanguage } from "./wire-schemas.ts";

/** Operations on the jobs that fill the index, and on the files in it. */

const Listed = JobView.extend({
  started_at: z.string(),
  updated_at: z.string(),
  cancel_requested: z.boolean(),
  interrupted: z.boolean().describe("The job has not ended, and has not reported for a minute."),
});

const toWire = ({ isSilent, ...job }: ReportedJob) => ({ ...job, interrupted: isSilent });

export const codeJobs = operation({
  name: "code_jobs",
  summary: "List index jobs with their progress, and skipped and failed files with the reason.",
  input: z.strictObject({ project_path: ProjectId }),
  output: z.object({ jobs: z.array(Listed) }),
  access: "read",
  toolset: "code",
  cli: {
    examples: ["cairn code jobs"],
  },
  render: ({ jobs }) => jobs.map((job) => jobText(job)).join("\n") || "No index job has reported yet. Run: cairn code index",
  run: async (cairn, { projectPath }) => ({ jobs: (await cairn.code.jobs({ projectPath })).map(toWire) }),
});

export const codeCancel = operation({
  name: "code_cancel",
  summary: "Ask an index job to end. Files that it has indexed stay indexed.",
  input: z.strictObject({ project_path: ProjectId, job_id: Id.optional().describe("Default: the newest job that has not ended.") }),
  output: Listed,
  access: "write",
  toolset: "code",
  render: (job) => jobText(job),
  run: async (cairn, input) => toWire(await cairn.code.cancelJob(input)),
});

const Path = z.string().max(LIMITS.projectPathChars);
const Text = z.string().max(LIMITS.codeReportTextChars);
const Counts = z.record(z.string().max(LIMITS.labelChars), z.int().min(0)).refine((counts) => Object.keys(counts).length <= LIMITS.tags);
const ReasonFields = { path: Path, reason: Text };

export const codeReport = operation({
  name: "code_report",
  summary: "Report the progress or the end of an index job.",
  input: z.strictObject({
    project_path: ProjectId,
    job_id: Id,
    status: z.enum(["pending", "running", "completed", "partial", "failed", "cancelled"]),
    phase: Text,
    started_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    finished_at: z.iso.datetime().optional(),
    files_processed: z.int().min(0),
    files_total: z.int().min(0),
    current_file: Path.optional(),
    eta_seconds: z.int().min(0).optional(),
    counts: Counts,
    skipped: Counts,
    skipped_files: z.array(z.strictObject({ ...ReasonFields, detail: Text.optional() })).max(LIMITS.codeReportFiles),
    failed_files: z.array(z.strictObject(ReasonFields)).max(LIMITS.codeReportFiles),
    error: Text.optional(),
  }),
  output: z.object({ cancel_requested: z.boolean().describe("Somebody asked the job to end.") }),
  access: "write",
  limits: { bodyBytes: LIMITS.importBytes },
  toolset: "none",
  http: { method: "POST", path: "/index/reports" },
  cli: { hidden: true },
  render: ({ cancel_requested }) => (cancel_requested ? "The job shall end." : "Recorded."),
  run: async (cairn, { projectPath, ...report }) => cairn.code.report({ projectPath, report }),
});

export const codeFiles = operation({
  name: "code_files",
  summary: "List the indexed files with size, language and time.",
  input: z.strictObject({
    project_path: ProjectId,
    glob: FilterFields.glob,
    languages: FilterFields.languages,
    sort_by: z.enum(["path", "bytes", "indexed_at"]).default("path").describe("bytes: largest first. indexed_at: newest first."),
    limit: z.int().min(1).max(LIMITS.codeFilesListed).default(LIMITS.listMax),
    offset: z.int().min(0).max(LIMITS.offsetMax).default(0),
  }),
  output: z.object({
    files: z.array(
      z.object({
        path: z.string(),
        language: z.string(),
        bytes: z.int(),
        lines: z.int(),
        indexed_at: z.string(),
        notice: z.string().optional().describe("Why the file was indexed only in part."),
      }),
    ),
    total: z.int(),
  }),
  access: "read",
  toolset: "code",
  cli: {
    positional: ["glob"],
    examples: ["cairn code files", "cairn code files 'src/**' --sort-by bytes --limit 20"],
    view: { table: "files", columns: ["path", "language", "bytes", "lines", "indexed_at", "notice"], optional: ["notice", "indexed_at"] },
  },
  mcp: { rows: "files" },
  render: ({ files, total }) =>
    [
      ...files.map(({ path, language, bytes, indexed_at, notice }) =>
        [path, language, `${bytes} bytes`, indexed_at, ...(notice ? [notice] : [])].join("  "),
      ),
      files.length < total ? `${files.length} of ${total} files.` : `${total} files.`,
    ].join("\n"),
  run: async (cairn, { languages, ...query }) => cairn.code.files({ ...query, languages: languages?.map(readLanguage) }),
});

export const codeJobOperations = [codeJobs, codeCancel, codeReport, codeFiles];

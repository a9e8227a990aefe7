import { z } from "zod";
import { jobText } from "../../code/job-text.ts";
import { JobView } from "../../code/wire-schemas.ts";
import { CairnError } from "../../model/errors.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Cairn } from "../../operations/cairn.ts";
import { type Operation, operation } from "../../operations/operation.ts";
import { Id, ProjectPath } from "../../operations/schemas.ts";
import type { IndexJobs } from "./index-jobs.ts";
import { hasEnded } from "./job.ts";

/** Operations of the client side: they read the disk, so a server does not have them. `served-index.ts` has the exception for its local user. */

export const codeIndex = operation({
  name: "code_index",
  summary: "Index the project's source code, or bring its index up to date.",
  description: "Returns a job at once; code_status reports its progress.",
  input: z.strictObject({
    project_path: ProjectPath,
    wait: z.boolean().default(false).describe("Wait until the job has ended."),
    include_ignored: z.boolean().default(false).describe("Also index files that .gitignore, .cairnignore and the built-in rules exclude."),
    anywhere: z.boolean().default(false).describe("Allow a whole home directory or disk."),
  }),
  output: JobView,
  access: "write",
  limits: { timeoutMs: LIMITS.indexWaitMs },
  toolset: "core",
  mcp: { unlisted: ["include_ignored", "anywhere"], searchHint: "index the source code" },
  cli: {
    examples: ["cairn code index . --wait", "cairn code index", "cairn code index ~/app --include-ignored --wait"],
    attention: ({ status }) => status === "partial",
    cancelled: "Files that were indexed stay indexed; the next cairn code index continues.",
  },
  render: (job) => jobText(job),
  async run(cairn, input, { signal, progress }) {
    const job = await indexJobsOf(cairn).index(input, { signal, progress });
    if (job.status === "failed") throw new CairnError("unavailable", job.error ?? "Indexing failed.");
    return job;
  },
});

export const codeStatus = operation({
  name: "code_status",
  summary: "Show the progress of index jobs and the size of the index.",
  input: z.strictObject({
    project_path: ProjectPath,
    limit: z.int().min(1).max(20).default(1).describe("Number of jobs, newest first."),
  }),
  output: z.object({
    indexed_files: z.int(),
    chunks: z.int(),
    jobs: z.array(JobView),
  }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "core",
  mcp: { unlisted: ["limit"], searchHint: "progress of indexing" },
  cli: { examples: ["cairn code status", "cairn code status --limit 5 --json"] },
  render: ({ indexed_files, chunks, jobs }) =>
    [
      indexed_files === 0 ? "Nothing is indexed yet. Run code_index (cairn code index)." : `${indexed_files} files in ${chunks} chunks.`,
      ...jobs.map(jobText),
    ].join("\n"),
  async run(cairn, { projectPath, limit }) {
    const indexJobs = indexJobsOf(cairn);
    const jobs = await indexJobs.jobs(projectPath);
    const { files, chunks } = await indexJobs.counts(projectPath, jobs);
    const runningFirst = [...jobs.filter((job) => !hasEnded(job)), ...jobs.filter(hasEnded)];
    return { indexedFiles: files, chunks, jobs: runningFirst.slice(0, limit) };
  },
});

export const codeCancel = operation({
  name: "code_cancel",
  summary: "Cancel the running index job. Files that it has indexed stay indexed.",
  input: z.strictObject({ project_path: ProjectPath, job_id: Id.optional().describe("Default: the running job.") }),
  output: JobView,
  access: "write",
  toolset: "code",
  cli: { examples: ["cairn code cancel"] },
  render: (job) => jobText(job),
  run: async (cairn, input) => indexJobsOf(cairn).cancel(input),
});

export const clientOperations: readonly Operation[] = [codeIndex, codeStatus, codeCancel];

function indexJobsOf({ indexJobs }: Cairn): IndexJobs {
  if (!indexJobs)
    throw new CairnError("unavailable", "Files are indexed on the machine that holds them. Run cairn mcp or cairn code index there.");
  return indexJobs;
}

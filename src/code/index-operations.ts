import { z } from "zod";
import type { IndexJob } from "../model/index-job.ts";
import { LIMITS } from "../model/limits.ts";
import { type CallContext, operation } from "../operations/operation.ts";
import { Id, ProjectId, text } from "../operations/schemas.ts";
import { unknownJob } from "./indexing.ts";
import { FilePath, JobOutput } from "./wire-schemas.ts";

/** What programs use that bring a project's files to the index. People and agents have `code index`, which uses these. */

const toOutput = ({ id, ...job }: IndexJob) => ({ jobId: id, ...job });
const renderJob = ({ job_id, status, reason, result }: z.output<typeof JobOutput>): string =>
  [
    `Job ${job_id}: ${status}${reason ? `. ${reason}` : ""}`,
    ...(result?.files ?? []).map(({ path, status: fate, reason: why }) => `  ${fate}  ${path}${why ? `: ${why}` : ""}`),
    ...(result?.removed ? [`  ${result.removed} files removed, of them ${result.renamed} renamed.`] : []),
  ].join("\n");

export const codeSend = operation({
  name: "code_send",
  summary: "Send files to be indexed; the answer is a job.",
  description:
    "Batches of a project are indexed in the order of their acceptance. A file whose content is known costs nothing. 503 with Retry-After: the queue is full.",
  input: z.strictObject({
    project_path: ProjectId,
    files: z
      .array(
        z.strictObject({
          path: z.string().max(LIMITS.projectPathChars).describe("Relative to the project, with /."),
          content: z.string(),
          hash: z
            .string()
            .max(LIMITS.idChars)
            .optional()
            .describe("SHA-256 of the content in UTF-8, in hex. A file that has another is refused."),
          language: text(LIMITS.labelChars, 1).optional().describe("Default: by the path and the content."),
        }),
      )
      .min(1)
      .max(LIMITS.codeBatchFiles),
    renames: z
      .array(z.strictObject({ from: FilePath, to: FilePath }))
      .max(LIMITS.codeBatchFiles)
      .optional()
      .describe("Files of the batch that were at another path before: what did not change in them is not embedded again."),
  }),
  output: JobOutput,
  access: "write",
  toolset: "none",
  http: { method: "POST", path: "/index", status: 202 },
  cli: { hidden: true },
  render: renderJob,
  run: async (cairn, input, context) => toOutput(await cairn.indexing.send(input, senderOf(context))),
});

export const codeManifest = operation({
  name: "code_manifest",
  summary: "Say which files there are; those of the index that are not named are removed.",
  description:
    "Ends a full index. A long list comes in pages: sort the paths by UTF-16 code units, and let each page say its range, from `after` (not in it) to `until` (in it). A page removes nothing outside its range, so pages that never come remove nothing.",
  input: z.strictObject({
    project_path: ProjectId,
    paths: z.array(FilePath).min(1, "a manifest names at least one file; to remove all, clean the index").max(LIMITS.codeManifestPaths),
    after: FilePath.optional().describe("The last path of the page before. Not given: from the beginning."),
    until: FilePath.optional().describe("The last path of this page. Not given: to the end."),
  }),
  output: JobOutput,
  access: "write",
  annotations: { destructive: true },
  limits: { bodyBytes: LIMITS.importBytes },
  toolset: "none",
  http: { method: "POST", path: "/index/manifest", status: 202 },
  cli: { hidden: true },
  render: renderJob,
  run: async (cairn, { projectPath, paths, after, until }, context) =>
    toOutput(await cairn.indexing.sendManifest({ projectPath, manifest: paths, after, until }, senderOf(context))),
});

export const codeHashes = operation({
  name: "code_hashes",
  summary: "The content hashes of those of these files that are in the index, to send only what changed.",
  input: z.strictObject({ project_path: ProjectId, paths: z.array(FilePath).min(1).max(LIMITS.codeManifestPaths) }),
  output: z.object({ hashes: z.record(z.string(), z.string()).describe("By path. A file that was not read as it should be has none.") }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs, bodyBytes: LIMITS.importBytes },
  toolset: "none",
  http: { method: "POST", path: "/index/hashes" },
  cli: { hidden: true },
  render: ({ hashes }) =>
    Object.entries(hashes)
      .map(([path, hash]) => `${hash}  ${path}`)
      .join("\n"),
  run: async (cairn, input) => ({ hashes: await cairn.code.hashes(input) }),
});

export const codeJobGet = operation({
  name: "code_job_get",
  summary: "How far a job is that was accepted for indexing, and what each file came to.",
  input: z.strictObject({
    job_id: Id,
    wait_ms: z.int().min(0).max(LIMITS.codeJobWaitMs).default(0).describe("Answer when the job has ended, or after so long."),
  }),
  output: JobOutput,
  access: "read",
  limits: { timeoutMs: LIMITS.saveTimeoutMs },
  toolset: "none",
  http: { method: "GET", path: "/index/jobs/{job_id}" },
  cli: { hidden: true },
  render: renderJob,
  async run(cairn, { jobId, waitMs }, context) {
    // Looked at before it is waited for: whose job it is must not show in how long the answer takes.
    assertMayTouch(await cairn.indexing.job(jobId), context);
    return toOutput(await cairn.indexing.job(jobId, { waitMs, signal: context.signal }));
  },
});

export const codeJobCancel = operation({
  name: "code_job_cancel",
  summary: "Cancel a job that has not ended.",
  input: z.strictObject({ job_id: Id }),
  output: JobOutput,
  access: "write",
  toolset: "none",
  http: { method: "DELETE", path: "/index/jobs/{job_id}" },
  cli: { hidden: true },
  render: renderJob,
  async run(cairn, { jobId }, context) {
    assertMayTouch(await cairn.indexing.job(jobId), context);
    return toOutput(await cairn.indexing.cancel(jobId));
  },
});

const senderOf = ({ keyId }: CallContext) => ({ sender: keyId });

/** To a caller that may not touch its project, a job is not there. */
function assertMayTouch({ id, projectPath }: IndexJob, { mayTouch }: CallContext): void {
  if (!mayTouch(projectPath)) throw unknownJob(id);
}

export const codeIndexOperations = [codeSend, codeManifest, codeHashes, codeJobGet, codeJobCancel];

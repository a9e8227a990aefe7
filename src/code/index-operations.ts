import { z } from "zod";
import type { IndexJob } from "../model/index-job.ts";
import { LIMITS } from "../model/limits.ts";
import { type CallContext, operation } from "../operations/operation.ts";
import { Id, ProjectId, text } from "../operations/schemas.ts";
import { unknownJob } from "./indexing.ts";
import { FilePath, JobOutput } from "./wire-schemas.ts";

/** The operations with which a client sends files to the index. `code index` uses them. */

const toOutput = ({ id, ...job }: IndexJob) => ({ jobId: id, ...job });
const renderJob = ({ job_id, status, reason, result }: z.output<typeof JobOutput>): string =>
  [
    `Job ${job_id}: ${status}${reason ? `. ${reason}` : ""}`,
    ...(result?.files ?? []).map(({ path, status: fate, reason: why }) => `  ${fate}  ${path}${why ? `: ${why}` : ""}`),
    ...(result?.removed ? [`  ${result.removed} files removed, of them ${result.renamed} renamed.`] : []),
  ].join("\n");

export const codeSend = operation({
  name: "code_send",
  summary: "Send files to the index; returns a job.",
  description:
    "Batches of a project are indexed in the order of acceptance. Unchanged files are skipped. 503 with Retry-After: the queue is full.",
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
            .describe("SHA-256 of the content in UTF-8, in hex. A file with another hash is refused."),
          language: text(LIMITS.labelChars, 1).optional().describe("Default: detected by path and content."),
        }),
      )
      .min(1)
      .max(LIMITS.codeBatchFiles),
    renames: z
      .array(z.strictObject({ from: FilePath, to: FilePath }))
      .max(LIMITS.codeBatchFiles)
      .optional()
      .describe("Renamed files of the batch; unchanged chunks are not embedded again."),
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
  summary: "Submit the manifest of a full index.",
  description:
    "Ends a full index: indexed files that the manifest does not list are removed. Send a long list in pages: sort the paths by UTF-16 code units, and give each page its range, after `after` up to and including `until`. A page removes nothing outside its range.",
  input: z.strictObject({
    project_path: ProjectId,
    paths: z.array(FilePath).min(1, "a manifest names at least one file; to remove all, clean the index").max(LIMITS.codeManifestPaths),
    after: FilePath.optional().describe("The last path of the previous page. Default: from the beginning."),
    until: FilePath.optional().describe("The last path of this page. Default: to the end."),
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
  summary: "Get the stored content hashes of files.",
  input: z.strictObject({ project_path: ProjectId, paths: z.array(FilePath).min(1).max(LIMITS.codeManifestPaths) }),
  output: z.object({ hashes: z.record(z.string(), z.string()).describe("By path. A partially indexed file has none.") }),
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
  summary: "Get a job's progress and per-file results.",
  input: z.strictObject({
    job_id: Id,
    wait_ms: z.int().min(0).max(LIMITS.codeJobWaitMs).default(0).describe("Wait up to this long for the job to finish."),
  }),
  output: JobOutput,
  access: "read",
  limits: { timeoutMs: LIMITS.saveTimeoutMs },
  toolset: "none",
  http: { method: "GET", path: "/index/jobs/{job_id}" },
  cli: { hidden: true },
  render: renderJob,
  async run(cairn, { jobId, waitMs }, context) {
    // Checks access before waiting: the response time must not reveal the existence of a job.
    assertMayTouch(await cairn.indexing.job(jobId), context);
    return toOutput(await cairn.indexing.job(jobId, { waitMs, signal: context.signal }));
  },
});

export const codeJobCancel = operation({
  name: "code_job_cancel",
  summary: "Cancel an unfinished job.",
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

/** Raises `not_found` for a job of a project that the caller may not access. */
function assertMayTouch({ id, projectPath }: IndexJob, { mayTouch }: CallContext): void {
  if (!mayTouch(projectPath)) throw unknownJob(id);
}

export const codeIndexOperations = [codeSend, codeManifest, codeHashes, codeJobGet, codeJobCancel];

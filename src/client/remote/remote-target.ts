import type { z } from "zod";
import { codeHashes, codeJobGet, codeManifest, codeSend } from "../../code/index-operations.ts";
import { codeReport } from "../../code/job-operations.ts";
import { codeStats } from "../../code/upkeep-operations.ts";
import type { JobOutput } from "../../code/wire-schemas.ts";
import { CairnError } from "../../model/errors.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Operation } from "../../operations/operation.ts";
import { toWire } from "../../operations/wire.ts";
import { callPacer } from "../../scheduling/rate-limit.ts";
import { countsOf, type IndexCounts, type IndexTarget } from "../jobs/index-target.ts";
import type { ApiClient } from "./api-client.ts";

export interface RemoteTargetOptions {
  readonly requestsPerSecond?: number | undefined;
}

type ServerJob = z.output<typeof JobOutput>;

export const REQUESTS_PER_SECOND = 10;
/** Batches in progress at once. The server indexes them in sequence, while the next ones are transferred. */
const AT_ONCE = 4;

/** Returns the index of a server as a target. The server accepts a batch before it indexes it; if it crashes in between, the batch is sent again. */
export function remoteTarget(
  client: ApiClient,
  projectPath: string,
  { requestsPerSecond = REQUESTS_PER_SECOND }: RemoteTargetOptions = {},
): IndexTarget {
  const waitForTurn = callPacer(requestsPerSecond);

  async function call(operation: Operation, input: Record<string, unknown>, signal: AbortSignal): Promise<Record<string, unknown>> {
    await waitForTurn(signal);
    return client.call(operation, input, signal);
  }

  /** Sends work and waits until the server has done it. */
  async function submit(
    operation: Operation,
    input: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<NonNullable<ServerJob["result"]>> {
    let job = (await call(operation, { project_path: projectPath, ...input }, signal)) as ServerJob;
    while (job.status === "pending" || job.status === "running")
      job = (await call(codeJobGet, { job_id: job.job_id, wait_ms: LIMITS.codeJobWaitMs }, signal).catch(raiseLostJob)) as ServerJob;
    if (job.result) return job.result;
    throw new CairnError(
      job.status === "cancelled" ? "unavailable" : "internal",
      job.reason ?? `The job on the server ended with the status ${job.status}.`,
    );
  }

  return {
    atOnce: AT_ONCE,
    async hashes(paths, signal) {
      const { hashes } = await call(codeHashes, { project_path: projectPath, paths }, signal);
      return new Map(Object.entries(hashes as Record<string, string>));
    },
    send: async (files, signal) => (await submit(codeSend, { files }, signal)).files,
    async finish(manifest, signal) {
      const paths = [...manifest].sort();
      let removed = 0;
      let renamed = 0;
      for (let start = 0; start < paths.length; start += LIMITS.codeManifestPaths) {
        const page = paths.slice(start, start + LIMITS.codeManifestPaths);
        const last = start + page.length >= paths.length;
        const range = { ...(start > 0 && { after: paths[start - 1] }), ...(!last && { until: page.at(-1) }) };
        const result = await submit(codeManifest, { paths: page, ...range }, signal);
        removed += result.removed - result.renamed;
        renamed += result.renamed;
      }
      return { removed, renamed };
    },
    counts: async (signal) => countsOf((await call(codeStats, { project_path: projectPath }, signal)) as unknown as IndexCounts),
    async report(report, signal) {
      const input = toWire(codeReport.input, { projectPath, ...report }) as Record<string, unknown>;
      return { cancelRequested: (await call(codeReport, input, signal)).cancel_requested === true };
    },
  };
}

/** Raises `unavailable` for an unknown job: a restarted server does not know the jobs of its predecessor, so their files are sent again. */
function raiseLostJob(error: unknown): never {
  if (error instanceof CairnError && error.code === "not_found")
    throw new CairnError("unavailable", "The server restarted and lost the job. The files are sent again.", { cause: error });
  throw error;
}

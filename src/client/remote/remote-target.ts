import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import { codeHashes, codeJobGet, codeManifest, codeSend } from "../../code/index-operations.ts";
import { codeStats } from "../../code/upkeep-operations.ts";
import type { JobOutput } from "../../code/wire-schemas.ts";
import { CairnError } from "../../model/errors.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Operation } from "../../operations/operation.ts";
import { countsOf, type IndexCounts, type IndexTarget } from "../jobs/index-target.ts";
import type { ApiClient } from "./api-client.ts";

export interface RemoteTargetOptions {
  readonly requestsPerSecond?: number | undefined;
}

type ServerJob = z.output<typeof JobOutput>;

export const REQUESTS_PER_SECOND = 10;
/** The server indexes a project's batches one after another; while it does, the next ones may travel. */
const AT_ONCE = 4;

/** A server's index. Content is accepted first and indexed then; a server that dies between the two has forgotten the job, and the batch is sent again. */
export function remoteTarget(
  client: ApiClient,
  projectPath: string,
  { requestsPerSecond = REQUESTS_PER_SECOND }: RemoteTargetOptions = {},
): IndexTarget {
  const pace = paced(requestsPerSecond);

  async function call(operation: Operation, input: Record<string, unknown>, signal: AbortSignal): Promise<Record<string, unknown>> {
    await pace(signal);
    return client.call(operation, input, signal);
  }

  /** Sends work and waits until it is done. */
  async function through(
    operation: Operation,
    input: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<NonNullable<ServerJob["result"]>> {
    let job = (await call(operation, { project_path: projectPath, ...input }, signal)) as ServerJob;
    while (job.status === "pending" || job.status === "running")
      job = (await call(codeJobGet, { job_id: job.job_id, wait_ms: LIMITS.codeJobWaitMs }, signal).catch(forgotten)) as ServerJob;
    if (job.result) return job.result;
    throw new CairnError(job.status === "cancelled" ? "unavailable" : "internal", job.reason ?? `The server's job ended as ${job.status}.`);
  }

  return {
    atOnce: AT_ONCE,
    async hashes(paths, signal) {
      const { hashes } = await call(codeHashes, { project_path: projectPath, paths }, signal);
      return new Map(Object.entries(hashes as Record<string, string>));
    },
    send: async (files, signal) => (await through(codeSend, { files }, signal)).files,
    async finish(manifest, signal) {
      const paths = [...manifest].sort();
      let removed = 0;
      let renamed = 0;
      for (let start = 0; start < paths.length; start += LIMITS.codeManifestPaths) {
        const page = paths.slice(start, start + LIMITS.codeManifestPaths);
        const last = start + page.length >= paths.length;
        const range = { ...(start > 0 && { after: paths[start - 1] }), ...(!last && { until: page.at(-1) }) };
        const result = await through(codeManifest, { paths: page, ...range }, signal);
        removed += result.removed - result.renamed;
        renamed += result.renamed;
      }
      return { removed, renamed };
    },
    counts: async (signal) => countsOf((await call(codeStats, { project_path: projectPath }, signal)) as unknown as IndexCounts),
  };
}

/** A server that was started anew knows nothing of what the last one had accepted: what was sent must be sent again. */
function forgotten(error: unknown): never {
  if (error instanceof CairnError && error.code === "not_found")
    throw new CairnError("unavailable", "The server has lost the job, so the files are sent again.", { cause: error });
  throw error;
}

/** Waits so that no more than so many calls are made in a second; calls come through in turn. */
function paced(perSecond: number): (signal: AbortSignal) => Promise<void> {
  const gapMs = 1_000 / perSecond;
  let next = 0;
  return async (signal) => {
    const now = performance.now();
    const at = Math.max(now, next);
    next = at + gapMs;
    if (at > now) await sleep(at - now, undefined, { signal });
  };
}

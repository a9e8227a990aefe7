import type { OnFolder } from "../../client/files/walk.ts";
import type { Job } from "../../client/jobs/job.ts";
import type { Lease } from "../../client/jobs/lease.ts";
import type { OpenTarget } from "../../client/jobs/run-job.ts";
import type { Config } from "../../config/schema.ts";
import type { Cairn } from "../../operations/cairn.ts";
import { configuredClient } from "../configured-client.ts";
import { openFromConfig } from "../open-from-config.ts";

/** All that a thread or a process needs to know to run a job. */
export interface IndexWork {
  readonly config: Config;
  readonly job: Job;
  readonly lease: Lease;
}

export interface IndexWorkOptions {
  readonly stop: AbortSignal;
  /** Opened already; else one is opened for the job. */
  readonly cairn?: Cairn | undefined;
  readonly onFolder?: OnFolder | undefined;
}

/** Runs a job against what the configuration names: a server, or the storage of this machine. */
export async function runIndexWork({ config, job, lease }: IndexWork, { stop, cairn, onFolder }: IndexWorkOptions): Promise<Job> {
  const { runJob } = await import("../../client/jobs/run-job.ts");
  const { batchFiles, batchBytes } = config.code;
  const openTarget = () => targetOf(config, job.project_id, cairn);
  return runJob({ dataDir: config.dataDir, job, lease, openTarget, stop, onFolder, batchFiles, batchBytes });
}

async function targetOf(config: Config, projectId: string, cairn: Cairn | undefined): Promise<OpenTarget> {
  const { api, code } = config;
  if (api.url !== undefined) {
    const [client, { remoteTarget }] = await Promise.all([
      configuredClient(config, api.url),
      import("../../client/remote/remote-target.ts"),
    ]);
    const target = remoteTarget(client, projectId, { requestsPerSecond: code.requestsPerSecond });
    return { target, close: async () => {} };
  }
  const { embeddedTarget } = await import("../../client/jobs/index-target.ts");
  const own = cairn ?? (await openFromConfig(config));
  return { target: embeddedTarget(own.code, projectId), close: async () => (cairn ? undefined : own.close()) };
}

import type { Config } from "../../config/schema.ts";
import type { Cairn } from "../../operations/cairn.ts";
import type { OnFolder } from "../files/walk.ts";
import type { Job } from "./job.ts";
import type { Lease } from "./lease.ts";
import type { OpenTarget } from "./run-job.ts";

/** A job with everything that another thread or process needs to run it. */
export interface IndexWork {
  readonly config: Config;
  readonly job: Job;
  readonly lease: Lease;
}

export interface IndexWorkOptions {
  readonly stop: AbortSignal;
  /** Opens the configured storage for the job if absent. */
  readonly cairn?: Cairn | undefined;
  readonly onFolder?: OnFolder | undefined;
}

/** Runs a job against the configured index: the server of `api.url`, or the storage of this machine. */
export async function runIndexWork({ config, job, lease }: IndexWork, { stop, cairn, onFolder }: IndexWorkOptions): Promise<Job> {
  const { runJob } = await import("./run-job.ts");
  const { batchFiles, batchBytes } = config.code;
  const open = () => openTarget(config, job.projectPath, cairn);
  return runJob({ dataDir: config.dataDir, job, lease, openTarget: open, stop, onFolder, batchFiles, batchBytes });
}

async function openTarget(config: Config, projectPath: string, cairn: Cairn | undefined): Promise<OpenTarget> {
  const { api, code } = config;
  if (api.url !== undefined) {
    const [{ configuredClient }, { remoteTarget }] = await Promise.all([
      import("../remote/configured-client.ts"),
      import("../remote/remote-target.ts"),
    ]);
    const client = await configuredClient(config, api.url);
    const target = remoteTarget(client, projectPath, { requestsPerSecond: code.requestsPerSecond });
    return { target, close: async () => {} };
  }
  const { embeddedTarget } = await import("./index-target.ts");
  const { reuse } = code;
  if (cairn) return { target: embeddedTarget(cairn.code, projectPath, { reuse }), close: async () => {} };
  const { openFromConfig } = await import("../../open/open-from-config.ts");
  const opened = await openFromConfig(config, "own"); // many texts: they would take the time of the process that embeds for others
  return { target: embeddedTarget(opened.code, projectPath, { reuse }), close: () => opened.close() };
}

import { indexJobs } from "../client/jobs/index-jobs.ts";
import type { Config } from "../config/schema.ts";
import type { Finding } from "../model/doctor.ts";
import type { Cairn } from "../operations/cairn.ts";
import type { Operation } from "../operations/operation.ts";
import { launcher, type Where } from "./code/launch.ts";
import { configuredClient } from "./configured-client.ts";
import { openFromConfig } from "./open-from-config.ts";

/** What an edge beside the files works with: the operations, whoever does them, and the Cairn to do them on. */
export interface Edge {
  readonly cairn: Cairn;
  readonly operations: readonly Operation[];
}

export interface EdgeOptions {
  /** Where index jobs run. */
  readonly jobs: Where;
  /** What the client side knows and the doctor should report. */
  readonly findings?: readonly Finding[];
  /** Ctrl-C ends the job that is waited for. */
  readonly cancelWithCaller?: boolean;
}

/**
 * The one way in which the command line and `cairn mcp` open Cairn: on this machine's storage, or with `api.url` on a server, which
 * then does everything but read files.
 */
export async function openEdge(config: Config, { jobs: where, findings, cancelWithCaller = false }: EdgeOptions): Promise<Edge> {
  const { edgeOperations } = await import("./edge-operations.ts");
  const { dataDir, api } = config;
  if (api.url !== undefined) {
    const [client, { remoteOperation }, { remoteService }, { remoteTarget }, { operations }] = await Promise.all([
      configuredClient(config, api.url),
      import("../client/remote/remote-operation.ts"),
      import("../client/remote/remote-service.ts"),
      import("../client/remote/remote-target.ts"),
      import("../operations/list.ts"),
    ]);
    const counts = (projectPath: string) => remoteTarget(client, projectPath).counts(new AbortController().signal);
    const jobs = indexJobs({ dataDir, launch: launcher(where, config, undefined), counts, cancelWithCaller });
    // The operations call the server and nothing of this. What is done here has a part in it, and what hooks and exports ask for.
    const checkpoints = remoteService<Cairn["checkpoints"]>("checkpoint", operations, client);
    const cairn = { indexJobs: jobs, checkpoints, close: () => jobs.close() } as Cairn;
    return {
      cairn,
      operations: edgeOperations(
        operations.map((operation) => remoteOperation(operation, client)),
        findings,
      ),
    };
  }
  const [own, { operations }] = await Promise.all([openFromConfig(config), import("../operations/list.ts")]);
  const place = config.storage === "memory" ? "here" : where; // no other thread can see that storage
  const counts = (projectId: string) => own.code.stats({ projectId });
  const jobs = indexJobs({ dataDir, launch: launcher(place, config, own), counts, cancelWithCaller });
  const close = async () => {
    await jobs.close();
    await own.close();
  };
  return { cairn: { ...own, indexJobs: jobs, close }, operations: edgeOperations(operations, findings) };
}

import type { Config } from "../config/schema.ts";
import type { Finding } from "../model/doctor.ts";
import { withProperties } from "../model/once.ts";
import type { Cairn } from "../operations/cairn.ts";
import type { Operation } from "../operations/operation.ts";
import { indexJobs } from "./jobs/index-jobs.ts";
import { type JobPlace, launcher } from "./jobs/launch.ts";

/** Cairn on the machine of the user: the operations of the client side, and the object to run them on. */
export interface OpenedClient {
  readonly cairn: Cairn;
  readonly operations: readonly Operation[];
}

export interface ClientOptions {
  readonly jobs: JobPlace;
  /** The operations of a server to offer, and no others; default all, and the client operations. A command that needs one starts faster with only that one. */
  readonly operations?: readonly Operation[];
  /** Whether this process may embed for others; default: it only asks another. */
  readonly mayLead?: boolean | undefined;
  /** Findings of the client side that the doctor reports. */
  readonly findings?: readonly Finding[];
  /** The process answers once. It has no caches, so the freshness of its answer may take longer, up to `COMMAND_FRESHNESS_MS`. */
  readonly answersOnce?: boolean | undefined;
  /** Cancels the awaited index job when the call is aborted (Ctrl-C). */
  readonly cancelWithCaller?: boolean | undefined;
}

/**
 * Milliseconds that the freshness of an answer may take in a command. Only the first command after a change of the head needs them, for git:
 * later ones find its answers in the data folder.
 */
export const COMMAND_FRESHNESS_MS = 300;

/** Opens Cairn for the command line and `cairn mcp`: on the storage of this machine, or on the server of `api.url`. Files are read here either way. */
export async function openClient(given: Config, options: ClientOptions): Promise<OpenedClient> {
  const limitMs = Math.max(given.freshness.limitMs, options.answersOnce ? COMMAND_FRESHNESS_MS : 0);
  const config = { ...given, freshness: { limitMs } };
  return config.api.url === undefined ? openEmbedded(config, options) : openRemote(config, config.api.url, options);
}

async function openEmbedded(config: Config, options: ClientOptions): Promise<OpenedClient> {
  const { jobs: place, mayLead, cancelWithCaller } = options;
  const [{ openFromConfig }, operations] = await Promise.all([import("../open/open-from-config.ts"), operationsOf(options)]);
  const cairn = await openFromConfig(config, mayLead ? "lead" : "use");
  const jobs = indexJobs({
    dataDir: config.dataDir,
    launch: launcher(config.storage === "memory" ? "here" : place, config, cairn), // no other thread can see storage in memory
    counts: (projectPath) => cairn.code.stats({ projectPath }),
    cancelWithCaller,
  });
  const close = async () => {
    await jobs.close();
    await cairn.close();
  };
  return { cairn: withProperties(cairn, { indexJobs: jobs, close }), operations: await decorate(operations, config, options) };
}

async function operationsOf({ operations }: ClientOptions): Promise<readonly Operation[]> {
  return operations ?? (await import("../operations/list.ts")).operations;
}

async function openRemote(config: Config, url: string, options: ClientOptions): Promise<OpenedClient> {
  const { jobs: place, cancelWithCaller } = options;
  const [{ configuredClient }, { remoteOperation }, { remoteService }, { remoteTarget }, operations] = await Promise.all([
    import("./remote/configured-client.ts"),
    import("./remote/remote-operation.ts"),
    import("./remote/remote-service.ts"),
    import("./remote/remote-target.ts"),
    operationsOf(options),
  ]);
  const client = await configuredClient(config, url);
  const jobs = indexJobs({
    dataDir: config.dataDir,
    launch: launcher(place, config, undefined),
    counts: (projectPath) => remoteTarget(client, projectPath).counts(new AbortController().signal),
    cancelWithCaller,
  });
  // Operations call the server and do not use this object, except for the index jobs. Hooks use the checkpoints.
  const checkpoints = remoteService<Cairn["checkpoints"]>("checkpoint", operations, client);
  const cairn = { indexJobs: jobs, checkpoints, close: () => jobs.close() } as Cairn;
  const remote = operations.map((operation) => remoteOperation(operation, client));
  return { cairn, operations: await decorate(remote, config, options) };
}

async function decorate(
  offered: readonly Operation[],
  { freshness, dataDir }: Config,
  { operations, findings }: ClientOptions,
): Promise<readonly Operation[]> {
  const clientSide = { findings, freshness: { ...freshness, dataDir } };
  if (operations) return (await import("./decorate-served.ts")).decorateServed(offered, clientSide);
  return (await import("./decorate-operations.ts")).decorateOperations(offered, clientSide);
}

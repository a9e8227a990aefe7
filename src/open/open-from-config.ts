import type { Config } from "../config/schema.ts";
import { CairnError } from "../model/errors.ts";
import type { Cairn } from "../operations/cairn.ts";
import type { OpenOptions } from "./open.ts";

/** How a process uses local models: it may embed for others (`lead`), may ask another process (`use`), or loads its own (`own`). */
export type ModelRole = "lead" | "use" | "own";

/** Translates the configuration to options of the library. */
export function openOptions(config: Config, role: ModelRole = "use"): OpenOptions {
  const { share, ...embedder } = config.embedder;
  return {
    storage: config.storage,
    dataDir: config.dataDir,
    stateDir: config.stateDir,
    implicitStateDir: config.implicitStateDir,
    backupDir: config.backup.dir,
    retention: config.retention,
    freshness: config.freshness,
    doctor: config.doctor,
    systems: {
      commitsPerSecond: config.systems.commitsPerSecond,
      snapshots: { everyMs: config.systems.snapshotSeconds * 1_000, keep: config.systems.snapshotsKept },
    },
    runs: {
      concurrency: config.runs.workerConcurrency,
      pollMs: config.runs.workerPollMs,
      leaseMs: config.runs.workerLeaseSeconds * 1_000,
      graceMs: config.runs.workerGraceSeconds * 1_000,
    },
    postgres: config.postgres,
    embedder,
    shareModels: share && role !== "own" ? { role, runtimeDir: process.env.XDG_RUNTIME_DIR } : undefined,
    code: config.code,
    qdrant: config.qdrant,
    redaction: config.redaction,
    migrate: config.migrate,
  };
}

/** Opens Cairn on the storage of this machine, for a surface that validates its calls. Rejects a configuration that names a server: `openClient` uses the server. */
export async function openFromConfig(config: Config, role?: ModelRole): Promise<Cairn> {
  if (config.api.url !== undefined)
    throw new CairnError(
      "invalid_input",
      "This command works on the storage of its machine, but api.url names a server. Run it on the machine of the server, or unset api.url (--api-url, CAIRN_API_URL).",
    );
  const { openUnvalidated } = await import("./open.ts");
  return openUnvalidated(openOptions(config, role));
}

import type { Config } from "../config/schema.ts";
import { CairnError } from "../model/errors.ts";
import type { OpenOptions } from "../open/open.ts";
import type { Cairn } from "../operations/cairn.ts";

/** The one place where configuration becomes options of the library. */
export function openOptions(config: Config): OpenOptions {
  return {
    storage: config.storage,
    dataDir: config.dataDir,
    stateDir: config.stateDir,
    implicitStateDir: config.implicitStateDir,
    backupDir: config.backup.dir,
    doctor: config.doctor,
    systems: {
      commitsPerSecond: config.systems.commitsPerSecond,
      snapshots: { everyMs: config.systems.snapshotSeconds * 1_000, keep: config.systems.snapshotsKept },
    },
    postgres: config.postgres,
    embedder: config.embedder,
    code: config.code,
    qdrant: config.qdrant,
    redaction: config.redaction,
    migrate: config.migrate,
  };
}

/** Cairn on this machine's own storage. Where a server is configured, that is not what is meant: what can be done there goes through `openEdge`. */
export async function openFromConfig(config: Config): Promise<Cairn> {
  if (config.api.url !== undefined)
    throw new CairnError(
      "invalid_input",
      "This is done on the storage of a machine, and api.url names a server. Do it on the server's machine, or leave out api.url (--api-url, CAIRN_API_URL).",
    );
  const { open } = await import("../open/open.ts");
  return open(openOptions(config));
}

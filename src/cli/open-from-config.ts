import type { Cairn } from "../cairn.ts";
import type { Config } from "../config/schema.ts";
import type { OpenOptions } from "../open.ts";

/** The one place where configuration becomes options of the library. */
export function openOptions(config: Config): OpenOptions {
  return {
    storage: config.storage,
    dataDir: config.dataDir,
    stateDir: config.stateDir,
    backupDir: config.backup.dir,
    doctor: config.doctor,
    embedder: config.embedder,
    code: config.code,
    qdrant: config.qdrant,
    redaction: config.redaction,
  };
}

/** Cairn on this machine's own storage. */
export async function openFromConfig(config: Config): Promise<Cairn> {
  const { open } = await import("../open.ts");
  return open(openOptions(config));
}

import { join, resolve } from "node:path";
import { followingSystems } from "./migrate/follow-storage.ts";
import { CairnError } from "./model/errors.ts";
import type { SystemStorage } from "./ports/system-store.ts";
import { awayFrom, awayFromFolder, isAway, readMove } from "./stores/sqlite/move-record.ts";
import type { SqliteSystemStorage } from "./stores/sqlite/systems.ts";

export type SystemStorageOptions =
  /** Gone when the process ends. */
  | { readonly storage: "memory" }
  /** One SQLite file per system, `{stateDir}/checkpoints/{systemId}.db`. */
  | { readonly storage: "sqlite"; readonly stateDir?: string | undefined }
  /** One schema per system of a PostgreSQL database. */
  | { readonly storage: "postgres"; readonly url: string; readonly poolMax?: number };

/** Opens the place where systems are kept. Only what is used is loaded. */
export async function openSystemStorage(options: SystemStorageOptions): Promise<SystemStorage | SqliteSystemStorage> {
  switch (options.storage) {
    case "memory": {
      const { memorySystemStorage } = await import("./stores/memory/systems.ts");
      return memorySystemStorage();
    }
    case "sqlite": {
      const { sqliteSystemStorage } = await import("./stores/sqlite/systems.ts");
      const stateDir = options.stateDir ?? defaultStateDir();
      const folder = join(stateDir, "checkpoints");
      const fileOf = (systemId: string) => join(folder, `${systemId}.db`);
      const local = sqliteSystemStorage({ stateDir });
      const following = followingSystems(local, {
        locate: (systemId) => awayFrom(fileOf(systemId)),
        where(systemId) {
          const record = readMove(fileOf(systemId));
          return record && isAway(record) ? record.where : undefined;
        },
        away: () => awayFromFolder(folder),
        openAway: (url) => openSystemStorage({ storage: "postgres", url }),
      });
      return { ...following, release: local.release, check: local.check };
    }
    case "postgres": {
      const { postgresSystemStorage } = await import("./stores/postgres/systems.ts");
      return postgresSystemStorage(options);
    }
    default:
      throw new CairnError(
        "invalid_input",
        `Unknown system storage ${JSON.stringify((options as { storage: unknown }).storage)}: use "memory", "sqlite" or "postgres".`,
      );
  }
}

/** Where system state is kept when nobody says: the same as the configuration's default. */
export function defaultStateDir({ CAIRN_STATE_DIR, NODE_ENV } = process.env): string {
  if (CAIRN_STATE_DIR) return resolve(CAIRN_STATE_DIR);
  return NODE_ENV === "production" ? "/var/lib/cairn" : join(process.cwd(), ".state");
}

import { join, resolve } from "node:path";
import { relocateSystems } from "../migrate/relocate.ts";
import { CairnError } from "../model/errors.ts";
import type { SystemStorage } from "../ports/system-store.ts";
import { findAbandonedMigration } from "../stores/sqlite/migration/lock.ts";
import { isMigrated, listMigrated, migratedTo, readMigrationRecord } from "../stores/sqlite/migration/record.ts";
import type { SqliteSystemStorage } from "../stores/sqlite/systems/storage.ts";
import { databaseFlags } from "../text/database-flags.ts";
import { type RedactionOptions, stateRedactor } from "../text/redact-state.ts";
import { shellWord } from "../text/shell-word.ts";
import type { Connect } from "./postgres-pools.ts";

/** Selects a storage of systems. */
export type SystemStorageOptions = StoredWhere & {
  /** `state: true` takes secrets out of messages and values before they are saved; by default they are saved as they are. */
  readonly redaction?: RedactionOptions | undefined;
};

type StoredWhere =
  /** Gone when the process ends. */
  | { readonly storage: "memory" }
  /** One SQLite file per system, `{stateDir}/checkpoints/{systemId}.db`. `poolMax` applies to systems that were migrated to PostgreSQL. */
  | {
      readonly storage: "sqlite";
      readonly stateDir?: string | undefined;
      /** Nobody chose `stateDir`: it is `.state` in the current folder, which may have come with a repository. Default: whether it is left out. */
      readonly implicitStateDir?: boolean | undefined;
      readonly poolMax?: number;
    }
  /** One schema per system of a PostgreSQL database. */
  | { readonly storage: "postgres"; readonly url: string; readonly poolMax?: number };

/** Opens the place where systems are kept. Only what is used is loaded. With `connect`, PostgreSQL is used through shared connections. */
export async function openSystemStorage(
  { redaction, ...options }: SystemStorageOptions,
  connect?: Connect,
): Promise<SystemStorage | SqliteSystemStorage> {
  const storage = await openStorage(options, connect);
  const redactState = stateRedactor(redaction);
  if (!redactState) return storage;
  return {
    ...storage,
    create: async (systemId) => ({ ...(await storage.create(systemId)), redactState }),
    async find(systemId) {
      const store = await storage.find(systemId);
      return store && { ...store, redactState };
    },
  };
}

async function openStorage(options: StoredWhere, connect: Connect | undefined): Promise<SystemStorage | SqliteSystemStorage> {
  switch (options.storage) {
    case "memory": {
      const { memorySystemStorage } = await import("../stores/memory/systems.ts");
      return memorySystemStorage();
    }
    case "sqlite": {
      const { sqliteSystemStorage } = await import("../stores/sqlite/systems/storage.ts");
      const { stateDir = defaultStateDir(), poolMax } = options;
      const { implicitStateDir = options.stateDir === undefined && isImplicitStateDir() } = options;
      const trusted = implicitStateDir ? refuseMigrations : () => {};
      const folder = join(stateDir, "checkpoints");
      const fileOf = (systemId: string) => join(folder, `${systemId}.db`);
      const local = sqliteSystemStorage({ stateDir, refuseLinks: implicitStateDir });
      const relocated = relocateSystems(local, {
        locate(systemId) {
          const url = migratedTo(fileOf(systemId));
          if (url !== undefined) trusted(stateDir);
          return url;
        },
        describe(systemId) {
          const record = readMigrationRecord(fileOf(systemId));
          return record && isMigrated(record) ? record.where : undefined;
        },
        listMigrated() {
          const migrated = listMigrated(folder);
          if (migrated.length > 0) trusted(stateDir);
          return migrated;
        },
        openMigrated: (url) => openSystemStorage({ storage: "postgres", url, ...(poolMax !== undefined && { poolMax }) }, connect),
        findAbandoned: (systemId) => findAbandonedMigration(fileOf(systemId), databaseFlags({ kind: "system", id: systemId })),
      });
      return { ...relocated, release: local.release, check: local.check };
    }
    case "postgres": {
      const { postgresSystemStorage } = await import("../stores/postgres/systems/storage.ts");
      return postgresSystemStorage(connect ? { database: await connect(options.url) } : options);
    }
    default:
      throw new CairnError(
        "invalid_input",
        `Unknown system storage ${JSON.stringify((options as { storage: unknown }).storage)}: use "memory", "sqlite" or "postgres".`,
      );
  }
}

/**
 * A record beside a system's file says that the system is on a PostgreSQL server now. In a folder that nobody chose, the record may have
 * come with a repository, and would send the system's state to a server of its author.
 */
export function refuseMigrations(stateDir: string): never {
  throw new CairnError(
    "forbidden",
    `A file in ${stateDir} says that a system is on a PostgreSQL server. This folder was not chosen by you, so it cannot decide that. If it is yours, set state_dir: CAIRN_STATE_DIR=${shellWord(stateDir)}`,
    { details: { state_dir: stateDir } },
  );
}

/** Whether the default state folder is the one in the current folder. */
export function isImplicitStateDir({ CAIRN_STATE_DIR, NODE_ENV } = process.env): boolean {
  return !CAIRN_STATE_DIR && NODE_ENV !== "production";
}

/** Where system state is kept when nobody says: the same as the configuration's default. */
export function defaultStateDir({ CAIRN_STATE_DIR, NODE_ENV } = process.env): string {
  if (CAIRN_STATE_DIR) return resolve(CAIRN_STATE_DIR);
  return NODE_ENV === "production" ? "/var/lib/cairn" : join(process.cwd(), ".state");
}

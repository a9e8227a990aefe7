import { relocateStore } from "../migrate/relocate.ts";
import { CairnError } from "../model/errors.ts";
import type { Clock } from "../model/ids.ts";
import type { RunStore } from "../ports/run-store.ts";
import { memoryRunStore } from "../stores/memory/runs.ts";
import { findAbandonedMigration } from "../stores/sqlite/migration/lock.ts";
import { migratedTo } from "../stores/sqlite/migration/record.ts";
import { databaseFlags } from "../text/database-flags.ts";
import { type RedactionOptions, stateRedactor } from "../text/redact-state.ts";
import type { Connect } from "./postgres-pools.ts";

/** Selects a run store. */
export type RunStoreOptions = StoredWhere & {
  /** `state: true` takes secrets out of states before they are saved; by default states are saved as they are. */
  readonly redaction?: RedactionOptions | undefined;
};

type StoredWhere =
  | { readonly storage: "memory"; readonly now?: Clock }
  /** A folder of plain files. */
  | { readonly storage: "file"; readonly folder: string; readonly now?: Clock }
  /** One SQLite file. `poolMax` applies once it was migrated to PostgreSQL. */
  | { readonly storage: "sqlite"; readonly path: string; readonly now?: Clock; readonly poolMax?: number }
  /** The schema `runs` of a PostgreSQL database. */
  | { readonly storage: "postgres"; readonly url: string; readonly poolMax?: number };

/** The option that locates the runs of each kind. */
const PLACE: Readonly<Record<string, string | undefined>> = { file: "folder", sqlite: "path", postgres: "url" };

/** Opens a run store of the kind asked for. Only what is used is loaded. With `connect`, PostgreSQL is used through shared connections. */
export async function openRunStore({ redaction, ...options }: RunStoreOptions, connect?: Connect): Promise<RunStore> {
  const store = await openStore(options, connect);
  const redactState = stateRedactor(redaction);
  return redactState ? { ...store, redactState } : store;
}

async function openStore(options: StoredWhere, connect: Connect | undefined): Promise<RunStore> {
  const place = PLACE[options.storage];
  if (place && !(options as { readonly [field: string]: unknown })[place])
    throw new CairnError("invalid_input", `A run store of the kind ${JSON.stringify(options.storage)} needs ${JSON.stringify(place)}.`);
  switch (options.storage) {
    case "memory":
      return memoryRunStore(options);
    case "file": {
      const { fileRunStore } = await import("../stores/file/runs.ts");
      return fileRunStore(options);
    }
    case "sqlite": {
      const { sqliteRunStore } = await import("../stores/sqlite/runs/store.ts");
      const { path, poolMax } = options;
      return relocateStore({
        local: sqliteRunStore(options),
        locate: () => migratedTo(path),
        openMigrated: (url) => openRunStore({ storage: "postgres", url, ...(poolMax !== undefined && { poolMax }) }, connect),
        findAbandoned: () => findAbandonedMigration(path, databaseFlags({ kind: "runs", id: "runs" })),
      });
    }
    case "postgres": {
      const { postgresRunStore } = await import("../stores/postgres/runs/store.ts");
      return postgresRunStore(connect ? { database: await connect(options.url) } : options);
    }
    default:
      throw new CairnError(
        "invalid_input",
        `Unknown run storage ${JSON.stringify((options as { storage: unknown }).storage)}: use "memory", "file", "sqlite" or "postgres".`,
      );
  }
}

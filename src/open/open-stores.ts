import { join } from "node:path";
import { retryIndexWork } from "../code/retry-index-work.ts";
import type { BackupStore } from "../ports/backup-store.ts";
import type { HealthProbe } from "../ports/health-probe.ts";
import type { IndexQueue } from "../ports/index-queue.ts";
import type { RunStore } from "../ports/run-store.ts";
import type { Storage } from "../ports/storage.ts";
import type { SystemStorage } from "../ports/system-store.ts";
import { memoryIndexQueue } from "../stores/memory/index-queue.ts";
import { sqliteBackups } from "../stores/sqlite/backup/backups.ts";
import { type DatabaseFile, databaseFiles } from "../stores/sqlite/driver/database-files.ts";
import { sqliteHealth } from "../stores/sqlite/driver/health.ts";
import type { SqliteStorage } from "../stores/sqlite/storage.ts";
import type { SqliteSystemStorage } from "../stores/sqlite/systems/storage.ts";
import { type OpenContext, storageKind } from "./open-options.ts";
import { openRunStore } from "./open-run-store.ts";
import { openSystemStorage } from "./open-system-storage.ts";

/** Opens the store of runs: one file for all projects, or a schema of its own in the PostgreSQL database. */
export async function openRuns({ options, dataDir, now, pools }: OpenContext): Promise<RunStore> {
  const { storage, redaction } = options;
  const kind = storageKind(options);
  if (kind === "memory") return openRunStore({ storage: "memory", now, redaction });
  if (kind === "postgres") return openRunStore({ storage: "postgres", url: storage as string, redaction }, pools.forCalls);
  return openRunStore({ storage: "sqlite", path: join(dataDir, "runs.db"), now, redaction }, pools.forCalls);
}

/** Opens the storage of systems: one file per system, or one schema per system in the PostgreSQL database. */
export async function openSystems({ options, pools }: OpenContext): Promise<SystemStorage | SqliteSystemStorage> {
  const { storage, stateDir, implicitStateDir, redaction } = options;
  const kind = storageKind(options);
  if (kind === "memory") return openSystemStorage({ storage: "memory", redaction });
  if (kind === "postgres") return openSystemStorage({ storage: "postgres", url: storage as string, redaction }, pools.forCalls);
  return openSystemStorage({ storage: "sqlite", stateDir, implicitStateDir, redaction }, pools.forCalls);
}

/** Opens the queue of code to index: one for all servers of a PostgreSQL database, otherwise one per process. */
export async function openIndexQueue(context: OpenContext, perform: Parameters<typeof retryIndexWork>[0]): Promise<IndexQueue> {
  const { options, now, newId, onNotice, pools } = context;
  const capacity = options.code?.queueJobs;
  if (storageKind(options) !== "postgres") return memoryIndexQueue({ perform: retryIndexWork(perform), now, newId, capacity });
  const { postgresIndexQueue } = await import("../stores/postgres/projects/index-queue.ts");
  const url = options.storage as string;
  const databases = { intake: await pools.forCalls(url), database: await pools.forIndexing(url) };
  return postgresIndexQueue({ ...databases, perform: retryIndexWork(perform), capacity, onFailure: onNotice });
}

export interface OpenedStores {
  readonly databases: Storage | SqliteStorage;
  readonly runStore: RunStore;
  readonly systemStorage: SystemStorage | SqliteSystemStorage;
}

/** Opens backups and health checks. Cairn backs up its own files; a PostgreSQL database has its own tools. */
export async function openMaintenance(
  { databases, runStore, systemStorage }: OpenedStores,
  { options, dataDir, stateDir, backupDir, now, pools }: OpenContext,
): Promise<{ readonly backups?: BackupStore; readonly probe?: HealthProbe }> {
  const kind = storageKind(options);
  if (kind === "postgres") {
    const { postgresHealth } = await import("../stores/postgres/driver/health.ts");
    return { probe: postgresHealth(await pools.forCalls(options.storage as string)) };
  }
  if (kind !== "sqlite" || !("release" in databases)) return {};
  const folders = { dataDir, stateDir };
  const files = databaseFiles(folders);
  const release = async ({ kind: of, id, path }: DatabaseFile) => {
    if (of === "runs") await runStore.close();
    else if (of !== "system") databases.release(path);
    else if ("release" in systemStorage) systemStorage.release(id);
  };
  return {
    backups: sqliteBackups({ folder: backupDir, files, now, release }),
    probe: sqliteHealth({ ...folders, backupDir, files, now }),
  };
}

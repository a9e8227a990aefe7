import { join } from "node:path";
import { relocateStorage } from "../migrate/relocate.ts";
import { CairnError } from "../model/errors.ts";
import { projectDatabaseName, SHARED_PROJECT_ID } from "../model/ids.ts";
import type { Storage } from "../ports/storage.ts";
import { memoryStorage } from "../stores/memory/storage.ts";
import { findAbandonedMigration } from "../stores/sqlite/migration/lock.ts";
import { placeNewProject } from "../stores/sqlite/migration/new-projects.ts";
import { listMigrated, migratedTo } from "../stores/sqlite/migration/record.ts";
import { type SqliteStorage, sqliteStorage } from "../stores/sqlite/storage.ts";
import { databaseFlags } from "../text/database-flags.ts";
import type { OpenContext } from "./open-options.ts";
import { ownStorage } from "./own-storage.ts";

export interface OpenedStorage {
  /** The databases of projects, without a Qdrant server that mirrors their vectors. */
  readonly databases: Storage | SqliteStorage;
  /** The same with semantic search on that server, where there is one. */
  readonly storage: Storage;
}

/** Opens the storage of projects. Only the adapters in use are loaded. */
export async function openStorage(context: OpenContext): Promise<OpenedStorage> {
  const databases = await openDatabases(context);
  const { url, apiKey } = context.options.qdrant ?? {};
  if (url === undefined) return { databases, storage: databases };
  const { qdrantStorage } = await import("../vectors/qdrant/storage.ts");
  return { databases, storage: qdrantStorage(databases, { url, apiKey }) };
}

async function openDatabases(context: OpenContext): Promise<Storage | SqliteStorage> {
  const { storage = "sqlite" } = context.options;
  if (typeof storage !== "string") return ownStorage(storage);
  if (storage === "memory") return memoryStorage();
  if (storage === "sqlite") return openSqliteStorage(context);
  if (/^postgres(ql)?:\/\//.test(storage)) return openPostgresStorage(context, storage);
  throw new CairnError(
    "invalid_input",
    `Unknown storage ${JSON.stringify(storage.slice(0, 20))}: use "sqlite", "memory" or a postgres:// URL.`,
  );
}

function openSqliteStorage(context: OpenContext): SqliteStorage {
  const { dataDir, now, onNotice } = context;
  const local = sqliteStorage({ dataDir, now, onNotice });
  const folder = join(dataDir, "projects");
  const fileOf = (projectId: string) => join(folder, `${projectDatabaseName(projectId)}.db`);
  const relocated = relocateStorage(local, {
    locate: (projectId) => migratedTo(fileOf(projectId)),
    findAbandoned: (id) => findAbandonedMigration(fileOf(id), databaseFlags({ kind: id === SHARED_PROJECT_ID ? "shared" : "project", id })),
    placeNew: (id) => placeNewProject(folder, fileOf(id), id, now()),
    listMigrated: () => listMigrated(folder),
    openMigrated: (url) => openPostgresStorage(context, url),
  });
  return { ...relocated, release: local.release };
}

async function openPostgresStorage({ now, pools }: OpenContext, url: string): Promise<Storage> {
  const { postgresStorage } = await import("../stores/postgres/storage.ts");
  return postgresStorage({ database: await pools.forCalls(url), now });
}

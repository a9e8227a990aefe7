import type { CairnError } from "../model/errors.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import type { ProjectStore, Storage } from "../ports/storage.ts";
import type { SystemStorage, SystemStore } from "../ports/system-store.ts";
import { followPlaces } from "./follow.ts";

/** What it takes to find a database that went away. */
interface Away<Place extends Storage | SystemStorage> {
  readonly locate: (id: string) => string | undefined;
  readonly openAway: (url: string) => Promise<Place>;
  /** Returns the error of a migration of this database that stopped before its end. */
  readonly findAbandoned: (id: string) => Promise<CairnError | undefined>;
  /** The ids of all that went. */
  readonly away: () => readonly string[];
}

/** Projects in files, some of which have moved to PostgreSQL while this process was running or before. */
export function followingStorage(local: Storage, { away, ...options }: Away<Storage>): Storage {
  const places = followPlaces<ProjectStore, Storage>({ local, ...options });
  return {
    create: places.create,
    find: places.find,
    async projects() {
      const ids = new Set([...(await local.projects()), ...away()]);
      return [...ids].filter((id) => id !== SHARED_PROJECT_ID);
    },
    sizeBytes: (projectId) => places.at(projectId, (storage) => storage.sizeBytes(projectId)),
    checkProject: (projectId) => places.at(projectId, (storage) => storage.checkProject(projectId)),
    checkRecords: (projectId) => places.at(projectId, (storage) => storage.checkRecords(projectId)),
    repairRecords: (projectId) => places.at(projectId, (storage) => storage.repairRecords(projectId)),
    quarantine: (projectId, problems) => places.at(projectId, (storage) => storage.quarantine(projectId, problems)),
    copyTo: (projectId, file, more) => places.at(projectId, async (storage) => (await storage.copyTo?.(projectId, file, more)) ?? false),
    check: () => local.check(),
    close: places.close,
  };
}

interface AwaySystems extends Away<SystemStorage> {
  /** In words, where a system is that went. */
  readonly where: (systemId: string) => string | undefined;
}

/** The same for systems. */
export function followingSystems(local: SystemStorage, { away, where, ...options }: AwaySystems): SystemStorage {
  const places = followPlaces<SystemStore, SystemStorage>({ local, ...options });
  return {
    create: places.create,
    find: places.find,
    systems: async () => [...new Set([...(await local.systems()), ...away()])].sort(),
    location: (systemId) => where(systemId) ?? local.location(systemId),
    sizeBytes: (systemId) => places.at(systemId, (storage) => storage.sizeBytes(systemId)),
    close: places.close,
  };
}

import { CairnError } from "../model/errors.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import type { ProjectStore, Storage } from "../ports/storage.ts";
import type { SystemStorage, SystemStore } from "../ports/system-store.ts";
import { type AtLocation, openOnce, relocateVerbs, relocator } from "./relocate.ts";

/** A storage of many databases, each of which may be migrated by itself. */
interface Databases<Store> {
  create(id: string): Promise<Store>;
  find(id: string): Promise<Store | undefined>;
  close(): Promise<void>;
}

/** How to find the databases of a storage that were migrated. */
interface Relocations<Place> {
  readonly locate: (id: string) => string | undefined;
  readonly openMigrated: (url: string) => Promise<Place>;
  /** Returns the error of a migration of this database that stopped before its end. */
  readonly findAbandoned: (id: string) => Promise<CairnError | undefined>;
  /** Returns the ids of all migrated databases. */
  readonly listMigrated: () => readonly string[];
}

/** Returns the storage of projects in files, some of which were migrated to PostgreSQL, also while this process uses them. */
export function relocateStorage(local: Storage, relocations: Relocations<Storage>): Storage {
  const databases = relocateDatabases<ProjectStore, Storage>(local, relocations);
  return {
    create: databases.create,
    find: databases.find,
    async projects() {
      const ids = new Set([...(await local.projects()), ...relocations.listMigrated()]);
      return [...ids].filter((id) => id !== SHARED_PROJECT_ID);
    },
    sizeBytes: (projectId) => databases.lookUp(projectId, (storage) => storage.sizeBytes(projectId)),
    checkProject: (projectId) => databases.lookUp(projectId, (storage) => storage.checkProject(projectId)),
    checkRecords: (projectId) => databases.lookUp(projectId, (storage) => storage.checkRecords(projectId)),
    repairRecords: (projectId) => databases.lookUp(projectId, (storage) => storage.repairRecords(projectId)),
    quarantine: (projectId, problems) => databases.lookUp(projectId, (storage) => storage.quarantine(projectId, problems)),
    copyTo: (projectId, file, options) =>
      databases.lookUp(projectId, async (storage) => (await storage.copyTo?.(projectId, file, options)) ?? false),
    importCode: (projectId, file, options) =>
      databases.lookUp(projectId, (storage) => {
        if (storage.importCode) return storage.importCode(projectId, file, options);
        throw new CairnError("conflict", "This project is on PostgreSQL, which takes no code index from a file. Run: cairn code index");
      }),
    check: () => local.check(),
    close: databases.close,
  };
}

interface SystemRelocations extends Relocations<SystemStorage> {
  /** Describes where a migrated system is. */
  readonly describe: (systemId: string) => string | undefined;
}

/** Returns the storage of systems in files, some of which were migrated to PostgreSQL, also while this process uses them. */
export function relocateSystems(local: SystemStorage, relocations: SystemRelocations): SystemStorage {
  const databases = relocateDatabases<SystemStore, SystemStorage>(local, relocations);
  return {
    create: databases.create,
    find: databases.find,
    systems: async () => [...new Set([...(await local.systems()), ...relocations.listMigrated()])].sort(),
    location: (systemId) => relocations.describe(systemId) ?? local.location(systemId),
    sizeBytes: (systemId) => databases.lookUp(systemId, (storage) => storage.sizeBytes(systemId)),
    close: databases.close,
  };
}

/** Databases whose location is remembered. More than one process uses at a time; the location of the others is found again. */
const KNOWN_MAX = 10_000;

function relocateDatabases<Store extends object, Place extends Databases<Store>>(
  local: Place,
  { locate, openMigrated, findAbandoned }: Relocations<Place>,
) {
  const migrated = openOnce(openMigrated);
  const known = new Map<string, AtLocation<Place>>();
  /** The store of each database with relocated verbs: made once for the store that it stands for. */
  const relocated = new WeakMap<Store, Store>();

  function atLocation(id: string): AtLocation<Place> {
    let at = known.get(id);
    if (!at) {
      at = relocator({ local, locate: () => locate(id), openMigrated: migrated.open, findAbandoned: () => findAbandoned(id) });
      known.set(id, at);
      if (known.size > KNOWN_MAX) known.delete(known.keys().next().value!);
    }
    return at;
  }

  /** Returns the store whose verbs run in the place where the database is; at a new place, its store is looked up once. */
  function relocate(id: string, place: Place, found: Store): Store {
    const before = relocated.get(found);
    if (before) return before;
    const at = atLocation(id);
    let current = { place, store: found };
    const store = relocateVerbs<Store>(found, (work) =>
      at(async (now) => {
        if (current.place !== now) current = { place: now, store: (await now.find(id)) ?? (await now.create(id)) };
        return work(current.store);
      }),
    );
    relocated.set(found, store);
    return store;
  }

  return {
    create: (id: string): Promise<Store> => atLocation(id)(async (place) => relocate(id, place, await place.create(id))),
    find: (id: string): Promise<Store | undefined> =>
      atLocation(id)(async (place) => {
        const found = await place.find(id);
        return found && relocate(id, place, found);
      }),
    /** For rare calls that a missing file answers without an error: the record of the migration is read first. */
    lookUp<T>(id: string, work: (place: Place) => Promise<T>): Promise<T> {
      const url = locate(id);
      return atLocation(id)(async (place) => work(place === local && url !== undefined ? await migrated.open(url) : place));
    },
    async close(): Promise<void> {
      await local.close();
      await migrated.close();
    },
  };
}

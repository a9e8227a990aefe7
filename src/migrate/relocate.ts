import { asCairnError, CairnError } from "../model/errors.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { isAbandoned, isMigrating } from "../model/migration.ts";
import type { SearchBound } from "../ports/catalogue.ts";
import type { ProjectStore, Storage } from "../ports/storage.ts";
import type { SystemStorage, SystemStore } from "../ports/system-store.ts";
import { waitLimitMs } from "../scheduling/calls.ts";
import { retry } from "../scheduling/retry.ts";

/** How to find a database that may be migrated while this process uses it. */
interface Relocation<Store> {
  readonly local: Store;
  /** Returns the URL that the database was migrated to; undefined while it is local. */
  readonly locate: () => string | undefined;
  readonly openMigrated: (url: string) => Promise<Store>;
  /** Returns the error of a migration that stopped before its end: a call fails with it at once instead of waiting. */
  readonly findAbandoned: () => Promise<CairnError | undefined>;
}

/** Runs a piece of work on the store at the database's current location. */
export type AtLocation<Store> = <T>(work: (store: Store) => Promise<T>) => Promise<T>;

/** Milliseconds between two looks at a database that is being migrated, at most. */
const MIGRATION_POLL = { firstMs: 40, maxMs: 40 };

/**
 * Returns the function through which all calls of one database go. It is the one place that handles a migration in progress: a call that
 * a migrating database refused had no effect, so it waits for the migration to end, bounded by the call's time limit, and is repeated
 * at the new location. Until a database refuses a call, nothing is looked up.
 */
function relocator<Store>({ local, locate, openMigrated, findAbandoned }: Relocation<Store>): AtLocation<Store> {
  let url: string | undefined;
  let current: Promise<Store> = Promise.resolve(local);

  function switchTo(location: string | undefined): void {
    const opening = location === undefined ? Promise.resolve(local) : openMigrated(location);
    [url, current] = [location, opening];
    opening.catch(() => {
      if (current === opening) [url, current] = [undefined, Promise.resolve(local)]; // the next call tries again
    });
  }

  /** Runs a call where the database is, and again at once if it has another location by then. */
  async function attempt<T>(work: (store: Store) => Promise<T>): Promise<T> {
    for (;;) {
      const used = current;
      try {
        return await work(await used);
      } catch (error) {
        if (!isMigrating(error) && !isMissing(error)) throw error;
        const location = locate();
        if (location !== url) switchTo(location);
        if (used === current) throw (await findAbandoned()) ?? error;
      }
    }
  }

  const isRetryable = (error: unknown) => isMigrating(error) && !isAbandoned(error);
  return (work) =>
    attempt(work).catch((error: unknown) => {
      if (!isRetryable(error)) throw error;
      return retry(() => attempt(work), { backoff: MIGRATION_POLL, limitMs: waitLimitMs(), isRetryable });
    });
}

/** Returns a store with the same verbs as `like`, each of which runs where `at` finds the database. */
function relocateVerbs<Store extends object>(like: Store, at: AtLocation<Store>): Store {
  const members = Object.entries(like).map(([name, member]) => {
    const key = name as keyof Store;
    if (typeof member === "function")
      // Another engine may lack an optional verb: that returns undefined, as does `store.verb?.()`.
      return [name, (...args: unknown[]) => at(async (store) => (store[key] as ((...args: unknown[]) => unknown) | undefined)?.(...args))];
    if (typeof member !== "object" || member === null) return [name, member];
    return [name, relocateVerbs(member as object, (work) => at((store) => work(store[key] as object)))];
  });
  return Object.fromEntries(members) as Store;
}

/** Returns a store of one database that is found at its current location. Closing it closes the store of every location. */
export function relocateStore<Store extends { close(): Promise<void> }>(relocation: Relocation<Store>): Store {
  const migrated = openOnce(relocation.openMigrated);
  const store = relocateVerbs(relocation.local, relocator({ ...relocation, openMigrated: migrated.open }));
  return {
    ...store,
    async close() {
      await relocation.local.close();
      await migrated.close();
    },
  };
}

/** Opens each URL once. An opening that failed is tried again by the next call. */
function openOnce<Opened extends { close(): Promise<void> }>(open: (url: string) => Promise<Opened>) {
  const known = new Map<string, Promise<Opened>>();
  return {
    open(url: string): Promise<Opened> {
      let opening = known.get(url);
      if (!opening) {
        opening = open(url);
        known.set(url, opening);
        opening.catch(() => known.delete(url));
      }
      return opening;
    },
    async close(): Promise<void> {
      for (const opening of known.values()) await (await opening.catch(() => undefined))?.close();
    },
  };
}

/** Whether PostgreSQL has no such table or schema: the database may have been migrated back. */
function isMissing(error: unknown): boolean {
  const code = error instanceof CairnError ? error.details?.code : undefined;
  return code === "42P01" || code === "3F000";
}

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
  /** Decides where a database without a file begins. Called before this process first creates it. */
  readonly placeNew?: ((id: string) => void) | undefined;
  /** Returns the ids of all migrated databases. */
  readonly listMigrated: () => readonly string[];
}

/** Returns the storage of projects in files, some of which were migrated to PostgreSQL, also while this process uses them. */
export function relocateStorage(local: Storage, relocations: Relocations<Storage>): Storage {
  const databases = relocateDatabases<ProjectStore, Storage>(local, relocations);

  /** Returns the migrated projects by the URL of their database. */
  function placesOf(): ReadonlyMap<string, readonly string[]> {
    const places = new Map<string, string[]>();
    for (const id of new Set(relocations.listMigrated())) {
      const url = id === SHARED_PROJECT_ID ? undefined : relocations.locate(id);
      if (url !== undefined) places.set(url, [...(places.get(url) ?? []), id]);
    }
    return places;
  }

  /** Returns the migrated projects that were not deleted since; all of them while their database cannot be reached. */
  async function remaining(url: string, ids: readonly string[]): Promise<readonly string[]> {
    try {
      const existing = new Set(await (await databases.openMigrated(url)).projects());
      return ids.filter((id) => existing.has(id));
    } catch (error) {
      if (error instanceof CairnError && error.code === "unavailable") return ids;
      throw error;
    }
  }

  return {
    create: databases.create,
    find: databases.find,
    async projects() {
      const ids = new Set(await local.projects());
      for (const [url, expected] of placesOf()) for (const id of await remaining(url, expected)) ids.add(id);
      return [...ids];
    },
    async catalogue({ isWanted = () => true, signal } = {}) {
      const migrated = placesOf();
      const isMigrated = new Set([...migrated.values()].flat());
      const found = [await local.catalogue({ isWanted: (id) => !isMigrated.has(id) && isWanted(id), signal })];
      for (const [url, ids] of migrated) {
        const expected = new Set(ids.filter(isWanted));
        if (expected.size === 0) continue;
        try {
          found.push(await (await databases.openMigrated(url)).catalogue({ isWanted: (id) => expected.has(id), signal }));
        } catch (error) {
          const reason = asCairnError(error).message;
          found.push({ projects: [], unread: [...expected].map((projectPath) => ({ projectPath, reason })) });
        }
      }
      return { projects: found.flatMap(({ projects }) => projects), unread: found.flatMap(({ unread }) => unread) };
    },
    async searchBounds(query) {
      const wanted = new Set(query.projectPaths);
      const found: SearchBound[] = [];
      for (const [url, ids] of placesOf()) {
        const projectPaths = ids.filter((id) => wanted.has(id));
        if (projectPaths.length === 0) continue;
        try {
          found.push(...((await (await databases.openMigrated(url)).searchBounds?.({ ...query, projectPaths })) ?? []));
        } catch {
          // Without bounds these projects are searched, and the search reports why it cannot.
        }
      }
      return found;
    },
    sizeBytes: (projectId) => databases.lookUp(projectId, (storage) => storage.sizeBytes(projectId)),
    checkProject: (projectId) => databases.lookUp(projectId, (storage) => storage.checkProject(projectId)),
    checkRecords: (projectId) => databases.lookUp(projectId, (storage) => storage.checkRecords(projectId)),
    repairRecords: (projectId) => databases.lookUp(projectId, (storage) => storage.repairRecords(projectId)),
    quarantine: (projectId, problems) => databases.lookUp(projectId, (storage) => storage.quarantine(projectId, problems)),
    async remove(projectId) {
      await databases.lookUp(projectId, (storage) => storage.remove(projectId));
      databases.forgetPlace(projectId);
    },
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
  { locate, openMigrated, findAbandoned, placeNew }: Relocations<Place>,
) {
  const migrated = openOnce(openMigrated);
  const known = new Map<string, AtLocation<Place>>();
  const placed = new Set<string>();

  function place(id: string): void {
    if (placed.has(id)) return;
    placeNew?.(id);
    placed.add(id);
    if (placed.size > KNOWN_MAX) placed.delete(placed.keys().next().value!);
  }

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
    async create(id: string): Promise<Store> {
      place(id);
      return atLocation(id)(async (at) => relocate(id, at, await at.create(id)));
    },
    forgetPlace: (id: string) => void placed.delete(id),
    find: (id: string): Promise<Store | undefined> =>
      atLocation(id)(async (place) => {
        const found = await place.find(id);
        return found && relocate(id, place, found);
      }),
    openMigrated: migrated.open,
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

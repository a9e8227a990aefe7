import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../model/errors.ts";
import { isAbandoned, isMigrating } from "../model/migration.ts";
import { waitLimitMs } from "../scheduling/time-limit.ts";

/** How to find a database that may be migrated while this process uses it. */
export interface Relocation<Store> {
  readonly local: Store;
  /** Returns the URL that the database was migrated to; undefined while it is local. */
  readonly locate: () => string | undefined;
  readonly openMigrated: (url: string) => Promise<Store>;
  /** Returns the error of a migration that stopped before its end: a call fails with it at once instead of waiting. */
  readonly findAbandoned: () => Promise<CairnError | undefined>;
}

/** Runs a piece of work on the store at the database's current location. */
export type AtLocation<Store> = <T>(work: (store: Store) => Promise<T>) => Promise<T>;

/** Milliseconds between two looks at a database that is being migrated, on average. */
const POLL_MS = 40;

/**
 * Returns the function through which all calls of one database go. It is the one place that handles a migration in progress: a call that
 * a migrating database refused had no effect, so it waits for the migration to end, bounded by the call's time limit, and is repeated
 * at the new location. Until a database refuses a call, nothing is looked up.
 */
export function relocator<Store>({ local, locate, openMigrated, findAbandoned }: Relocation<Store>): AtLocation<Store> {
  let url: string | undefined;
  let current: Promise<Store> = Promise.resolve(local);

  function switchTo(location: string | undefined): void {
    const opening = location === undefined ? Promise.resolve(local) : openMigrated(location);
    [url, current] = [location, opening];
    opening.catch(() => {
      if (current === opening) [url, current] = [undefined, Promise.resolve(local)]; // the next call tries again
    });
  }

  return async (work) => {
    const deadline = Date.now() + waitLimitMs();
    for (;;) {
      const used = current;
      try {
        return await work(await used);
      } catch (error) {
        if (!isMigrating(error) && !isMissing(error)) throw error;
        const location = locate();
        if (location !== url) switchTo(location);
        if (used !== current) continue;
        const abandoned = await findAbandoned();
        if (abandoned) throw abandoned;
        if (!isMigrating(error) || isAbandoned(error) || Date.now() > deadline) throw error;
        await sleep(POLL_MS * (0.5 + Math.random()));
      }
    }
  };
}

/** Returns a store with the same verbs as `like`, each of which runs where `at` finds the database. */
export function relocateVerbs<Store extends object>(like: Store, at: AtLocation<Store>): Store {
  const members = Object.entries(like).map(([name, member]) => {
    const key = name as keyof Store;
    if (typeof member === "function")
      return [name, (...args: unknown[]) => at((store) => (store[key] as (...args: unknown[]) => Promise<unknown>)(...args))];
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
export function openOnce<Opened extends { close(): Promise<void> }>(open: (url: string) => Promise<Opened>) {
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

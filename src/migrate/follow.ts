import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../model/errors.ts";
import { isAbandoned, isMigrating } from "../model/migration.ts";
import { waitLimitMs } from "../scheduling/time-limit.ts";

interface FollowOptions<Store> {
  readonly local: Store;
  /** The URL of where the database is now; undefined while it is here. */
  readonly locate: () => string | undefined;
  readonly openAway: (url: string) => Promise<Store>;
  /** Returns the error of a migration that stopped before its end: a call fails with it at once instead of waiting. */
  readonly findAbandoned: () => Promise<CairnError | undefined>;
}

/** Runs a piece of work on a database wherever it is now. */
export type Use<Store> = <T>(work: (store: Store) => Promise<T>) => Promise<T>;

const LOOK_AGAIN_MS = 40;

/**
 * Calls go straight to where the database was last found, which costs nothing. Only a database that says it is moving or gone makes
 * it look: then the call waits for the move to end and is made again where the database is now. A call that was refused had no effect.
 */
export function follower<Store>({ local, locate, openAway, findAbandoned }: FollowOptions<Store>): Use<Store> {
  let url: string | undefined;
  let current: Promise<Store> = Promise.resolve(local);
  return async (work) => {
    const deadline = Date.now() + waitLimitMs();
    for (;;) {
      const used = current;
      try {
        return await work(await used);
      } catch (error) {
        const moving = isMigrating(error);
        if (!moving && !isGone(error)) throw error;
        const now = locate();
        if (now !== url || used !== current) {
          if (now !== url) {
            url = now;
            const opening = now === undefined ? Promise.resolve(local) : openAway(now);
            current = opening;
            opening.catch(() => {
              if (current === opening) [url, current] = [undefined, Promise.resolve(local)]; // looked for again by the next call
            });
          }
          continue;
        }
        const abandoned = await findAbandoned();
        if (abandoned) throw abandoned;
        if (!moving || isAbandoned(error) || Date.now() > deadline) throw error;
        await sleep(LOOK_AGAIN_MS * (0.5 + Math.random()));
      }
    }
  };
}

/** The same store, with every call going to where its database is. `like` tells which calls there are. */
export function following<Store extends object>(use: Use<Store>, like: Store): Store {
  return new Proxy(like, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value === "function")
        return (...args: unknown[]) =>
          use((store) => (store as Record<PropertyKey, (...args: unknown[]) => Promise<unknown>>)[name]!(...args));
      if (typeof value === "object" && value !== null)
        return following((work) => use((store) => work((store as Record<PropertyKey, object>)[name] as never)), value);
      return value;
    },
  });
}

/** A store of one database that is followed wherever it goes. Closing it closes both. */
export function followStore<Store extends { close(): Promise<void> }>(options: FollowOptions<Store>): Store {
  const away = new Map<string, Promise<Store>>();
  const openAway = (url: string) => once(away, url, options.openAway);
  const store = following(follower({ ...options, openAway }), options.local);
  return new Proxy(store, {
    get: (target, name) =>
      name === "close"
        ? async () => {
            await options.local.close();
            for (const opened of away.values()) await (await opened.catch(() => undefined))?.close();
          }
        : Reflect.get(target, name),
  });
}

interface Places<Store> {
  create(id: string): Promise<Store>;
  find(id: string): Promise<Store | undefined>;
  close(): Promise<void>;
}

interface FollowPlacesOptions<Store extends object, Place extends Places<Store>> {
  readonly local: Place;
  readonly locate: (id: string) => string | undefined;
  readonly openAway: (url: string) => Promise<Place>;
  readonly findAbandoned: (id: string) => Promise<CairnError | undefined>;
}

interface FollowedPlaces<Store, Place> extends Places<Store> {
  /** For calls that a missing file answers without an error: they look first. They are rare. */
  at<T>(id: string, work: (place: Place) => Promise<T>): Promise<T>;
}

/** More than one process has in use at a time; the rest is found again. */
const KNOWN_MAX = 10_000;

/** A place of many databases, each of which is followed by itself. */
export function followPlaces<Store extends object, Place extends Places<Store>>({
  local,
  locate,
  openAway,
  findAbandoned,
}: FollowPlacesOptions<Store, Place>): FollowedPlaces<Store, Place> {
  const away = new Map<string, Promise<Place>>();
  const uses = new Map<string, Use<Place>>();

  function useOf(id: string): Use<Place> {
    let use = uses.get(id);
    if (!use) {
      use = follower({
        local,
        locate: () => locate(id),
        openAway: (url) => once(away, url, openAway),
        findAbandoned: () => findAbandoned(id),
      });
      uses.set(id, use);
      for (const oldest of uses.keys()) if (uses.size > KNOWN_MAX) uses.delete(oldest);
    }
    return use;
  }

  /** Every call finds the store of the place that it is sent to, and keeps it as long as that place stays the same. */
  function wrapped(id: string, place: Place, found: Store): Store {
    let known = { place, store: found };
    const use = useOf(id);
    return following(
      (work) =>
        use(async (now) => {
          if (known.place !== now) known = { place: now, store: (await now.find(id)) ?? (await now.create(id)) };
          return work(known.store);
        }),
      found,
    );
  }

  return {
    at(id, work) {
      const url = locate(id);
      return useOf(id)(async (place) => work(place === local && url !== undefined ? await once(away, url, openAway) : place));
    },
    create: (id) => useOf(id)(async (place) => wrapped(id, place, await place.create(id))),
    find: (id) =>
      useOf(id)(async (place) => {
        const found = await place.find(id);
        return found && wrapped(id, place, found);
      }),
    async close() {
      await local.close();
      for (const opened of away.values()) await (await opened.catch(() => undefined))?.close();
    },
  };
}

function once<T>(known: Map<string, Promise<T>>, url: string, open: (url: string) => Promise<T>): Promise<T> {
  let opening = known.get(url);
  if (!opening) {
    opening = open(url);
    known.set(url, opening);
    opening.catch(() => known.delete(url)); // tried again by the next call
  }
  return opening;
}

/** The tables are not where they were: perhaps they went. */
function isGone(error: unknown): boolean {
  const code = error instanceof CairnError ? error.details?.code : undefined;
  return code === "42P01" || code === "3F000";
}

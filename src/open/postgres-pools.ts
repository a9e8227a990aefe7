import type { PostgresSettings } from "../model/limits.ts";
import type { PostgresDatabase } from "../stores/postgres/driver/driver.ts";

/** Returns the shared connections to the database of this URL. */
export type Connect = (url: string) => Promise<PostgresDatabase>;

/** The connections of one process: two pools per database, opened when they are first used. */
export interface PostgresPools {
  /** Serves all calls. */
  readonly forCalls: Connect;
  /** Serves the index queue, so that background work never takes the connections of calls. */
  readonly forIndexing: Connect;
  close(): Promise<void>;
}

const INDEXING_POOL_MAX = 3;

export function postgresPools(options: PostgresSettings = {}): PostgresPools {
  const opened = new Map<string, Promise<PostgresDatabase>>();
  const connect = (purpose: string, limits: typeof options) => (url: string) => {
    const key = `${purpose} ${url}`;
    const database = opened.get(key) ?? open(url, limits);
    opened.set(key, database);
    return database;
  };
  return {
    forCalls: connect("calls", options),
    forIndexing: connect("indexing", { ...options, poolMax: INDEXING_POOL_MAX }),
    async close() {
      for (const database of opened.values())
        await database.then(
          (one) => one.close(),
          () => {}, // a URL that cannot be read
        );
    },
  };
}

async function open(url: string, limits: PostgresSettings): Promise<PostgresDatabase> {
  const { openPostgres } = await import("../stores/postgres/driver/driver.ts");
  return openPostgres({ url, ...limits });
}

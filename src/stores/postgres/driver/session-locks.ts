import pg from "pg";

/**
 * Returns advisory locks of a session. They end with the connection that holds them, so the locks of a killed process are
 * released at once. One connection holds all of them; if it breaks, `onLoss` is called and other processes may take the locks.
 */
export interface SessionLocks {
  /** Tries to take the lock. Returns false if this or another process holds it, or without a connection. */
  take(name: string): Promise<boolean>;
  release(name: string): Promise<void>;
  close(): Promise<void>;
}

/** A host that vanished is noticed after some 25 seconds; the server's own default is two hours. */
const OPTIONS = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3";
const ANSWER_MS = 10_000;

export function sessionLocks(url: string, onLoss: () => void): SessionLocks {
  let connecting: Promise<pg.Client> | undefined;
  const held = new Set<string>();

  function connection(): Promise<pg.Client> {
    connecting ??= connect();
    return connecting;
  }

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: url,
      application_name: "cairn locks",
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      keepAlive: true,
      options: OPTIONS,
    });
    let over = false;
    const handleLoss = () => {
      if (over) return; // a broken connection emits more than one error, and may be replaced already
      over = true;
      connecting = undefined;
      client.end().catch(() => {}); // releases its locks if the connection still works
      if (held.size === 0) return;
      held.clear();
      onLoss();
    };
    client.on("error", handleLoss);
    client.on("end", handleLoss);
    try {
      await client.connect();
    } catch (error) {
      handleLoss();
      throw error;
    }
    return client;
  }

  const ask = async (sql: string, name: string): Promise<boolean> => {
    const client = await connection();
    try {
      return (await client.query<{ done: boolean }>(sql, [name])).rows[0]?.done === true;
    } catch (error) {
      await client.end().catch(() => {}); // a lock granted after the timeout would never be released
      throw error;
    }
  };

  return {
    async take(name) {
      if (held.has(name)) return false; // PostgreSQL would grant it to the same session twice
      held.add(name);
      const got = await ask("SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS done", name).catch(() => false);
      if (got && held.has(name)) return true;
      held.delete(name);
      return false;
    },
    async release(name) {
      if (!held.delete(name)) return;
      await ask("SELECT pg_advisory_unlock(hashtextextended($1, 0)) AS done", name).catch(() => {}); // lost with the connection
    },
    async close() {
      held.clear();
      await connecting?.then((client) => client.end()).catch(() => {});
    },
  };
}

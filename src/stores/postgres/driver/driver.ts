import pg from "pg";
import { CairnError } from "../../../model/errors.ts";
import { sha256Hex } from "../../../model/ids.ts";
import { LIMITS, POSTGRES_DEFAULTS } from "../../../model/limits.ts";
import { callStartedAt, waitLimitMs } from "../../../scheduling/calls.ts";
import { retry } from "../../../scheduling/retry.ts";
import { connectionQueue } from "./connection-queue.ts";
import { isCollision, isConnectionLoss, isPreparedLoss, POOL_TIMEOUT, translatePostgresError } from "./errors.ts";
import { assertManagesPrepared, localSettings, type SessionSettings, setUpSession } from "./session.ts";
import { fromTimestamp } from "./time.ts";

export type PgValue = string | number | boolean | null | Uint8Array | readonly (string | number | Uint8Array | null)[];

/**
 * Statements inside one transaction, with $1, $2 … as parameters. Each text is prepared once per connection, so texts must be few.
 * Through a pooler nothing is prepared.
 */
export interface PostgresTx {
  /** Returns the number of changed rows. */
  run(sql: string, ...params: readonly PgValue[]): Promise<number>;
  get<Row>(sql: string, ...params: readonly PgValue[]): Promise<Row | undefined>;
  all<Row>(sql: string, ...params: readonly PgValue[]): Promise<Row[]>;
  /** Not prepared: for texts that vary and, without parameters, for several statements at once. */
  exec<Row>(sql: string, ...params: readonly PgValue[]): Promise<Row[]>;
}

export interface WriteOptions {
  /** Running `work` twice has the effect of running it once. Then even a write whose commit was cut off is repeated. */
  readonly idempotent?: boolean;
  /** The statement cannot run inside a transaction, as VACUUM cannot. */
  readonly outsideTransaction?: boolean;
}

/**
 * One PostgreSQL database. Table names are looked up in the given schema and nowhere else. A call waits for a
 * restarting server. A transaction that certainly had no effect is repeated, so `work` must contain only SQL.
 */
export interface PostgresDatabase {
  /** Host and database, for messages; never the password. */
  readonly where: string;
  /** Runs `work` on one consistent snapshot. */
  read<T>(schema: string, work: (tx: PostgresTx) => Promise<T>): Promise<T>;
  /** Runs `work` in a transaction and resolves once it is durable. */
  write<T>(schema: string, work: (tx: PostgresTx) => Promise<T>, options?: WriteOptions): Promise<T>;
  /** One statement as a transaction of its own: a single round trip. It must name its tables with their schema. */
  statement<Row>(sql: string, params: readonly PgValue[], options?: WriteOptions): Promise<Row[]>;
  /** Runs statements that control their own transaction, by the simple protocol. */
  script<Row>(sql: string): Promise<Row[]>;
  close(): Promise<void>;
}

export interface PostgresOptions {
  readonly url: string;
  readonly poolMax?: number;
  /** Seconds after which a connection is replaced once it is idle. */
  readonly connectionLifetimeS?: number;
  /** Transactions after which a connection is replaced. */
  readonly connectionMaxUses?: number;
  /** Whether statements are prepared. Default: unless a pooler is between Cairn and the server. */
  readonly preparedStatements?: boolean | undefined;
  readonly statementTimeoutMs?: number;
  /** Milliseconds that a call waits for a new connection to be opened. */
  readonly connectTimeoutMs?: number;
  /** Milliseconds that a call waits while all connections are busy; a call with a shorter time limit waits less. */
  readonly acquireTimeoutMs?: number;
  /** Milliseconds that a call waits for a server that was available before. */
  readonly reconnectMs?: number;
}

/** A database to connect to, or connections that others share: then `close` leaves them open. */
export type PostgresSource = PostgresOptions | { readonly database: PostgresDatabase };

export function databaseOf(source: PostgresSource): PostgresDatabase {
  return "database" in source ? { ...source.database, close: async () => {} } : openPostgres(source);
}

export function openPostgres(options: PostgresOptions): PostgresDatabase {
  const { poolMax = POSTGRES_DEFAULTS.poolMax, statementTimeoutMs = 30_000, connectTimeoutMs = 10_000, reconnectMs = 15_000 } = options;
  const { acquireTimeoutMs = LIMITS.lockWaitMs } = options;
  const { connectionLifetimeS = POSTGRES_DEFAULTS.connectionLifetimeS, connectionMaxUses = POSTGRES_DEFAULTS.connectionMaxUses } = options;
  const where = describeUrl(options.url);
  const settings: SessionSettings = [
    ["statement_timeout", String(statementTimeoutMs)],
    ["lock_timeout", String(Math.ceil(0.9 * statementTimeoutMs))], // first, so that a lock is reported as a lock and not as a slow statement
    ["idle_in_transaction_session_timeout", String(2 * statementTimeoutMs)],
    // The formats that TYPES parses, whatever the server's configuration.
    ["DateStyle", "ISO"],
    ["TimeZone", "UTC"],
  ];
  const local = localSettings(settings);
  /** A connection led through a pooler: transactions bring their settings with them. */
  let pooled = false;
  const pool = new pg.Pool({
    connectionString: options.url,
    max: poolMax,
    maxLifetimeSeconds: connectionLifetimeS,
    maxUses: connectionMaxUses,
    application_name: "cairn",
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: 30_000,
    allowExitOnIdle: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    query_timeout: statementTimeoutMs + ANSWER_GRACE_MS,
    types: TYPES,
    // No setting is a startup parameter: poolers refuse connections with such parameters, or ignore them.
    async onConnect(client) {
      if (!(await setUpSession(client, settings, connectTimeoutMs))) return;
      pooled = true;
      if (options.preparedStatements) await assertManagesPrepared(client, where);
    },
  });
  pool.on("error", () => {}); // an idle connection that breaks is replaced; the next call fails if the server is down
  const connections = new Set<pg.PoolClient>();
  pool.on("connect", (client) => connections.add(client));
  pool.on("remove", (client) => connections.delete(client));
  const queue = connectionQueue({ connections: poolMax, where });
  let reached = false;
  let closed = false;

  function assertOpen(): void {
    if (closed) throw new CairnError("unavailable", `The connection to ${where} was closed. Open it again.`, { details: { where } });
  }

  /** Gets a connection of the pool within the time that the call has left. A connection that comes later goes back to the pool. */
  async function connect(): Promise<pg.PoolClient> {
    const connecting = pool.connect();
    const waitMs = waitLimitMs(connectTimeoutMs);
    if (waitMs >= connectTimeoutMs) return connecting;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(POOL_TIMEOUT)), waitMs);
    });
    try {
      return await Promise.race([connecting, late]);
    } catch (error) {
      connecting.then((client) => client.release()).catch(() => {});
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns settings for a transaction: time limits of a call that must answer sooner than usual, and through a pooler all settings. */
  function transactionSettings(): string {
    const inherited = pooled ? local : "";
    const lockMs = waitLimitMs(statementTimeoutMs);
    if (lockMs >= statementTimeoutMs) return inherited;
    const statementMs = waitLimitMs(statementTimeoutMs, 0.3);
    return `${inherited}; SET LOCAL lock_timeout = ${Math.ceil(lockMs) + 1}; SET LOCAL statement_timeout = ${Math.ceil(statementMs) + 1}`;
  }

  /** Sends one query and gives up the connection rather than keep a call beyond its limit. The server's own limits come first. */
  function ask(client: pg.PoolClient, query: pg.QueryConfig): Promise<pg.QueryResult> {
    const limited: pg.QueryConfig & { query_timeout: number } = {
      ...query,
      query_timeout: Math.ceil(waitLimitMs(statementTimeoutMs + ANSWER_GRACE_MS, 0.6)) + 1,
    };
    return client.query(limited);
  }

  /** Waits until a connection is free, and keeps it until the work has ended. */
  async function attempt<T>(frame: Frame, work: (tx: PostgresTx) => Promise<T>, committing: () => void): Promise<T> {
    assertOpen();
    const leave = await queue.enter({ since: callStartedAt(), limitMs: waitLimitMs(acquireTimeoutMs) });
    try {
      assertOpen(); // it may have been closed meanwhile
      return await attemptNow(frame, work, committing);
    } finally {
      leave();
    }
  }

  async function attemptNow<T>(frame: Frame, work: (tx: PostgresTx) => Promise<T>, committing: () => void): Promise<T> {
    const client = await connect();
    reached = true;
    let broken: unknown;
    const onBreak = (error: Error) => {
      broken = error;
    };
    client.on("error", onBreak);
    const ownSettings = transactionSettings();
    const begin = frame.single && ownSettings === "" ? undefined : frame.begin;
    const tx = statements((query) => ask(client, query), options.preparedStatements ?? !pooled);
    try {
      if (begin === undefined) {
        committing(); // a statement on its own commits by itself
        return await work(tx);
      }
      await ask(client, { text: begin + ownSettings });
      const value = await work(tx);
      if (broken) throw broken; // known to have had no effect, since the commit was not sent
      committing();
      const { command } = await ask(client, { text: "COMMIT" });
      // A transaction in which a statement failed is undone by COMMIT, without an error.
      if (command !== "COMMIT") throw new Error("A statement of the transaction failed, and its error was not passed on.");
      return value;
    } catch (error) {
      if (isConnectionLoss(error)) broken ??= error;
      else if (begin !== undefined) broken ??= await ask(client, { text: "ROLLBACK" }).then(() => undefined, identity);
      throw error;
    } finally {
      client.off("error", onBreak);
      client.release(broken !== undefined);
    }
  }

  /** Returns whether a pooler that gave no sign of itself has lost a prepared statement. From then on nothing is prepared. */
  function hasFoundPooler(error: unknown): boolean {
    if (pooled || options.preparedStatements || !isPreparedLoss(error)) return false;
    pooled = true;
    return true;
  }

  async function transact<T>(frame: Frame, work: (tx: PostgresTx) => Promise<T>, idempotent: boolean): Promise<T> {
    let commitSent = false;
    const isEffectUnknown = (error: unknown) => isConnectionLoss(error) && commitSent && !idempotent;
    const isRetryable = (error: unknown) =>
      !closed && (isCollision(error) || hasFoundPooler(error) || (isConnectionLoss(error) && reached && !isEffectUnknown(error)));
    const once = () => {
      commitSent = false;
      return attempt(frame, work, () => {
        commitSent = true;
      });
    };
    try {
      return await retry(once, { backoff: RETRY_BACKOFF, isRetryable, limitMs: waitLimitMs(reconnectMs) });
    } catch (error) {
      throw translatePostgresError(error, where, isEffectUnknown(error) ? "unknown" : "undone");
    }
  }

  return {
    where,
    read: (schema, work) => transact({ begin: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${lookIn(schema)}` }, work, true),
    write: (schema, work, { idempotent = false } = {}) => transact({ begin: `BEGIN; ${lookIn(schema)}` }, work, idempotent),
    statement<Row>(sql: string, params: readonly PgValue[], { idempotent = false, outsideTransaction = false }: WriteOptions = {}) {
      return transact(outsideTransaction ? {} : { begin: "BEGIN", single: true }, (tx) => tx.all<Row>(sql, ...params), idempotent);
    },
    script<Row>(sql: string) {
      const runScript = async (tx: PostgresTx) => {
        try {
          return await tx.exec<Row>(sql);
        } catch (error) {
          await tx.exec("ROLLBACK").catch(() => {}); // of the transaction that the script may have begun
          throw error;
        }
      };
      return transact({}, runScript, false);
    },
    async close() {
      if (closed) return;
      closed = true;
      setTimeout(() => cutOff(connections), CLOSE_MS).unref(); // a server that has stopped answering must not keep the process alive
      await pool.end();
    },
  };
}

/** How a unit of work becomes a transaction. Without `begin` it controls its transactions itself. */
interface Frame {
  readonly begin?: string;
  /** The work is one statement, so it needs a transaction only for settings of its own. */
  readonly single?: boolean;
}

/** Delays between attempts of a transaction that met another one or lost its connection. */
const RETRY_BACKOFF = { firstMs: 20, maxMs: 500 };
/** Milliseconds that connections have to end by themselves once the database is closed; then they are cut off. */
const CLOSE_MS = 5_000;
/** Milliseconds by which the client's limit on a query exceeds the server's, for a network that swallows the answer. */
const ANSWER_GRACE_MS = 5_000;

function cutOff(connections: ReadonlySet<pg.PoolClient>): void {
  for (const client of connections) (client as unknown as { connection: pg.Connection }).connection.stream.destroy();
}

/** Only this schema, not `public`: if it is gone the statement fails, instead of finding a namesake elsewhere. */
function lookIn(schema: string): string {
  return `SET LOCAL search_path TO ${quoteName(schema)}`;
}

/** A name that may stand in SQL text. Only names that Cairn makes itself pass. */
export function quoteName(name: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(name)) throw new CairnError("internal", `${JSON.stringify(name)} cannot name a schema or table.`);
  return `"${name}"`;
}

function statements(ask: (query: pg.QueryConfig) => Promise<pg.QueryResult>, prepare: boolean): PostgresTx {
  const query = (text: string, values: readonly PgValue[]) =>
    ask({ ...(prepare && { name: statementName(text) }), text, values: [...values] });
  return {
    run: async (sql, ...params) => (await query(sql, params)).rowCount ?? 0,
    get: async <Row>(sql: string, ...params: readonly PgValue[]) => (await query(sql, params)).rows[0] as Row | undefined,
    all: async <Row>(sql: string, ...params: readonly PgValue[]) => (await query(sql, params)).rows as Row[],
    exec: async <Row>(sql: string, ...params: readonly PgValue[]) =>
      (await ask(params.length > 0 ? { text: sql, values: [...params] } : { text: sql })).rows as Row[],
  };
}

const statementNames = new Map<string, string>();

function statementName(sql: string): string {
  let name = statementNames.get(sql);
  if (name === undefined) {
    name = `cairn_${sha256Hex(sql).slice(0, 20)}`;
    statementNames.set(sql, name);
  }
  return name;
}

const INT8 = 20;
const TIMESTAMPTZ = 1184;

/** Times come back as the ISO text that went in, and counts as numbers. */
const TYPES: pg.CustomTypesConfig = {
  getTypeParser(oid, format) {
    if (oid === TIMESTAMPTZ) return fromTimestamp;
    return oid === INT8 ? Number : pg.types.getTypeParser(oid, format);
  },
};

/** Host and database of a URL, without user, password and options. A URL that cannot be read is not repeated: it may hold a password. */
export function describeUrl(url: string): string {
  try {
    const { host, pathname, searchParams } = new URL(url);
    return `${host || searchParams.get("host") || "localhost"}${decodeURIComponent(pathname)}`;
  } catch {
    throw new CairnError("invalid_input", "The database URL cannot be read. It looks like postgres://user:password@host:5432/database.");
  }
}

function identity<T>(value: T): T {
  return value;
}

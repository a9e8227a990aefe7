import { closeSync, existsSync, mkdirSync, openSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../../model/errors.ts";
import { LIMITS } from "../../model/limits.ts";
import { isMoving, movingError } from "../../model/move.ts";
import { loadEngine } from "./engine.ts";
import { isBusy, translateSqliteError } from "./errors.ts";
import { type Migration, migrateSqlite } from "./migrations.ts";
import { awayFrom, isOnTheMove } from "./move-record.ts";

export type SqlValue = string | number | bigint | null | Uint8Array;

/** Statements inside one transaction. Prepared once per connection and reused. */
export interface SqliteTx {
  run(sql: string, ...params: readonly SqlValue[]): { readonly changes: number; readonly lastId: number };
  get<Row>(sql: string, ...params: readonly SqlValue[]): Row | undefined;
  all<Row>(sql: string, ...params: readonly SqlValue[]): Row[];
  /** Several statements without parameters, for schemas. */
  exec(sql: string): void;
  /** Tells a person, by way of whoever opened the file, about something that was put right. */
  readonly notice?: ((message: string) => void) | undefined;
}

/** One open database file. Several processes may have it open at once. */
export interface SqliteDatabase {
  readonly path: string;
  /** No write is waiting. */
  readonly idle: boolean;
  /** Runs `work` on one consistent snapshot. */
  read<T>(work: (tx: SqliteTx) => T): T;
  /**
   * One row by one statement, which is a snapshot by itself and needs no transaction around it. The values come as a list in the order
   * of the statement: an object with names costs the engines more than the row.
   */
  one<Row extends readonly unknown[]>(sql: string, ...params: readonly SqlValue[]): Row | undefined;
  /**
   * Runs `work` in a write transaction and resolves once it is durable. Writes that wait together share one commit;
   * each stands or falls alone. `work` must not be asynchronous and may be run again if the lock was lost.
   */
  write<T>(work: (tx: SqliteTx) => T): Promise<T>;
  close(): void;
}

export interface SqliteOptions {
  readonly path: string;
  /** Left out where the file is opened a second time, beside a connection that has brought its schema up to date. */
  readonly migrations?: readonly Migration[];
  /** Refuses to make a file that is not there. */
  readonly mustExist?: boolean;
  readonly lockWaitMs?: number;
  /** Told in words for a person when something was damaged and put right. */
  readonly onNotice?: ((message: string) => void) | undefined;
}

/** How many waiting writes share one commit. Bounds how long one commit can hold the lock. */
const GROUP_COMMIT_MAX = 256;
/**
 * SQLite's lock has no queue: whoever asks in the right moment gets it. So that nobody starves, a process that had to wait
 * for the lock rests after its turn, longer than the others wait between two tries; its own writes gather meanwhile.
 */
const REST_MS = 10;
const RETRY_MS = 15;
/** After this long a process tries more often than those that have just come. */
const IMPATIENT_AFTER_MS = 1_000;
const IMPATIENT_RETRY_MS = 3;

export async function openSqlite({
  path,
  migrations,
  mustExist = false,
  lockWaitMs = LIMITS.lockWaitMs,
  onNotice,
}: SqliteOptions): Promise<SqliteDatabase> {
  const connection = await connect(path, mustExist, lockWaitMs);
  const tx = statements(connection, onNotice);
  const queue: QueuedWrite[] = [];
  let draining = false;
  let closed = false;
  let restUntil = 0;

  const assertOpen = () => {
    if (closed) throw closedError(path, `The database ${path} was closed. Open it again.`);
  };

  async function drain(): Promise<void> {
    if (draining) return;
    draining = true;
    try {
      while (queue.length > 0 && !closed) {
        await undefined; // lets the writes of this turn gather into one commit
        const restMs = restUntil - Date.now();
        if (restMs > 0) await sleep(restMs);
        if (closed) break;
        try {
          const work = () => commitTogether(connection, tx, path, queue.splice(0, GROUP_COMMIT_MAX));
          const contended = await inWriteLock(connection, path, lockWaitMs, work);
          if (contended) restUntil = Date.now() + REST_MS * (0.5 + Math.random());
        } catch (error) {
          for (const job of queue.splice(0, GROUP_COMMIT_MAX)) job.reject(error);
        }
      }
    } finally {
      draining = false;
    }
    if (closed) for (const job of queue.splice(0)) job.reject(closedError(path, `The database ${path} was closed before the write.`));
  }

  const database: SqliteDatabase = {
    path,
    get idle() {
      return queue.length === 0 && !draining;
    },
    read(work) {
      assertOpen();
      try {
        connection.exec("BEGIN");
        try {
          return work(tx);
        } finally {
          connection.exec("COMMIT");
        }
      } catch (error) {
        throw translateSqliteError(error, path);
      }
    },
    one<Row extends readonly unknown[]>(sql: string, ...params: readonly SqlValue[]) {
      assertOpen();
      try {
        return tx.list<Row>(sql, ...params);
      } catch (error) {
        throw translateSqliteError(error, path);
      }
    },
    write<T>(work: (tx: SqliteTx) => T) {
      return new Promise<T>((resolve, reject) => {
        assertOpen();
        queue.push({ work, resolve: resolve as (value: unknown) => void, reject });
        void drain();
      });
    },
    close() {
      if (closed) return;
      closed = true;
      emptyWal(connection);
      tx.forget();
      connection.close();
    },
  };

  try {
    if (migrations) await migrateSqlite(database, migrations);
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

/** A file that leaves is closed by whoever finds out first, while others still wait to write to it. */
function closedError(path: string, message: string): CairnError {
  return isOnTheMove(path) ? movingError(path) : new CairnError("unavailable", message, { details: { path } });
}

interface QueuedWrite {
  readonly work: (tx: SqliteTx) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Runs the jobs in the transaction that is open, each in a savepoint of its own, and answers them only after the commit. */
function commitTogether(connection: DatabaseSync, tx: SqliteTx, path: string, jobs: readonly QueuedWrite[]): void {
  const answers: (() => void)[] = [];
  try {
    for (const job of jobs) {
      tx.run("SAVEPOINT job"); // prepared, as it comes with every write
      try {
        const value = job.work(tx);
        tx.run("RELEASE job");
        answers.push(() => job.resolve(value));
      } catch (error) {
        // A full disk or an I/O error may have ended the whole transaction: then nothing of this group is kept.
        if (!connection.isTransaction) throw error;
        connection.exec("ROLLBACK TO job; RELEASE job");
        answers.push(() => job.reject(translateSqliteError(error, path)));
      }
    }
    connection.exec("COMMIT");
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    for (const job of jobs) job.reject(translateSqliteError(error, path));
    return;
  }
  for (const answer of answers) answer();
}

/**
 * Takes the write lock without blocking the event loop (other processes may hold it for a while) and runs `work` in the
 * same turn: a read between the two would find itself inside the transaction. Says whether it had to wait.
 */
async function inWriteLock(connection: DatabaseSync, path: string, lockWaitMs: number, work: () => void): Promise<boolean> {
  const start = Date.now();
  for (let attempt = 1; ; attempt++) {
    const refusal = beginImmediate(connection);
    if (refusal === undefined) {
      work();
      return attempt > 1;
    }
    // Whoever waited may find it closed by another call that met the move first; it goes on where the database is now.
    if (!connection.isOpen) throw closedError(path, `The database ${path} was closed before the write.`);
    const waitedMs = Date.now() - start;
    if (!isBusy(refusal)) throw translateSqliteError(refusal, path);
    if (waitedMs > lockWaitMs)
      throw new CairnError(
        "unavailable",
        `Other processes have held the write lock on ${path} for ${Math.round(lockWaitMs / 1000)} s. Try again, or find out what they are doing.`,
        { cause: refusal, retryAfterMs: 1_000 },
      );
    await sleep(1 + Math.random() * (waitedMs > IMPATIENT_AFTER_MS ? IMPATIENT_RETRY_MS : RETRY_MS));
  }
}

/** Tries once, and gives back why it could not. Only this try must not wait; reads may. */
function beginImmediate(connection: DatabaseSync): unknown {
  try {
    connection.exec("PRAGMA busy_timeout = 0; BEGIN IMMEDIATE");
    return undefined;
  } catch (error) {
    return error;
  } finally {
    if (connection.isOpen) connection.exec("PRAGMA busy_timeout = 5000");
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw unwritable(error, path);
  }
}

function unwritable(cause: unknown, path: string): CairnError {
  return new CairnError(
    "unavailable",
    `The database ${path} cannot be made. Check the permissions of its folder and the room on its disk.`,
    {
      cause,
      details: { path },
    },
  );
}

/**
 * SQLite gives its WAL files the mode of the database, so making it first keeps all of them private. A file that is there is
 * not touched: closing any descriptor of it would drop the locks that other connections of this process hold.
 */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, "ax", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw unwritable(error, path);
  }
}

async function connect(path: string, mustExist: boolean, lockWaitMs: number): Promise<DatabaseSync> {
  const { DatabaseSync } = await loadEngine();
  if (path !== ":memory:") {
    if (isOnTheMove(path) && (!existsSync(path) || awayFrom(path) !== undefined)) throw movingError(path);
    if (mustExist && !existsSync(path)) throw new CairnError("not_found", `There is no database file ${path}.`, { details: { path } });
    makeFolder(path);
    makePrivate(path);
  }
  const deadline = Date.now() + lockWaitMs;
  for (;;) {
    const inode = inodeOf(path);
    const connection = new DatabaseSync(path, { timeout: 5_000, enableForeignKeyConstraints: true });
    try {
      // 8 KiB pages hold a 384-dimension vector with little waste; it only has an effect before the first write.
      connection.exec("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
      connection.exec("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000; PRAGMA trusted_schema = OFF");
      // From here on this connection holds a lock that keeps the file from being replaced; before, a restore may have done so.
      if (inodeOf(path) === inode && !isLeftBehind(connection, path)) return connection;
      connection.close();
    } catch (error) {
      connection.close();
      if (isMoving(error)) throw error;
      // Ten processes that make one file at the same moment meet here.
      if (!isBusy(error) || Date.now() > deadline) throw translateSqliteError(error, path);
      await sleep(5 + Math.random() * 20);
    }
  }
}

/**
 * A database that left just now while it was being opened: SQLite has made an empty file in its place. There is a note of where it
 * went, and the empty file must not hide that.
 */
function isLeftBehind(connection: DatabaseSync, path: string): boolean {
  if (path === ":memory:" || !isOnTheMove(path)) return false;
  if (connection.prepare("SELECT 1 FROM sqlite_master LIMIT 1").get()) return false;
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
  throw movingError(path);
}

export function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/**
 * Brings the WAL's contents into the file, so that a copy of a closed file is complete. SQLite does this itself when the last
 * connection closes; but the engine for Node 20 keeps a connection half open until its statements are collected as garbage.
 */
function emptyWal(connection: DatabaseSync): void {
  try {
    connection.exec("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)");
  } catch {
    // Others use the file, or it is damaged: the WAL stays, which is just as safe.
  }
}

interface Statements extends SqliteTx {
  list<Row extends readonly unknown[]>(sql: string, ...params: readonly SqlValue[]): Row | undefined;
  forget(): void;
}

function statements(connection: DatabaseSync, notice: SqliteTx["notice"]): Statements {
  const prepared = new Map<string, StatementSync>();
  const lists = new Map<string, StatementSync>();
  const prepare = (sql: string): StatementSync => {
    let statement = prepared.get(sql);
    if (!statement) {
      statement = connection.prepare(sql);
      prepared.set(sql, statement);
    }
    return statement;
  };
  return {
    run(sql, ...params) {
      const { changes, lastInsertRowid } = prepare(sql).run(...params);
      return { changes: Number(changes), lastId: Number(lastInsertRowid) };
    },
    get: <Row>(sql: string, ...params: readonly SqlValue[]) => prepare(sql).get(...params) as Row | undefined,
    all: <Row>(sql: string, ...params: readonly SqlValue[]) => prepare(sql).all(...params) as Row[],
    list<Row extends readonly unknown[]>(sql: string, ...params: readonly SqlValue[]) {
      let statement = lists.get(sql);
      if (!statement) {
        statement = connection.prepare(sql);
        statement.setReturnArrays(true);
        lists.set(sql, statement);
      }
      return statement.get(...params) as unknown as Row | undefined;
    },
    exec: (sql) => connection.exec(sql),
    notice,
    forget() {
      prepared.clear();
      lists.clear();
    },
  };
}

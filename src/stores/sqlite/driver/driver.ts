import { closeSync, existsSync, openSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { makeFolder } from "../../../files/make-folder.ts";
import { CairnError, isTooManyOpenFiles, tooManyOpenFiles } from "../../../model/errors.ts";
import { LIMITS } from "../../../model/limits.ts";
import { isMigrating, migratingError } from "../../../model/migration.ts";
import type { DatabaseSchema } from "../../../model/schema.ts";
import { waitLimitMs } from "../../../scheduling/calls.ts";
import { retry } from "../../../scheduling/retry.ts";
import { hasMigrationRecord, migratedTo } from "../migration/record.ts";
import { isCodeFile } from "../projects/code/code-file.ts";
import { closedError } from "./closed-error.ts";
import { assertNotDeleted } from "./deleted-file.ts";
import { type Engine, loadEngine } from "./engine.ts";
import { logEraser } from "./erase-log.ts";
import { isBusy, translateSqliteError } from "./errors.ts";
import { groupCommit } from "./group-commit.ts";
import { ensureSchema } from "./schema-version.ts";

export type SqlValue = string | number | bigint | null | Uint8Array;

/** Statements inside one transaction. Prepared once per connection and reused. */
export interface SqliteTx {
  run(sql: string, ...params: readonly SqlValue[]): { readonly changes: number; readonly lastId: number };
  get<Row>(sql: string, ...params: readonly SqlValue[]): Row | undefined;
  all<Row>(sql: string, ...params: readonly SqlValue[]): Row[];
  /** Several statements without parameters, for schemas. */
  exec(sql: string): void;
  /** Notifies the user of a repair. */
  readonly notice?: ((message: string) => void) | undefined;
}

/** One open database file. Several processes may have it open at once. */
export interface SqliteDatabase {
  readonly path: string;
  /** Whether no write is queued or running. */
  readonly idle: boolean;
  /** Runs `work` on one consistent snapshot. */
  read<T>(work: (tx: SqliteTx) => T): T;
  /**
   * Returns one row of one statement, which is a snapshot by itself and needs no transaction. The values come as a list in the order of
   * the statement: an object with names costs the engines more than the row.
   */
  one<Row extends readonly unknown[]>(sql: string, ...params: readonly SqlValue[]): Row | undefined;
  /**
   * Runs `work` in a write transaction and resolves after the commit, which is durable except in the code index (see REBUILDABLE).
   * Writes that wait together share one commit; each succeeds or fails alone. `work` must not be asynchronous.
   */
  write<T>(work: (tx: SqliteTx) => T): Promise<T>;
  /**
   * Removes deleted and replaced content from the write-ahead log too. In the database itself the commit has overwritten it. Resolves when
   * that is done, or after a second while readers of other processes need the log; the rest then happens in the background.
   */
  eraseLog(): Promise<void>;
  /** Erases the log as `eraseLog` does, in the background, within about a second. */
  eraseLogLater(): void;
  /** Copies a consistent snapshot of the database to a new file, without blocking the event loop. */
  copyTo(path: string): Promise<void>;
  close(): void;
}

export interface SqliteOptions {
  readonly path: string;
  /** Omitted for a second connection: the first has checked the schema. */
  readonly schema?: DatabaseSchema;
  /** Raises `not_found` instead of creating the file. */
  readonly mustExist?: boolean;
  /** Leaves the write-ahead log as it is when this connection is closed: for a second connection, because the first one empties it. */
  readonly keepLog?: boolean;
  readonly lockWaitMs?: number;
  /** KiB of pages that the connection caches at most. */
  readonly cacheKib?: number;
  /** Receives a message for the user when something was damaged and repaired. */
  readonly onNotice?: ((message: string) => void) | undefined;
  /** Runs before the database is used. The file is closed again if it fails. */
  readonly prepare?: ((database: SqliteDatabase) => Promise<void>) | undefined;
}

/**
 * Commits are on disk before they are acknowledged, and deleted content is overwritten with zeros. A commit with a WAL checkpoint takes
 * many times as long as another, so a WAL checkpoint runs only every 4,000 pages.
 */
const DURABLE = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; PRAGMA secure_delete = ON";
/**
 * The code index is rebuilt from files that the user has. Its commits do not wait for the disk: in WAL mode a power failure may lose the
 * newest of them but never damages the file. Deleted content is overwritten where that costs no further write. An index run writes the
 * pages near the roots of its trees in every commit, so a WAL checkpoint every 64 MB writes them to the file a few times only.
 */
const REBUILDABLE = "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 8000; PRAGMA secure_delete = FAST";

const CACHE_KIB = 8_000;
/** Milliseconds that one attempt to open a file may block the thread. The wait between two attempts does not block it. */
const CONNECT_BUSY_MS = 50;

export async function openSqlite({
  path,
  schema,
  mustExist = false,
  keepLog = false,
  lockWaitMs = LIMITS.lockWaitMs,
  cacheKib = CACHE_KIB,
  onNotice,
  prepare,
}: SqliteOptions): Promise<SqliteDatabase> {
  const connection = await connect(path, mustExist, lockWaitMs);
  connection.exec(`PRAGMA cache_size = -${cacheKib}`);
  const tx = statements(connection, onNotice);
  const wait = lockWait(connection);
  const writes = groupCommit(connection, tx, wait, path);
  const eraser = logEraser(() => truncateLog(connection, tx, wait));
  let closed = false;

  const assertOpen = () => {
    if (closed) throw closedError(path);
  };

  const database: SqliteDatabase = {
    path,
    get idle() {
      return writes.idle;
    },
    read(work) {
      assertOpen();
      try {
        wait.allow();
        tx.run("BEGIN");
        try {
          return work(tx);
        } finally {
          // A full disk or an I/O error ends the transaction by itself; a COMMIT would then hide that error behind its own.
          if (connection.isTransaction) tx.run("COMMIT");
        }
      } catch (error) {
        throw translateSqliteError(error, path);
      }
    },
    one<Row extends readonly unknown[]>(sql: string, ...params: readonly SqlValue[]) {
      assertOpen();
      try {
        wait.allow();
        return tx.list<Row>(sql, ...params);
      } catch (error) {
        throw translateSqliteError(error, path);
      }
    },
    write<T>(work: (tx: SqliteTx) => T) {
      return new Promise<T>((resolve, reject) => {
        assertOpen();
        writes.add({ work, waitMs: waitLimitMs(lockWaitMs), resolve: resolve as (value: unknown) => void, reject });
      });
    },
    eraseLog: async () => {
      if (!closed && path !== ":memory:") await eraser.erase();
    },
    eraseLogLater() {
      if (!closed && path !== ":memory:") eraser.eraseLater();
    },
    async copyTo(target) {
      assertOpen();
      const { backup } = await loadEngine();
      closeSync(openSync(target, "wx", 0o600));
      await backup(connection, target);
    },
    close() {
      if (closed) return;
      closed = true;
      writes.close();
      eraser.close();
      if (!keepLog) emptyWal(connection);
      tx.forget();
      connection.close();
    },
  };

  try {
    if (schema) await ensureSchema(database, schema);
    await prepare?.(database);
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

function makeFolderOf(path: string): void {
  try {
    makeFolder(dirname(path));
  } catch (error) {
    throw unwritable(error, path);
  }
}

function unwritable(cause: unknown, path: string): CairnError {
  if (isTooManyOpenFiles(cause)) return tooManyOpenFiles(cause);
  return new CairnError(
    "unavailable",
    `The database ${path} cannot be created. Check the permissions of its folder and the free space on its disk.`,
    {
      cause,
      details: { path },
    },
  );
}

/**
 * Creates the file for this user only. SQLite gives its WAL files the mode of the database. An existing file is not touched: closing any
 * descriptor of it would drop the locks that other connections of this process hold.
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
    if (hasMigrationRecord(path) && (!existsSync(path) || migratedTo(path) !== undefined)) throw migratingError(path);
    if (mustExist && !existsSync(path)) throw new CairnError("not_found", `There is no database file ${path}.`, { details: { path } });
    assertNotDeleted(path);
    makeFolderOf(path);
    makePrivate(path);
  }
  // Several processes may create one file at the same moment.
  const isRetryable = (error: unknown) => isBusy(error) || error === REPLACED;
  try {
    return await retry(async () => connectOnce(DatabaseSync, path), { ...CONNECT_RETRY, limitMs: waitLimitMs(lockWaitMs), isRetryable });
  } catch (error) {
    throw isMigrating(error) ? error : translateSqliteError(error, path);
  }
}

/** Milliseconds between attempts to connect to a file that another process creates. */
const CONNECT_RETRY = { backoff: { firstMs: 25, maxMs: 25 } };
const REPLACED = new CairnError("unavailable", "A restore replaced the database file while it was opened. Try again.");

function connectOnce(DatabaseSync: Engine, path: string): DatabaseSync {
  const inode = inodeOf(path);
  const connection = openConnection(DatabaseSync, path);
  try {
    // 8 KiB pages hold a 384-dimension vector with little waste; it only has an effect before the first write.
    const durability = isCodeFile(path) ? REBUILDABLE : DURABLE;
    connection.exec(`PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; ${durability}; PRAGMA foreign_keys = ON`);
    connection.exec("PRAGMA temp_store = MEMORY");
    // From here on this connection holds a lock that keeps the file from being replaced; before, a restore may have done so.
    if (inodeOf(path) !== inode) throw REPLACED;
    assertNotMigratedAway(connection, path);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

function openConnection(DatabaseSync: Engine, path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { timeout: CONNECT_BUSY_MS, enableForeignKeyConstraints: true });
  } catch (error) {
    throw translateSqliteError(error, path);
  }
}

/**
 * Detects a file that was migrated while it was being opened: SQLite has then created an empty file in its place. Deletes the empty file,
 * which would hide the migration record, and throws `migratingError`.
 */
function assertNotMigratedAway(connection: DatabaseSync, path: string): void {
  if (path === ":memory:" || !hasMigrationRecord(path)) return;
  if (connection.prepare("SELECT 1 FROM sqlite_master LIMIT 1").get()) return;
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
  throw migratingError(path);
}

export function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/** Copies the log into the database and cuts it to zero bytes, without waiting. Returns false while others use the log. */
function truncateLog(connection: DatabaseSync, tx: SqliteTx, wait: LockWait): boolean {
  if (connection.isTransaction) return false;
  try {
    wait.refuse();
    return tx.get<{ busy: number }>("PRAGMA wal_checkpoint(TRUNCATE)")?.busy === 0;
  } catch (error) {
    if (isBusy(error)) return false;
    return true; // a damaged or deleted file: the next call reports it
  }
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

/** Milliseconds that a read blocks its thread while another process holds the whole file, which is rare and short. */
const READ_BUSY_MS = 1_000;

/** How long the statements of a connection block their thread for a lock. */
export interface LockWait {
  /** Before a read: it waits for the lock. */
  allow(): void;
  /** Before a write: it fails at once, and its queue waits without blocking the thread. */
  refuse(): void;
}

/** Sets SQLite's busy timeout only when it changes: the pragma would take a tenth of a write. */
function lockWait(connection: DatabaseSync): LockWait {
  let current: number | undefined;
  const set = (ms: number) => {
    if (current === ms) return;
    current = undefined; // unknown, if the pragma fails
    connection.exec(`PRAGMA busy_timeout = ${ms}`);
    current = ms;
  };
  return { allow: () => set(READ_BUSY_MS), refuse: () => set(0) };
}

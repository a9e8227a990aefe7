import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../../../model/errors.ts";
import { migratingError } from "../../../model/migration.ts";
import { giveWay, isWriteWanted, wantToWrite } from "../../../scheduling/yield.ts";
import { hasMigrationRecord } from "../migration/record.ts";
import type { SqliteTx } from "./driver.ts";
import { isBusy, translateSqliteError } from "./errors.ts";

export interface WriteOptions {
  /**
   * What is written can be made again from something else, and there is much of it. The commit does not wait for the disk: nothing
   * is lost when the process dies, and after a power failure the file is whole without the newest of these. Others who write go first.
   */
  readonly derived?: boolean;
}

export interface QueuedWrite {
  readonly work: (tx: SqliteTx) => unknown;
  readonly derived: boolean;
  /** Milliseconds that it waits for other processes' locks before it fails as unavailable. */
  readonly waitMs: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Waiting extends QueuedWrite {
  readonly expiresAt: number;
}

/** The writes of one connection, in the order in which they came. */
export interface GroupCommit {
  add(write: QueuedWrite): void;
  /** No write is waiting. */
  readonly idle: boolean;
  /** What waits is rejected. */
  close(): void;
}

/** How many waiting writes share one commit. Bounds how long one commit can hold the lock. */
const GROUP_COMMIT_MAX = 256;
/**
 * SQLite's lock has no queue: whoever asks in the right moment gets it. So that nobody starves, a process that had to wait
 * for the lock rests after its turn, longer than the others wait between two tries; its own writes gather meanwhile.
 */
const REST_MS = 10;
const RETRY_MS = 4;
/** What can wait lets others go first: it rests for as long as they wait between two tries. */
const DERIVED_REST_MS = 5;
/** So often what can wait begins anew because somebody else in this process wants to write; then it has its turn. */
const YIELDS_MAX = 3;
/** After this long a process tries more often than those that have just come. */
const IMPATIENT_AFTER_MS = 1_000;
const IMPATIENT_RETRY_MS = 1;
/**
 * So many pages the WAL may have before a commit brings them into the file, which takes many times as long as the commit itself.
 * Whoever writes much does so early, and thereby spares those who write little and are waited for.
 */
const WAL_PAGES = 4_000;
const WAL_PAGES_DERIVED = 250;
/**
 * Deleted records are overwritten with zeros. The code index is made from files that the user has, so what leaves it is overwritten only
 * where that costs no further write.
 */
const DERIVED = `PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ${WAL_PAGES_DERIVED}; PRAGMA secure_delete = FAST`;
export const DURABLE = `PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = ${WAL_PAGES}; PRAGMA secure_delete = ON`;

/** Milliseconds that a read blocks its thread while another process has the whole file to itself, which is rare and short. */
export const READ_BUSY = "PRAGMA busy_timeout = 1000";

/** What can wait gives up the lock. */
class Yield extends Error {}

export function groupCommit(connection: DatabaseSync, tx: SqliteTx, path: string): GroupCommit {
  const queue: Waiting[] = [];
  let draining = false;
  let closed = false;
  /** For which kind of commit the connection is set. */
  let derived = false;
  let restUntil = 0;
  let derivedRestUntil = 0;
  let cutRestShort = () => {};

  /** How often the write that can wait and is next has given up the lock. */
  let yielded = 0;

  /** For what can wait: between two statements it lets calls go first, and those who want to write. */
  const patientTx: SqliteTx = {
    ...tx,
    run(sql, ...params) {
      giveWay({ locked: true });
      if (yielded < YIELDS_MAX && isWriteWanted()) throw new Yield();
      return tx.run(sql, ...params);
    },
  };

  const isNextDerived = () => queue.every((write) => write.derived);

  /** Sets how the commit is made that comes next; inside of a transaction it would be too late. */
  function suitNext(): void {
    if (isNextDerived() === derived) return;
    derived = !derived;
    connection.exec(derived ? DERIVED : DURABLE);
  }

  /** What somebody waits for, all together; else one of what can wait. */
  function takeNext(): Waiting[] {
    if (derived) return queue.splice(0, 1);
    const taken: Waiting[] = [];
    const left: Waiting[] = [];
    for (const write of queue.splice(0)) (write.derived || taken.length === GROUP_COMMIT_MAX ? left : taken).push(write);
    queue.push(...left);
    return taken;
  }

  /** Rejects the writes that have waited for another process as long as they may. Returns whether any are left. */
  function rejectExpired(refusal: unknown): boolean {
    const waiting = queue.splice(0);
    const now = performance.now();
    for (const write of waiting) {
      if (write.expiresAt > now) queue.push(write);
      else write.reject(lockedError(path, write.waitMs, refusal));
    }
    return queue.length > 0;
  }

  async function rest(): Promise<void> {
    const restMs = restUntil - Date.now();
    if (restMs > 0) await sleep(restMs);
    if (isNextDerived()) giveWay();
    const derivedMs = derivedRestUntil - Date.now();
    if (derivedMs > 0 && isNextDerived()) {
      const cut = new AbortController();
      cutRestShort = () => cut.abort();
      await sleep(derivedMs, undefined, { signal: cut.signal }).catch(() => {});
    }
  }

  async function drain(): Promise<void> {
    if (draining) return;
    draining = true;
    try {
      while (queue.length > 0 && !closed) {
        await undefined; // lets the writes of this turn gather into one commit
        await rest();
        if (closed) break;
        const written = isNextDerived() ? undefined : wantToWrite();
        try {
          const contended = await inWriteLock(connection, path, { before: suitNext, stillWanted: rejectExpired }, () => {
            const writes = takeNext();
            const done = commitTogether(connection, derived ? patientTx : tx, path, writes);
            if (derived) yielded = done ? 0 : yielded + 1; // a write of the other kind in between does not set it back
            if (!done) queue.unshift(...writes);
          });
          if (contended) restUntil = Date.now() + REST_MS * (0.5 + Math.random());
          if (derived) derivedRestUntil = Date.now() + DERIVED_REST_MS;
        } catch (error) {
          for (const job of queue.splice(0, GROUP_COMMIT_MAX)) job.reject(error);
        } finally {
          written?.();
        }
      }
    } finally {
      draining = false;
    }
    if (closed) for (const job of queue.splice(0)) job.reject(closedError(path, `The database ${path} was closed before the write.`));
  }

  return {
    get idle() {
      return queue.length === 0 && !draining;
    },
    add(write) {
      queue.push({ ...write, expiresAt: performance.now() + write.waitMs });
      if (!write.derived) cutRestShort();
      void drain();
    },
    close() {
      closed = true;
    },
  };
}

/** A file that leaves is closed by whoever finds out first, while others still wait to write to it. */
export function closedError(path: string, message: string): CairnError {
  return hasMigrationRecord(path) ? migratingError(path) : new CairnError("unavailable", message, { details: { path } });
}

function lockedError(path: string, waitedMs: number, cause: unknown): CairnError {
  const seconds = Number((waitedMs / 1_000).toFixed(1));
  return new CairnError(
    "unavailable",
    `Another process has held the write lock on ${path} for ${seconds} s. Nothing was stored. Try again, or end that process.`,
    { cause, details: { path }, retryAfterMs: 1_000 },
  );
}

/**
 * Runs the jobs in the transaction that is open, each in a savepoint of its own, and answers them only after the commit. False if they
 * gave up the lock for somebody else: nothing of them is kept, and they are to be run again.
 */
function commitTogether(connection: DatabaseSync, tx: SqliteTx, path: string, jobs: readonly QueuedWrite[]): boolean {
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
        if (!connection.isTransaction || error instanceof Yield) throw error;
        connection.exec("ROLLBACK TO job; RELEASE job");
        answers.push(() => job.reject(translateSqliteError(error, path)));
      }
    }
    connection.exec("COMMIT");
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    if (error instanceof Yield) return false;
    for (const job of jobs) job.reject(translateSqliteError(error, path));
    return true;
  }
  for (const answer of answers) answer();
  return true;
}

/**
 * Takes the write lock without blocking the event loop (other processes may hold it for a while) and runs `work` in the
 * same turn: a read between the two would find itself inside the transaction. Says whether it had to wait.
 */
async function inWriteLock(
  connection: DatabaseSync,
  path: string,
  { before, stillWanted }: { readonly before: () => void; readonly stillWanted: (refusal: unknown) => boolean },
  work: () => void,
): Promise<boolean> {
  const start = Date.now();
  for (let attempt = 1; ; attempt++) {
    if (connection.isOpen) before();
    const refusal = beginImmediate(connection);
    if (refusal === undefined) {
      work();
      return attempt > 1;
    }
    // Whoever waited may find it closed by another call that met the move first; it goes on where the database is now.
    if (!connection.isOpen) throw closedError(path, `The database ${path} was closed before the write.`);
    const waitedMs = Date.now() - start;
    if (!isBusy(refusal)) throw translateSqliteError(refusal, path);
    if (!stillWanted(refusal)) return true;
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
    if (connection.isOpen) connection.exec(READ_BUSY);
  }
}

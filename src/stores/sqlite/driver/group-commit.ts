import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { pollDelayMs } from "../../../scheduling/retry.ts";
import { closedError } from "./closed-error.ts";
import type { LockWait, SqliteTx } from "./driver.ts";
import { isBusy, lockedError, translateSqliteError } from "./errors.ts";

export interface QueuedWrite {
  readonly work: (tx: SqliteTx) => unknown;
  /** Milliseconds that the write waits for the lock of another connection before it fails as unavailable. */
  readonly waitMs: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The queue of writes of one connection, first in, first out. */
export interface GroupCommit {
  add(write: QueuedWrite): void;
  /** Whether no write is queued or running. */
  readonly idle: boolean;
  /** Rejects the queued writes after the current group. */
  close(): void;
}

/** Maximum number of writes per commit. Bounds how long one commit holds the lock. */
const GROUP_MAX = 256;
/** Milliseconds of random delay, on top of RETRY_MIN_MS, between two attempts to take the lock. */
const RETRY_JITTER_MS = 4;
const RETRY_MIN_MS = 1;
/** The jitter after a wait of LONG_WAIT_MS milliseconds: a process that has waited long retries more often. */
const LONG_WAIT_JITTER_MS = 1;
const LONG_WAIT_MS = 1_000;
/**
 * Milliseconds that a process pauses after a commit for which it had to wait. SQLite's lock has no queue: without a pause that is longer
 * than the retry delay of other processes, a busy process could starve them. Its own writes queue during the pause.
 */
const PAUSE_MS = 10;

/**
 * Commits writes in groups: writes that are queued together share one transaction and, except in the code index, one sync of the disk.
 * Each write of a group runs in its own savepoint, so that a failed write does not affect the others. A write is acknowledged only after the commit.
 */
export function groupCommit(connection: DatabaseSync, tx: SqliteTx, wait: LockWait, path: string): GroupCommit {
  const queue: (QueuedWrite & { readonly expiresAt: number })[] = [];
  let running = false;
  let closed = false;
  let pauseUntil = 0;

  async function commitQueued(): Promise<void> {
    if (running) return;
    running = true;
    while (queue.length > 0 && !closed) {
      await undefined; // lets the writes of this turn gather into one group
      if (pauseUntil > performance.now()) await sleep(pauseUntil - performance.now());
      await commitNext();
    }
    running = false;
    if (closed) for (const { reject } of queue.splice(0)) reject(closedError(path));
  }

  /**
   * Takes the write lock without blocking the event loop and commits a group in the same turn: a read between the two would run inside
   * the transaction.
   */
  async function commitNext(): Promise<void> {
    const start = performance.now();
    for (let attempt = 1; queue.length > 0 && !closed; attempt++) {
      const error = beginImmediate();
      if (error === undefined) {
        const group = queue.splice(0, GROUP_MAX);
        if (group.length === 1) commitAlone(group[0]!);
        else commitGroup(group);
        if (attempt > 1) pauseUntil = performance.now() + pollDelayMs(PAUSE_MS);
        return;
      }
      rejectExpired(error);
      await sleep(RETRY_MIN_MS + Math.random() * (performance.now() - start > LONG_WAIT_MS ? LONG_WAIT_JITTER_MS : RETRY_JITTER_MS));
    }
  }

  /** Tries once to begin a write transaction, without waiting. Returns the error if that fails. */
  function beginImmediate(): unknown {
    try {
      wait.refuse();
      tx.run("BEGIN IMMEDIATE");
      return undefined;
    } catch (error) {
      return error;
    }
  }

  /** Rejects the queued writes whose wait for the lock has expired. An error other than a busy lock rejects all of them. */
  function rejectExpired(cause: unknown): void {
    for (const write of queue.splice(0)) {
      if (!connection.isOpen) write.reject(closedError(path));
      else if (!isBusy(cause)) write.reject(translateSqliteError(cause, path));
      else if (write.expiresAt > performance.now()) queue.push(write);
      else write.reject(lockedError(path, write.waitMs, cause));
    }
  }

  /** Commits one write without a savepoint, which would cost a sixth of the commit: a failed write rolls the transaction back. */
  function commitAlone({ work, resolve, reject }: QueuedWrite): void {
    try {
      const value = work(tx);
      tx.run("COMMIT");
      resolve(value);
    } catch (error) {
      if (connection.isTransaction) connection.exec("ROLLBACK");
      reject(translateSqliteError(error, path));
    }
  }

  function commitGroup(group: readonly QueuedWrite[]): void {
    const acknowledgements: (() => void)[] = [];
    try {
      for (const { work, resolve, reject } of group) {
        tx.run("SAVEPOINT write");
        try {
          const value = work(tx);
          tx.run("RELEASE write");
          acknowledgements.push(() => resolve(value));
        } catch (error) {
          if (!connection.isTransaction) throw error; // a full disk or an I/O error has ended the whole transaction
          connection.exec("ROLLBACK TO write; RELEASE write");
          acknowledgements.push(() => reject(translateSqliteError(error, path)));
        }
      }
      tx.run("COMMIT");
    } catch (error) {
      if (connection.isTransaction) connection.exec("ROLLBACK");
      for (const { reject } of group) reject(translateSqliteError(error, path));
      return;
    }
    for (const acknowledge of acknowledgements) acknowledge();
  }

  return {
    get idle() {
      return queue.length === 0 && !running;
    },
    add(write) {
      queue.push({ ...write, expiresAt: performance.now() + write.waitMs });
      void commitQueued();
    },
    close() {
      closed = true;
    },
  };
}

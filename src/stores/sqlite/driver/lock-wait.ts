import type { DatabaseSync } from "node:sqlite";

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
export function lockWait(connection: DatabaseSync): LockWait {
  let current: number | undefined;
  const set = (ms: number) => {
    if (current === ms) return;
    current = undefined; // unknown, if the pragma fails
    connection.exec(`PRAGMA busy_timeout = ${ms}`);
    current = ms;
  };
  return { allow: () => set(READ_BUSY_MS), refuse: () => set(0) };
}

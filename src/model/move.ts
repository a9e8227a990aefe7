import { CairnError } from "./errors.ts";

/** What was counted and summed up of one table. */
export interface TableDigest {
  readonly table: string;
  readonly rows: number;
  /** Does not depend on the order of the rows. */
  readonly digest: string;
}

/**
 * How far a move has come. `up`: from SQLite to PostgreSQL; until it is `moved` the file is the truth. `down`: the way back;
 * until it ends PostgreSQL is the truth, and at its end the record goes.
 */
export type MoveState = "pausing" | "paused" | "copied" | "verified" | "moved";

/** Stands beside the SQLite file, so that every process finds out where its database is. Mode 0600: the URL holds a password. */
export interface MoveRecord {
  readonly moveId: string;
  readonly direction: "up" | "down";
  /** The way back takes the archived file instead of copying, since nothing new was written. */
  readonly rollback?: boolean | undefined;
  readonly state: MoveState;
  readonly url: string;
  /** Host, database and schema, for messages. */
  readonly where: string;
  /** The project in the file, where it holds one. */
  readonly projectId?: string | undefined;
  readonly startedAt: string;
  readonly tables?: readonly TableDigest[] | undefined;
  /** Where the source went. */
  readonly archive?: string | undefined;
  /** The record that this one took the place of, so that a move that fails leaves everything as it was. */
  readonly before?: MoveRecord | undefined;
}

/** Raised by every store whose database is being moved, or is not here any more. Nothing was stored. */
export function movingError(where: string, cause?: unknown): CairnError {
  return new CairnError(
    "unavailable",
    `The database ${where} is being moved. Nothing was stored; try again in a moment. If nobody moves it now, a move was broken off: run "cairn migrate" again to finish it, or "cairn migrate --rollback" to go back.`,
    { cause, details: { where, moving: true }, retryAfterMs: 1_000 },
  );
}

/** Whether the call failed because its database is moving or has moved; then nothing was stored, and it may be made again. */
export function isMoving(error: unknown): boolean {
  return error instanceof CairnError && error.details?.moving === true;
}

/** The step that stands alone in the schema of a database that went away for good. */
export const MOVED_STEP = 1_000_000;

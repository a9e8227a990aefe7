import { CairnError } from "./errors.ts";

/** What was counted and summed up of one table. */
export interface TableDigest {
  readonly table: string;
  readonly rows: number;
  /** Does not depend on the order of the rows. */
  readonly digest: string;
}

/**
 * How far a move has come. `up`: from SQLite to PostgreSQL; until it is `migrated` the file is the truth. `down`: the way back;
 * until it ends PostgreSQL is the truth, and at its end the record goes.
 */
export type MigrationState = "pausing" | "paused" | "copied" | "verified" | "migrated";

/** Stands beside the SQLite file, so that every process finds out where its database is. Mode 0600: the URL holds a password. */
export interface MigrationRecord {
  readonly migrationId: string;
  readonly direction: "up" | "down";
  /** The way back takes the archived file instead of copying, since nothing new was written. */
  readonly rollback?: boolean | undefined;
  readonly state: MigrationState;
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
  readonly before?: MigrationRecord | undefined;
}

/** Raised by every store whose database is being moved, or is not here any more. Nothing was stored. */
export function migratingError(where: string, cause?: unknown): CairnError {
  return new CairnError("unavailable", `The database ${where} is being migrated. Nothing was stored; try again in a moment.`, {
    cause,
    details: { where, migrating: true },
    retryAfterMs: 1_000,
  });
}

/** Milliseconds after which a caller may try a database whose migration was abandoned: a person has to act first. */
const ABANDONED_RETRY_MS = 60_000;

/**
 * Raised for a database whose migration stopped before its end while no process runs it. Waiting does not help, so callers get this at
 * once. `flags` selects the database on the command line; without it, only a program can migrate it.
 */
export function abandonedMigration(where: string, flags: string | undefined, record: MigrationRecord | undefined): CairnError {
  const how = migrationCommands(flags, record);
  const stopped = record
    ? `A migration of ${where} (${record.direction === "up" ? "to" : "back from"} ${record.where}) stopped before its end, and no process runs it`
    : `${where} was paused by a migration that has no record any more`;
  const advice = [how.finish && `Finish it with: ${how.finish}`, `Undo it with: ${how.undo}`].filter(Boolean).join(" — or ");
  return new CairnError("unavailable", `${stopped}. Nothing was stored. ${advice}`, {
    details: { where, abandoned: true, commands: how },
    retryAfterMs: ABANDONED_RETRY_MS,
  });
}

/** Returns the commands that end a migration which stopped. One without a record can only be undone. */
export function migrationCommands(flags: string | undefined, record: unknown): { readonly finish?: string; readonly undo: string } {
  const command = flags === undefined ? "migrations.migrate({ which })" : `cairn migrate ${flags}`;
  const undo = flags === undefined ? "migrations.migrate({ which, rollback: true })" : `${command} --rollback`;
  return record === undefined ? { undo } : { finish: command, undo };
}

/** Raised by a PostgreSQL schema whose migration was abandoned; the machine that started it has the record and the commands. */
export function abandonedOnServer(where: string, cause: unknown): CairnError {
  return new CairnError(
    "unavailable",
    `A migration of ${where} stopped before its end, and no process runs it. Nothing was stored. On the machine that started it, run "cairn migrate" for this database to finish it, or "cairn migrate --rollback" to undo it ("cairn doctor" there shows the exact command).`,
    { cause, details: { where, migrating: true, abandoned: true }, retryAfterMs: ABANDONED_RETRY_MS },
  );
}

/** Whether a migration of this database was abandoned: waiting for it does not help. */
export function isAbandoned(error: unknown): boolean {
  return error instanceof CairnError && error.details?.abandoned === true;
}

/** Whether the call failed because its database is moving or has moved; then nothing was stored, and it may be made again. */
export function isMigrating(error: unknown): boolean {
  return error instanceof CairnError && error.details?.migrating === true;
}

/** The step that stands alone in the schema of a database that went away for good. */
export const TOMBSTONE_VERSION = 1_000_000;

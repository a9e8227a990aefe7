import { CairnError } from "./errors.ts";

/** Row count and digest of one table. */
export interface TableDigest {
  readonly table: string;
  readonly rows: number;
  /** Independent of the order of rows. */
  readonly digest: string;
}

/**
 * The progress of a migration. `up`, to PostgreSQL: the SQLite file is authoritative until the state is `migrated`. `down`, back to
 * SQLite: PostgreSQL is authoritative until the migration ends, which removes the record.
 */
export type MigrationState = "fencing" | "fenced" | "copied" | "verified" | "migrated";

/** Stored next to the SQLite file, so that every process finds its database. Mode 0600, because the URL may contain a password. */
export interface MigrationRecord {
  readonly migrationId: string;
  readonly direction: "up" | "down";
  /** Restores the archived file instead of copying, because nothing was written since. */
  readonly rollback?: boolean | undefined;
  /** The project was created on PostgreSQL, because all databases of its folder had been migrated. It has no archive. */
  readonly isNew?: boolean | undefined;
  /** Deleted records are not copied. */
  readonly withoutDeleted?: boolean | undefined;
  readonly state: MigrationState;
  readonly url: string;
  /** Host, database and schema of the PostgreSQL side, for messages. */
  readonly where: string;
  /** The id of the project or system in the file. */
  readonly projectId?: string | undefined;
  readonly startedAt: string;
  readonly tables?: readonly TableDigest[] | undefined;
  /** Path or schema of the archived source. */
  readonly archive?: string | undefined;
  /** The record that this one replaced. A failed migration restores it. */
  readonly before?: MigrationRecord | undefined;
}

/** Returns the error of a store whose database is being migrated or was migrated. Nothing was stored. */
export function migratingError(where: string, cause?: unknown): CairnError {
  return new CairnError("unavailable", `The database ${where} is being migrated. Nothing was stored; try again in a moment.`, {
    cause,
    details: { where, migrating: true },
    retryAfterMs: 1_000,
  });
}

/** Milliseconds until a retry for a database whose migration was abandoned: an operator has to act first. */
const ABANDONED_RETRY_MS = 60_000;

/**
 * Returns the error for a database whose migration is unfinished while no process runs it. Waiting does not help, so calls fail at
 * once. `flags` selects the database on the command line; without them, only a program can migrate it.
 */
export function abandonedMigration(where: string, flags: string | undefined, record: MigrationRecord | undefined): CairnError {
  const how = migrationCommands(flags, record);
  const stopped = record
    ? `A migration of ${where} (${record.direction === "up" ? "to" : "back from"} ${record.where}) is unfinished, and no process runs it`
    : `${where} is fenced by a migration whose record is missing`;
  const advice = [how.finish && `Finish it with: ${how.finish}`, `Undo it with: ${how.undo}`].filter(Boolean).join(" — or ");
  return new CairnError("unavailable", `${stopped}. Nothing was stored. ${advice}`, {
    details: { where, abandoned: true, commands: how },
    retryAfterMs: ABANDONED_RETRY_MS,
  });
}

/** Returns the commands that finish or undo an abandoned migration. One without a record can only be undone. */
export function migrationCommands(flags: string | undefined, record: unknown): { readonly finish?: string; readonly undo: string } {
  const command = flags === undefined ? "migrations.migrate({ which })" : `cairn migrate ${flags}`;
  const undo = flags === undefined ? "migrations.migrate({ which, rollback: true })" : `${command} --rollback`;
  return record === undefined ? { undo } : { finish: command, undo };
}

/** Returns the error of a PostgreSQL schema whose migration was abandoned. Only the machine that started it has the record. */
export function abandonedOnServer(where: string, cause: unknown): CairnError {
  return new CairnError(
    "unavailable",
    `A migration of ${where} is unfinished, and no process runs it. Nothing was stored. On the machine that started it, run "cairn migrate" for this database to finish it, or "cairn migrate --rollback" to undo it ("cairn doctor" there shows the exact command).`,
    { cause, details: { where, migrating: true, abandoned: true }, retryAfterMs: ABANDONED_RETRY_MS },
  );
}

/** Returns whether a migration of this database was abandoned, so that waiting does not help. */
export function isAbandoned(error: unknown): boolean {
  return error instanceof CairnError && error.details?.abandoned === true;
}

/** Returns whether the call failed because its database is being migrated or was migrated. Nothing was stored; it may be repeated. */
export function isMigrating(error: unknown): boolean {
  return error instanceof CairnError && error.details?.migrating === true;
}

/** The only schema version in a tombstone: the PostgreSQL schema that remains after a migration back to SQLite. */
export const TOMBSTONE_VERSION = 1_000_000;

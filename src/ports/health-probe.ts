import type { DatabaseName } from "../model/backup.ts";
import type { DatabaseSize, SystemMeasures } from "../model/doctor.ts";
import type { SchemaState } from "../model/schema.ts";

export interface ProbedDatabase extends DatabaseSize {
  readonly schema: SchemaState | "unknown";
  /** Why the database could not be opened. */
  readonly problem?: string | undefined;
  /** A copy of its content, made when its file was deleted while in use. */
  readonly rescued?: string | undefined;
  /** The measurements for the migration triggers; only for a system in a SQLite file. */
  readonly activity?: Pick<SystemMeasures, "processes" | "commitsPerSecond" | "busiestComponent" | "windowSeconds"> | undefined;
  /** The database itself refuses writes, because a migration paused it. */
  readonly fenced?: boolean | undefined;
  /** Snapshots of a system that were started long ago and never completed. */
  readonly halfSnapshots: readonly string[];
}

/** An unfinished migration between SQLite and PostgreSQL. */
export interface UnfinishedMigration extends DatabaseName {
  /** The PostgreSQL schema at the other end; absent when the record of the migration is gone. */
  readonly where?: string | undefined;
  readonly direction?: "up" | "down" | undefined;
  readonly startedAt?: string | undefined;
  /** A live process is working on it. */
  readonly running: boolean;
  /** The migration was started from another machine, which alone can finish it. */
  readonly elsewhere?: boolean | undefined;
}

export interface DiskRoom {
  readonly path: string;
  readonly freeBytes: number;
}

/** A file that nothing uses, and its origin. */
export interface Leftover {
  readonly path: string;
  readonly reason: string;
}

/** Inspects databases read-only, in any state. */
export interface HealthProbe {
  /** Returns the name and version of the database engine. */
  engine(): Promise<string>;
  databases(windowSeconds: number): Promise<readonly ProbedDatabase[]>;
  /** Returns only the databases of systems; cheap enough for polling. */
  systems(windowSeconds: number): Promise<readonly ProbedDatabase[]>;
  /** Reads a whole database and returns its problems. */
  check(database: ProbedDatabase): Promise<readonly string[]>;
  /** Returns the databases that were migrated to PostgreSQL. */
  migrated(): Promise<readonly DatabaseName[]>;
  /** Returns the unfinished migrations of these databases, and of databases whose file is missing. */
  unfinishedMigrations(databases: readonly ProbedDatabase[]): Promise<readonly UnfinishedMigration[]>;
  disks(): Promise<readonly DiskRoom[]>;
  /** Returns unused files next to these databases. */
  leftovers(databases: readonly ProbedDatabase[]): Promise<readonly Leftover[]>;
}

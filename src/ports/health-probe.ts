import type { DatabaseName } from "../model/backup.ts";
import type { DatabaseSize, SystemMeasures } from "../model/doctor.ts";
import type { SchemaState } from "../model/schema.ts";

export interface ProbedDatabase extends DatabaseSize {
  readonly schema: SchemaState | "unknown";
  /** Why it could not even be opened. */
  readonly problem?: string | undefined;
  /** A copy of its content, made when its file was deleted while in use. */
  readonly rescued?: string | undefined;
  /** Only of a system that is a file: what its triggers are judged by. */
  readonly activity?: Pick<SystemMeasures, "processes" | "commitsPerSecond" | "busiestComponent" | "windowSeconds"> | undefined;
  /** The database itself refuses writes, because a migration paused it. */
  readonly fenced?: boolean | undefined;
  /** Snapshots of a system that were begun long ago and never completed. */
  readonly halfSnapshots: readonly string[];
}

/** A migration between SQLite and PostgreSQL that has not reached its end. */
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

/** A file that nothing uses, and how it came to be. */
export interface Leftover {
  readonly path: string;
  readonly reason: string;
}

/** Looks at databases from outside, whatever state they are in, and changes nothing. */
export interface HealthProbe {
  /** Name and version of the database engine. */
  engine(): Promise<string>;
  databases(windowSeconds: number): Promise<readonly ProbedDatabase[]>;
  /** Only those of systems: this is asked often. */
  systems(windowSeconds: number): Promise<readonly ProbedDatabase[]>;
  /** Reads a whole database and says what is wrong with it. */
  check(database: ProbedDatabase): Promise<readonly string[]>;
  /** Databases that belong here and are on PostgreSQL. */
  migrated(): Promise<readonly DatabaseName[]>;
  /** Of these databases, and of those whose file is gone. */
  unfinishedMigrations(databases: readonly ProbedDatabase[]): Promise<readonly UnfinishedMigration[]>;
  disks(): Promise<readonly DiskRoom[]>;
  /** Among these databases. */
  leftovers(databases: readonly ProbedDatabase[]): Promise<readonly Leftover[]>;
}

import type { RecordedSchema } from "./schema.ts";

/** The kinds of databases. `code` is the code index of a project, which SQLite keeps in a file of its own. */
export const DATABASE_KINDS = ["project", "code", "shared", "runs", "system"] as const;
export type DatabaseKind = (typeof DATABASE_KINDS)[number];

/** One database of Cairn: a project's and its code index by the project's path, a system's by its id; `shared` and `runs` exist once. */
export interface DatabaseName {
  readonly kind: DatabaseKind;
  readonly id: string;
}

/** One database by its name, or all. */
export type DatabaseSelection = DatabaseName | "all";

/** Row count and hash of one table, computed from typed values in table order. */
export interface TableFacts {
  readonly name: string;
  readonly rows: number;
  readonly sha256: string;
}

/** One database in a backup. */
export interface BackupEntry extends DatabaseName {
  /** Name of the file next to the manifest. */
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  /** The recorded schema versions. */
  readonly schema: readonly RecordedSchema[];
  readonly tables: readonly TableFacts[];
}

/** A database that could not be backed up, and why. The other databases are not affected. */
export interface BackupFailure extends DatabaseName {
  readonly reason: string;
}

/** The content of a complete backup. The manifest is written after all copies. */
export interface BackupManifest {
  readonly id: string;
  readonly createdAt: string;
  readonly versions: { readonly cairn: string; readonly node: string; readonly sqlite: string };
  readonly databases: readonly BackupEntry[];
  readonly failed: readonly BackupFailure[];
}

/** A complete backup in its folder. */
export interface Backup extends BackupManifest {
  /** The folder of the backup. */
  readonly location: string;
  /** The databases on PostgreSQL, which a backup of all databases does not contain. */
  readonly onPostgres?: readonly DatabaseName[] | undefined;
}

/** The verification levels of a backup. Each level includes the ones before. */
export const VERIFY_LEVELS = ["count", "integrity", "checksum", "full"] as const;
/** How thoroughly a backup is verified; each level includes the ones before. */
export type VerifyLevel = (typeof VERIFY_LEVELS)[number];

export function includes(level: VerifyLevel, other: VerifyLevel): boolean {
  return VERIFY_LEVELS.indexOf(level) >= VERIFY_LEVELS.indexOf(other);
}

export interface VerifiedDatabase extends DatabaseName {
  readonly file: string;
  readonly rows: number;
  readonly problems: readonly string[];
  /** Records that were damaged when the backup was made. The backup can still be restored. */
  readonly damaged: readonly string[];
}

/** The result of verifying a backup. */
export interface BackupVerification {
  readonly id: string;
  readonly location: string;
  readonly level: VerifyLevel;
  readonly sound: boolean;
  readonly databases: readonly VerifiedDatabase[];
}

/** A database that a restore put in place. */
export interface RestoredDatabase extends DatabaseName {
  readonly location: string;
  /** The new location of the database that was replaced. */
  readonly replaced?: string | undefined;
  /** Of a project: whether it has a code index now. Without one, an index run builds it again. */
  readonly hasCodeIndex?: boolean | undefined;
}

export function sameDatabase(a: DatabaseName, b: DatabaseName): boolean {
  return a.kind === b.kind && a.id === b.id;
}

/** Returns a label for messages: `project /home/me/app`. */
export function databaseLabel({ kind, id }: DatabaseName): string {
  if (kind === "code") return `code index of ${id}`;
  return kind === "project" || kind === "system" ? `${kind} ${id}` : kind;
}

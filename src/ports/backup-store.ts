import type { Backup, BackupVerification, DatabaseName, DatabaseSelection, RestoredDatabase, VerifyLevel } from "../model/backup.ts";

export interface LongCall {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number | undefined, message?: string) => void) | undefined;
}

/** An incomplete or unreadable backup folder; never restored. */
export interface UnusableBackup {
  readonly location: string;
  readonly reason: string;
  /** A process is still writing it. */
  readonly running: boolean;
}

/** Backs up SQLite databases to one folder. A backup is complete or absent. */
export interface BackupStore {
  /**
   * Copies databases while they are in use; each copy is a consistent snapshot and is verified after it was written. Code indexes are
   * derived data and are excluded unless `withCode` is set.
   */
  create(which: DatabaseSelection, call?: LongCall & { readonly withCode?: boolean | undefined }): Promise<Backup>;
  /** Returns complete backups, newest first. */
  list(): Promise<readonly Backup[]>;
  /** Returns one backup; raises `not_found`. */
  get(id: string): Promise<Backup>;
  verify(id: string, level: VerifyLevel, call?: LongCall): Promise<BackupVerification>;
  /** Verifies the backup, then replaces each database atomically. An existing database is refused, or set aside with `overwrite`. */
  restore(
    id: string,
    which: readonly DatabaseName[],
    options: { readonly overwrite: boolean } & LongCall,
  ): Promise<readonly RestoredDatabase[]>;
  /** Measures how many seconds a restore of this database takes, on a temporary copy. */
  trialRestore(which: DatabaseName, call?: LongCall): Promise<number>;
  /** Returns incomplete and unreadable backup folders. */
  unusable(): Promise<readonly UnusableBackup[]>;
}

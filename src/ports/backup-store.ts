import type { Backup, BackupVerification, DatabaseName, DatabaseSelection, RestoredDatabase, VerifyLevel } from "../model/backup.ts";

export interface LongCall {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number | undefined, message?: string) => void) | undefined;
}

/** What lies among the backups and is none: begun and never finished, or without its manifest. It is never taken for a whole one. */
export interface UnusableBackup {
  readonly location: string;
  readonly reason: string;
  /** A process is still writing it. */
  readonly running: boolean;
}

/** Backups of databases that are files, in one folder. A backup is there whole or not at all. */
export interface BackupStore {
  /**
   * Copies while others read and write; each copy is one moment of its database and is verified after it was written. The code indexes of
   * the projects are left out unless `withCode` asks for them: they are derived.
   */
  create(which: DatabaseSelection, call?: LongCall & { readonly withCode?: boolean | undefined }): Promise<Backup>;
  /** Whole backups, newest first. */
  list(): Promise<readonly Backup[]>;
  /** Raises `not_found`. */
  get(id: string): Promise<Backup>;
  verify(id: string, level: VerifyLevel, call?: LongCall): Promise<BackupVerification>;
  /** Verifies first, then puts each in its place in one step. An existing database is refused, or kept aside with `overwrite`. */
  restore(
    id: string,
    which: readonly DatabaseName[],
    options: { readonly overwrite: boolean } & LongCall,
  ): Promise<readonly RestoredDatabase[]>;
  /** How many seconds it takes to bring this database back from a backup: measured on a copy that is removed again. */
  trialRestore(which: DatabaseName, call?: LongCall): Promise<number>;
  unusable(): Promise<readonly UnusableBackup[]>;
}

import type { Backup, BackupVerification, DatabaseName, DatabaseSelection, RestoredDatabase, VerifyLevel } from "../model/backup.ts";
import { databaseLabel, sameDatabase } from "../model/backup.ts";
import { CairnError } from "../model/errors.ts";
import type { BackupStore, LongCall } from "../ports/backup-store.ts";

/** Selects the backup and the databases to restore. */
export interface RestoreBackup extends LongCall {
  /** Default: the newest backup with the selected databases. */
  readonly id?: string | undefined;
  readonly which: DatabaseSelection;
  /** Replaces an existing database, which is kept. */
  readonly overwrite?: boolean | undefined;
}

/** Creates, verifies and restores copies of databases. */
export interface Backups {
  /** Copies the databases while they are in use and verifies the copies. The backup is complete or absent. */
  create(which: DatabaseSelection, call?: LongCall & { readonly withCode?: boolean | undefined }): Promise<Backup>;
  /** Returns complete backups, newest first. */
  list(): Promise<readonly Backup[]>;
  verify(input: { readonly id?: string | undefined; readonly level?: VerifyLevel | undefined } & LongCall): Promise<BackupVerification>;
  /** Raises `conflict` while other processes have the database open, because their writes would be lost. */
  restore(input: RestoreBackup): Promise<{ readonly id: string; readonly databases: readonly RestoredDatabase[] }>;
}

const isCodeIndexOf = (one: DatabaseName, { kind, id }: DatabaseName) => kind === "project" && one.kind === "code" && one.id === id;

export interface BackupDeps {
  /** Absent where databases are not files. */
  readonly store?: BackupStore | undefined;
  readonly storage: "sqlite" | "memory" | "postgres" | "own";
}

const NO_BACKUPS: Record<BackupDeps["storage"], string> = {
  sqlite: "This process has no folder for backups.",
  memory: "Storage in memory cannot be backed up. Use the storage sqlite.",
  postgres:
    "These databases are in PostgreSQL. Back up with `pg_dump --format=custom` and restore with `pg_restore`; for point-in-time recovery, archive the WAL (pg_basebackup).",
  own: "Cairn cannot back up a storage of your own. Use the backup that it provides.",
};

export function backups({ store, storage }: BackupDeps): Backups {
  const files = (): BackupStore => {
    if (store) return store;
    throw new CairnError("conflict", NO_BACKUPS[storage]);
  };

  async function newest(holds: (backup: Backup) => boolean, what: string): Promise<Backup> {
    const found = (await files().list()).find(holds);
    if (!found) throw new CairnError("not_found", `There is no backup${what}. Create one with: cairn backup`);
    return found;
  }

  return {
    create: async (which, call) => files().create(which, call),
    list: async () => files().list(),
    async verify({ id, level = "checksum", ...call }) {
      return files().verify(id ?? (await newest(() => true, "")).id, level, call);
    },
    async restore({ id, which, overwrite = false, ...call }) {
      const holds = ({ databases }: Backup) => which === "all" || databases.some((one) => sameDatabase(one, which));
      const backup = await (id === undefined ? newest(holds, which === "all" ? "" : ` of the ${databaseLabel(which)}`) : files().get(id));
      const belongs = (one: DatabaseName) => which === "all" || sameDatabase(one, which) || isCodeIndexOf(one, which);
      const names: readonly DatabaseName[] = backup.databases.filter(belongs);
      if (which !== "all" && names.length === 0)
        throw new CairnError("not_found", `The backup ${backup.id} does not hold the ${databaseLabel(which)}.`);
      return { id: backup.id, databases: await files().restore(backup.id, names, { overwrite, ...call }) };
    },
  };
}

import type { Backup, BackupVerification, DatabaseName, DatabaseSelection, RestoredDatabase, VerifyLevel } from "../model/backup.ts";
import { databaseLabel, sameDatabase } from "../model/backup.ts";
import { CairnError } from "../model/errors.ts";
import type { BackupStore, LongCall } from "../ports/backup-store.ts";

/** Selects the backup and the databases to restore. */
export interface RestoreBackup extends LongCall {
  /** Default: the newest backup that holds what is asked for. */
  readonly id?: string | undefined;
  readonly which: DatabaseSelection;
  /** Put it in the place of a database that is there; that one is kept aside. */
  readonly overwrite?: boolean | undefined;
}

/** Copies of databases that can be trusted, and the way back from them. */
export interface Backups {
  /** Copies the databases while others use them, and verifies the copies. The backup is there whole or not at all. */
  create(which: DatabaseSelection, call?: LongCall & { readonly withCode?: boolean | undefined }): Promise<Backup>;
  /** Whole backups, newest first. */
  list(): Promise<readonly Backup[]>;
  verify(input: { readonly id?: string | undefined; readonly level?: VerifyLevel | undefined } & LongCall): Promise<BackupVerification>;
  /** Refused while other processes have the database open, because what they write in that moment would be lost. */
  restore(input: RestoreBackup): Promise<{ readonly id: string; readonly databases: readonly RestoredDatabase[] }>;
}

const isCodeIndexOf = (one: DatabaseName, { kind, id }: DatabaseName) => kind === "project" && one.kind === "code" && one.id === id;

export interface BackupDeps {
  /** Absent where databases are no files. */
  readonly store?: BackupStore | undefined;
  readonly storage: "sqlite" | "memory" | "postgres" | "own";
}

const NO_BACKUPS: Record<BackupDeps["storage"], string> = {
  sqlite: "This process has no folder for backups.",
  memory: "What is kept in memory cannot be backed up. Use the storage sqlite.",
  postgres:
    "These databases are in PostgreSQL, which has its own way: back up with `pg_dump --format=custom`, restore with `pg_restore`; for any point in time, archive its WAL (pg_basebackup).",
  own: "Cairn cannot back up a storage of your own. Use the backup that it provides.",
};

export function backups({ store, storage }: BackupDeps): Backups {
  const files = (): BackupStore => {
    if (store) return store;
    throw new CairnError("conflict", NO_BACKUPS[storage]);
  };

  async function newest(holds: (backup: Backup) => boolean, what: string): Promise<Backup> {
    const found = (await files().list()).find(holds);
    if (!found) throw new CairnError("not_found", `There is no backup${what}. Make one with: cairn backup`);
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

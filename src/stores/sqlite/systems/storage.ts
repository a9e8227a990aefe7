import { existsSync, lstatSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { CairnError } from "../../../model/errors.ts";
import { assertSystemId, byBytes, wrongOwnerError } from "../../../model/system-rules.ts";
import type { SystemStorage } from "../../../ports/system-store.ts";
import { sqliteDatabases } from "../driver/databases.ts";
import type { SqliteDatabase } from "../driver/driver.ts";
import { probeWrite } from "../driver/write-probe.ts";
import { hasMigrationRecord } from "../migration/record.ts";
import { systemSchema } from "./schema.ts";
import { sqliteSystemStore } from "./store.ts";

export interface SqliteSystemStorageOptions {
  /** The folder that holds `checkpoints/<system id>.db`. */
  readonly stateDir: string;
  /** Refuses symbolic links: the folder may have come with a repository, and its links would lead to files elsewhere. */
  readonly refuseLinks?: boolean | undefined;
}

export interface SqliteSystemStorage extends SystemStorage {
  /** Closes this system's file in this process, if it is open. The next use opens the file that exists then. */
  release(systemId: string): void;
  /** Raises `unavailable` when the folder of the systems exists and cannot be written. */
  check(): Promise<void>;
}

/** Systems as SQLite files, one each, that several processes may share. */
export function sqliteSystemStorage({ stateDir, refuseLinks = false }: SqliteSystemStorageOptions): SqliteSystemStorage {
  const folder = join(stateDir, "checkpoints");
  const databases = sqliteDatabases();
  const pathOf = (systemId: string) => join(folder, `${systemId}.db`);
  const handleOf = (systemId: string) => {
    const path = pathOf(systemId);
    if (refuseLinks) for (const one of [stateDir, folder, path]) assertNoLink(one);
    return databases.handle({ path, schema: systemSchema });
  };

  return {
    async create(systemId) {
      assertSystemId(systemId);
      const handle = handleOf(systemId);
      await claim(await handle(), systemId);
      return sqliteSystemStore(systemId, handle);
    },

    async find(systemId) {
      assertSystemId(systemId);
      const path = pathOf(systemId);
      if (!existsSync(path) && !hasMigrationRecord(path) && !databases.isLost(path)) return undefined;
      const handle = handleOf(systemId);
      const owner = ownerOf(await handle());
      if (owner === undefined) return undefined; // created by a process that died before its first write
      if (owner !== systemId) throw wrongOwnerError(path, owner, systemId);
      return sqliteSystemStore(systemId, handle);
    },

    async systems() {
      if (!existsSync(folder)) return [];
      const found: string[] = [];
      for (const file of readdirSync(folder)) {
        if (!/^[A-Za-z0-9][A-Za-z0-9._-]*\.db$/.test(file)) continue;
        const systemId = file.slice(0, -".db".length);
        try {
          if (ownerOf(await handleOf(systemId)()) === systemId) found.push(systemId);
        } catch (error) {
          if (!(error instanceof CairnError && (error.details?.damaged || error.details?.deleted))) throw error;
          found.push(systemId); // it exists; calls for it report the damage
        }
      }
      return found.sort(byBytes);
    },

    location: pathOf,
    check: () => probeWrite(folder),
    release: (systemId) => databases.release(pathOf(systemId)),

    async sizeBytes(systemId) {
      assertSystemId(systemId);
      // The newest writes are still in the write-ahead log.
      const sizes = ["", "-wal"].map((end) => statSync(pathOf(systemId) + end, { throwIfNoEntry: false })?.size);
      return sizes[0] === undefined ? undefined : sizes[0] + (sizes[1] ?? 0);
    },

    async close() {
      await databases.close();
    },
  };
}

function assertNoLink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new CairnError(
      "forbidden",
      `${path} is a symbolic link in a folder that you did not choose, so it is not followed. If it is yours, set state_dir (CAIRN_STATE_DIR).`,
      { details: { path } },
    );
}

function ownerOf(database: SqliteDatabase): string | undefined {
  return database.one<[value: string]>("SELECT value FROM metadata WHERE key = 'system_id'")?.[0];
}

/** Records the owner of a new file. On a case-insensitive file system, the path may hold the file of another system. */
async function claim(database: SqliteDatabase, systemId: string): Promise<void> {
  let owner = ownerOf(database);
  if (owner === undefined) {
    await database.write((tx) => tx.run("INSERT INTO metadata (key, value) VALUES ('system_id', ?) ON CONFLICT DO NOTHING", systemId));
    owner = ownerOf(database);
  }
  if (owner !== systemId) throw wrongOwnerError(database.path, owner, systemId);
}

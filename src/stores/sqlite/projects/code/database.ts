import { existsSync, rmSync } from "node:fs";
import type { Clock } from "../../../../model/ids.ts";
import { migratingError } from "../../../../model/migration.ts";
import { checkFile } from "../../driver/damage.ts";
import type { DatabaseHandle, SqliteDatabases } from "../../driver/databases.ts";
import { inodeOf, openSqlite, type SqliteDatabase } from "../../driver/driver.ts";
import { foreignProgramsIn } from "../../driver/own-schema.ts";
import { migratedTo, migrationRecordPath } from "../../migration/record.ts";
import { claim } from "../owner.ts";
import { codeFileOf } from "./code-file.ts";
import { codeSchema } from "./schema.ts";
import { removeSeeds } from "./seed.ts";

export interface CodeDatabaseOptions {
  readonly projectId: string;
  /** The project's own database, next to which the code index is. */
  readonly projectFile: string;
  readonly now: Clock;
  readonly onNotice?: ((message: string) => void) | undefined;
}

/** The code index of a project: a file of its own, so that indexing never holds the lock that checkpoints are saved under. */
export interface CodeDatabase {
  readonly path: string;
  /** Opens the file. Before the first index run there is none: reads then find an empty index, and the first write creates the file. */
  readonly handle: DatabaseHandle;
  /** Opens the file for a change. Raises the migration's error while the project is being migrated: the index does not follow it. */
  readonly writable: DatabaseHandle;
  /** Checks the whole file and deletes it if it is damaged. Returns whether it was. */
  dropDamaged(): Promise<boolean>;
}

export function codeDatabase(databases: SqliteDatabases, { projectId, projectFile, now, onNotice }: CodeDatabaseOptions): CodeDatabase {
  const path = codeFileOf(projectFile);
  const migrationRecord = migrationRecordPath(projectFile);
  /** Generations of a rebuilt index begin above all earlier ones: a vector made for a dropped chunk must not be stored for a new one. */
  let firstGeneration = 0;

  async function prepare(database: SqliteDatabase): Promise<void> {
    await claim(database, projectId, now);
    if (firstGeneration > 0)
      await database.write((tx) => tx.run("UPDATE code_generation SET last = max(last, ?) WHERE id = 1", firstGeneration));
  }
  const file = databases.handle({ path, schema: codeSchema, onNotice, prepare });

  const handle: DatabaseHandle = async () => {
    if (existsSync(migrationRecord) && (!existsSync(projectFile) || migratedTo(projectFile) !== undefined))
      throw migratingError(projectFile);
    return existsSync(path) ? file() : absentIndex(path, file);
  };

  return {
    path,
    handle,
    async writable() {
      if (existsSync(migrationRecord)) throw migratingError(projectFile);
      return handle();
    },
    async dropDamaged() {
      const inode = inodeOf(path);
      if (inode === undefined || (await findCodeProblems(path)).length === 0) return false;
      databases.release(path);
      if (inodeOf(path) !== inode) return false; // another process was faster, and has begun a new file
      for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
      firstGeneration = Date.now();
      onNotice?.(`The code index ${path} was damaged and has been deleted. Build it again with: cairn code index`);
      return true;
    },
  };
}

/** Checks the whole file of a code index and returns its problems. */
export async function findCodeProblems(path: string): Promise<readonly string[]> {
  const { problems } = await checkFile(path);
  return problems.length > 0 ? problems : foreignProgramsIn(path, codeSchema);
}

/** Reads an empty index in memory, so that reading creates no file. The first write creates the file, which is read from then on. */
async function absentIndex(path: string, file: DatabaseHandle): Promise<SqliteDatabase> {
  emptyIndex ??= openSqlite({ path: ":memory:", schema: codeSchema });
  let current = await emptyIndex;
  return {
    path,
    idle: true,
    read: (work) => current.read(work),
    one: (sql, ...params) => current.one(sql, ...params),
    async write(work) {
      removeSeeds(path);
      current = await file();
      return current.write(work);
    },
    copyTo: (target) => current.copyTo(target),
    eraseLog: async () => {},
    eraseLogLater() {},
    close() {},
  };
}

let emptyIndex: Promise<SqliteDatabase> | undefined;

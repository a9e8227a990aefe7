import { existsSync, rmSync } from "node:fs";
import { migratingError } from "../../../../model/migration.ts";
import type { Clock } from "../../../../ports/clock.ts";
import { checkFile } from "../../driver/damage.ts";
import type { DatabaseHandle, SqliteDatabases } from "../../driver/databases.ts";
import { inodeOf, openSqlite, type SqliteDatabase } from "../../driver/driver.ts";
import { hasMigrationRecord, migratedTo } from "../../migration/record.ts";
import { claim } from "../owner.ts";
import { codeFileOf } from "./code-file.ts";
import { codeSchema } from "./schema.ts";

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
  /** Checks the whole file and deletes it if it is damaged. Returns whether it was. */
  dropDamaged(): Promise<boolean>;
}

export function codeDatabase(databases: SqliteDatabases, { projectId, projectFile, now, onNotice }: CodeDatabaseOptions): CodeDatabase {
  const path = codeFileOf(projectFile);
  /** Generations of a rebuilt index begin above all earlier ones: a vector made for a dropped chunk must not be stored for a new one. */
  let firstGeneration = 0;

  async function prepare(database: SqliteDatabase): Promise<void> {
    await claim(database, projectId, now);
    if (firstGeneration > 0)
      await database.write((tx) => tx.run("UPDATE code_generation SET last = max(last, ?) WHERE id = 1", firstGeneration));
  }
  const file = databases.handle({ path, schema: codeSchema, onNotice, prepare });

  return {
    path,
    async handle() {
      if (hasMigrationRecord(projectFile) && (!existsSync(projectFile) || migratedTo(projectFile) !== undefined))
        throw migratingError(projectFile);
      return existsSync(path) ? file() : absentIndex(path, file);
    },
    async dropDamaged() {
      const inode = inodeOf(path);
      if (inode === undefined || (await checkFile(path)).problems.length === 0) return false;
      databases.release(path);
      if (inodeOf(path) !== inode) return false; // another process was faster, and has begun a new file
      for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
      firstGeneration = Date.now();
      onNotice?.(`The code index ${path} was damaged and has been deleted. Build it again with: cairn code index`);
      return true;
    },
  };
}

/** Reads an empty index in memory, so that reading creates no file. Writes go to the file, which the first of them creates. */
async function absentIndex(path: string, file: DatabaseHandle): Promise<SqliteDatabase> {
  emptyIndex ??= openSqlite({ path: ":memory:", schema: codeSchema });
  return {
    ...(await emptyIndex),
    path,
    write: async (work) => (await file()).write(work),
    eraseLog: async () => {},
    eraseLogLater() {},
    close() {},
  };
}

let emptyIndex: Promise<SqliteDatabase> | undefined;

import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { RecordRepair, RecordReport } from "../../model/damaged-record.ts";
import { CairnError } from "../../model/errors.ts";
import { projectDatabaseName } from "../../model/ids.ts";
import type { Storage } from "../../ports/storage.ts";
import { outcomeOfThread } from "../../scheduling/run-in-thread.ts";
import { checkFile, quarantineFile } from "./driver/damage.ts";
import { type DatabaseHandle, sqliteDatabases } from "./driver/databases.ts";
import { deletionOf, describeDeletion, forgetDeletion } from "./driver/deleted-file.ts";
import { foreignProgramsIn } from "./driver/own-schema.ts";
import { probeWrite } from "./driver/write-probe.ts";
import { hasMigrationRecord } from "./migration/record.ts";
import { assertOwner, claim, ownerOf, sqliteProject } from "./projects/project.ts";
import { exportDatabase } from "./projects/project-files.ts";
import { projectMigrations } from "./projects/project-schema.ts";
import { vectorSearcher } from "./vectors/searcher.ts";

export interface SqliteStorageOptions {
  /** The folder that holds `projects/project_<hash>.db` and `projects/shared.db`. */
  readonly dataDir: string;
  readonly now: () => string;
  /** Told in words for a person when something was damaged and put right. */
  readonly onNotice?: ((message: string) => void) | undefined;
}

export interface SqliteStorage extends Storage {
  /** Closes this file in this process, if it is open. The next use opens whatever is there then. */
  release(path: string): void;
}

/** Leaves out keys, which mean nothing outside the file. */
function withoutKeys({ damaged, stale, quarantined }: RecordReport): RecordReport {
  return { damaged: damaged.map(({ collection, id, reason }) => ({ collection, id, reason })), stale, quarantined };
}

/** Projects as SQLite files, one each. Copying a project's file moves the project. */
export function sqliteStorage({ dataDir, now, onNotice }: SqliteStorageOptions): SqliteStorage {
  const folder = join(dataDir, "projects");
  const databases = sqliteDatabases();
  const pathOf = (projectId: string) => join(folder, `${projectDatabaseName(projectId)}.db`);

  const stores = (projectId: string, handle: DatabaseHandle) => sqliteProject(projectId, pathOf(projectId), handle, onNotice);

  const release = (path: string) => {
    databases.release(path);
    vectorSearcher({ path }).close();
  };

  return {
    release,

    async create(projectId) {
      const handle = databases.handle({ path: pathOf(projectId), migrations: projectMigrations, onNotice });
      await claim(await handle(), projectId, now);
      return stores(projectId, handle);
    },

    async find(projectId) {
      const path = pathOf(projectId);
      if (!existsSync(path) && !hasMigrationRecord(path) && !databases.isLost(path)) return undefined;
      const handle = databases.handle({ path, migrations: projectMigrations, onNotice });
      const owner = ownerOf(await handle());
      if (owner === undefined) return undefined; // made by a process that died before it stored anything
      assertOwner(owner, projectId, path);
      return stores(projectId, handle);
    },

    async projects() {
      if (!existsSync(folder)) return [];
      const owners: string[] = [];
      for (const file of readdirSync(folder).sort()) {
        if (!/^project_[0-9a-f]{16}\.db$/.test(file)) continue;
        try {
          const owner = ownerOf(await databases.handle({ path: join(folder, file), migrations: projectMigrations, onNotice })());
          if (owner !== undefined) owners.push(owner);
        } catch (error) {
          // Whose a damaged file is cannot be told; the others must not suffer for it.
          if (!(error instanceof CairnError && (error.details?.damaged || error.details?.deleted))) throw error;
        }
      }
      return owners;
    },

    async sizeBytes(projectId) {
      // What was written last is still in the write-ahead log.
      const sizes = ["", "-wal"].map((end) => statSync(pathOf(projectId) + end, { throwIfNoEntry: false })?.size);
      return sizes[0] === undefined ? undefined : sizes[0] + (sizes[1] ?? 0);
    },

    async checkProject(projectId) {
      const location = pathOf(projectId);
      const none = { problems: [], damaged: [], stale: [], quarantined: 0 };
      const deleted = deletionOf(location);
      if (deleted) return { projectPath: projectId, location, state: "damaged", ...none, problems: [describeDeletion(deleted)] };
      if (!existsSync(location)) return { projectPath: projectId, location, state: "absent", ...none };
      const { problems: own, ...found } = await checkFile(location);
      const problems = own.length > 0 ? own : await foreignProgramsIn(location, projectMigrations);
      const sound = problems.length + found.damaged.length + found.stale.length === 0;
      return { projectPath: projectId, location, state: sound ? "sound" : "damaged", problems, ...withoutKeys(found) };
    },

    async checkRecords(projectId) {
      return existsSync(pathOf(projectId)) ? withoutKeys(await checkFile(pathOf(projectId))) : { damaged: [], stale: [], quarantined: 0 };
    },

    async repairRecords(projectId) {
      const path = pathOf(projectId);
      if (!existsSync(path)) return { quarantined: [], rebuilt: [] };
      return outcomeOfThread<RecordRepair>("stores/sqlite/projects/repair-worker.js", { path, now: now() });
    },

    async quarantine(projectId, problems) {
      const location = pathOf(projectId);
      const deleted = deletionOf(location) !== undefined;
      if (!existsSync(location) && !deleted)
        throw new CairnError("not_found", `There is no database ${location}, so nothing was set aside.`);
      release(location);
      const quarantine = { path: location, folder: join(dataDir, "quarantine"), at: now(), projectPath: projectId, problems };
      const movedTo = quarantineFile(quarantine);
      if (deleted) forgetDeletion(location); // the report has it, and the next write starts a new database
      return { projectPath: projectId, location, movedTo, problems };
    },

    async copyTo(projectId, file, { signal } = {}) {
      const location = pathOf(projectId);
      if (!existsSync(location))
        throw new CairnError("not_found", "Nothing was ever stored for this project, so there is nothing to copy.");
      await exportDatabase(location, file, signal);
      return true;
    },

    async check() {
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
      } catch (cause) {
        throw new CairnError(
          "unavailable",
          `The data folder ${folder} cannot be written. Check its permissions, or set another with CAIRN_DATA_DIR.`,
          { cause },
        );
      }
      for (const place of [dataDir, folder]) await probeWrite(place);
    },

    async close() {
      await databases.close();
    },
  };
}

import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "../../files/make-folder.ts";
import type { RecordRepair, RecordReport } from "../../model/damaged-record.ts";
import type { DatabaseReport } from "../../model/database-report.ts";
import { asCairnError, CairnError } from "../../model/errors.ts";
import { projectDatabaseName } from "../../model/ids.ts";
import { NO_TIME } from "../../model/no-time.ts";
import type { ProjectEntry, UnreadProject } from "../../ports/catalogue.ts";
import type { ProjectStore, Storage } from "../../ports/storage.ts";
import { forEachParallel } from "../../scheduling/for-each-parallel.ts";
import { runInThread } from "../../scheduling/run-in-thread.ts";
import { countProject } from "../rows/count-project.ts";
import { checkFile, quarantineFile, removeFiles } from "./driver/damage.ts";
import { sqliteDatabases } from "./driver/databases.ts";
import { deletionOf, describeDeletion, forgetDeletion } from "./driver/deleted-file.ts";
import { foreignProgramsIn } from "./driver/own-schema.ts";
import { probeWrite } from "./driver/write-probe.ts";
import { hasMigrationRecord } from "./migration/record.ts";
import { codeFileOf } from "./projects/code/code-file.ts";
import { codeDatabase, findCodeProblems } from "./projects/code/database.ts";
import { removeAllSeeds } from "./projects/code/seed.ts";
import { assertOwner, claim, ownerOf } from "./projects/owner.ts";
import { releaseProject, type SqliteProject, sqliteProject } from "./projects/project.ts";
import { exportDatabase, ownerOfFile } from "./projects/project-files.ts";
import { projectSchema } from "./projects/project-schema.ts";

export interface SqliteStorageOptions {
  /** The folder that holds `projects/project_<hash>.db` with its code index `project_<hash>.code.db`, and `projects/shared.db`. */
  readonly dataDir: string;
  readonly now: () => string;
  /** Receives a message for the user when something was damaged and repaired. */
  readonly onNotice?: ((message: string) => void) | undefined;
}

export interface SqliteStorage extends Storage {
  /** Closes the files of the project with this database in this process, if they are open. The next use opens the files that exist then. */
  release(path: string): void;
}

/** Projects whose stores are kept. More than one process uses at a time; those of the others are built again. */
const KNOWN_MAX = 10_000;

/** Projects that a list opens at the same time. They share the disk and the budget of open files. */
const OPEN_AT_ONCE = 4;

/** Leaves out keys, which mean nothing outside the file. */
function withoutKeys({ damaged, stale, quarantined }: RecordReport): RecordReport {
  return { damaged: damaged.map(({ collection, id, reason }) => ({ collection, id, reason })), stale, quarantined };
}

/** Checks a project's code index; `undefined` if there is none. */
async function checkCodeIndex(location: string): Promise<DatabaseReport["codeIndex"]> {
  if (!existsSync(location)) return undefined;
  return unlessRemoved(location, async () => ({ location, problems: await findCodeProblems(location) }));
}

/** Reads a file that another call may delete or set aside meanwhile: then there is nothing to report. */
async function unlessRemoved<T>(location: string, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (existsSync(location)) throw error;
    return undefined;
  }
}

/** Projects as SQLite files: one each for checkpoints and knowledge, and one each for the code index. */
export function sqliteStorage({ dataDir, now, onNotice }: SqliteStorageOptions): SqliteStorage {
  const folder = join(dataDir, "projects");
  const databases = sqliteDatabases();
  const pathOf = (projectId: string) => join(folder, `${projectDatabaseName(projectId)}.db`);

  const handleOf = (path: string) => databases.handle({ path, schema: projectSchema, onNotice });
  const known = new Map<string, SqliteProject>();

  /** Returns the project's file and stores, built by its first call. They outlive an idle database, which the next call opens again. */
  function projectOf(projectId: string): SqliteProject {
    let project = known.get(projectId);
    if (!project) {
      project = sqliteProject(databases, { projectId, path: pathOf(projectId), now, onNotice });
      known.set(projectId, project);
      if (known.size > KNOWN_MAX) known.delete(known.keys().next().value!);
    }
    return project;
  }

  function release(path: string): void {
    for (const [projectId, project] of known) if (project.path === path) known.delete(projectId);
    releaseProject(databases, path);
  }

  async function find(projectId: string): Promise<ProjectStore | undefined> {
    const project = projectOf(projectId);
    const { path } = project;
    if (!existsSync(path) && !hasMigrationRecord(path) && !databases.isLost(path)) return undefined;
    const database = await project.handle();
    if (project.owned !== database) {
      const owner = ownerOf(database);
      if (owner === undefined) return undefined; // created by a process that died before its first write
      assertOwner(owner, projectId, path);
      project.owned = database;
    }
    return project.stores;
  }

  async function projects(): Promise<readonly string[]> {
    if (!existsSync(folder)) return [];
    const owners: string[] = [];
    for (const file of readdirSync(folder).sort()) {
      if (!/^project_[0-9a-f]{16}\.db$/.test(file)) continue;
      try {
        const owner = ownerOf(await handleOf(join(folder, file))());
        if (owner !== undefined) owners.push(owner);
      } catch (error) {
        // The owner of a damaged file is unknown; it must not affect the others.
        if (!(error instanceof CairnError && (error.details?.damaged || error.details?.deleted))) throw error;
      }
    }
    return owners;
  }

  return {
    release,

    async create(projectId) {
      const project = projectOf(projectId);
      const database = await project.handle();
      if (project.owned !== database) {
        await claim(database, projectId, now);
        project.owned = database;
      }
      return project.stores;
    },

    find,

    projects,

    async catalogue({ isWanted = () => true, signal } = {}) {
      const entries: ProjectEntry[] = [];
      const unread: UnreadProject[] = [];
      const late = await forEachParallel(
        (await projects()).filter(isWanted),
        { concurrency: OPEN_AT_ONCE, signal },
        async (projectPath) => {
          try {
            const project = await find(projectPath);
            if (project) entries.push(await countProject(project));
          } catch (error) {
            unread.push({ projectPath, reason: asCairnError(error).message });
          }
        },
      );
      return { projects: entries, unread: [...unread, ...late.map((projectPath) => ({ projectPath, reason: NO_TIME }))] };
    },

    async sizeBytes(projectId) {
      const path = pathOf(projectId);
      if (!existsSync(path)) return undefined;
      // The newest writes are still in the write-ahead logs.
      const files = [path, codeFileOf(path)].flatMap((file) => [file, `${file}-wal`]);
      return files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
    },

    async checkProject(projectId) {
      const location = pathOf(projectId);
      const none = { problems: [], damaged: [], stale: [], quarantined: 0 };
      const deleted = deletionOf(location);
      if (deleted) return { projectPath: projectId, location, state: "damaged", ...none, problems: [describeDeletion(deleted)] };
      if (!existsSync(location)) return { projectPath: projectId, location, state: "absent", ...none };
      const checked = await unlessRemoved(location, async () => {
        const { problems: own, ...found } = await checkFile(location);
        return { found, problems: own.length > 0 ? own : await foreignProgramsIn(location, projectSchema) };
      });
      if (!checked) return { projectPath: projectId, location, state: "absent", ...none };
      const { found, problems } = checked;
      const sound = problems.length + found.damaged.length + found.stale.length === 0;
      const codeIndex = await checkCodeIndex(codeFileOf(location));
      return {
        projectPath: projectId,
        location,
        state: sound ? "sound" : "damaged",
        problems,
        ...withoutKeys(found),
        ...(codeIndex && { codeIndex }),
      };
    },

    async checkRecords(projectId) {
      return existsSync(pathOf(projectId)) ? withoutKeys(await checkFile(pathOf(projectId))) : { damaged: [], stale: [], quarantined: 0 };
    },

    async repairRecords(projectId) {
      const path = pathOf(projectId);
      if (!existsSync(path)) return { quarantined: [], rebuilt: [] };
      const repair = await runInThread<RecordRepair>("stores/sqlite/projects/repair-worker.js", { path, now: now() });
      const dropped = await codeDatabase(databases, { projectId, projectFile: path, now, onNotice }).dropDamaged();
      return dropped ? { ...repair, rebuilt: [...repair.rebuilt, "code index (deleted; build it with cairn code index)"] } : repair;
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

    async remove(projectId) {
      const location = pathOf(projectId);
      if (!existsSync(location)) throw new CairnError("not_found", `There is no database ${location}.`);
      if (hasMigrationRecord(location))
        throw new CairnError("conflict", `${location} is being migrated. Finish or undo the migration, then delete the project.`);
      release(location);
      removeAllSeeds(codeFileOf(location));
      removeFiles([codeFileOf(location), location]);
    },

    async copyTo(projectId, file, { signal, withCode = false, withoutDeleted = false } = {}) {
      const location = pathOf(projectId);
      if (!existsSync(location))
        throw new CairnError("not_found", "Nothing was ever stored for this project, so there is nothing to copy.");
      const code = codeFileOf(location);
      if (withCode && existsSync(code)) await exportDatabase(code, codeFileOf(file), { signal });
      await exportDatabase(location, file, { signal, withoutDeleted });
      return true;
    },

    async importCode(projectId, file, { signal } = {}) {
      const [from, to] = [codeFileOf(file), codeFileOf(pathOf(projectId))];
      if (existsSync(to)) return false;
      if (!existsSync(from))
        throw new CairnError("not_found", `There is no code index ${from}. Export with --with-code, or run: cairn code index`);
      const copy = `${to}.importing`;
      rmSync(copy, { force: true });
      try {
        await exportDatabase(from, copy, { signal }); // the exported file itself is never opened for writing
        const owner = await ownerOfFile(copy, from);
        if (owner !== projectId)
          throw new CairnError("conflict", `${from} is the code index of ${owner}. Build that of ${projectId} with: cairn code index`);
        renameSync(copy, to);
      } finally {
        for (const end of ["", "-wal", "-shm"]) rmSync(copy + end, { force: true });
      }
      return true;
    },

    async check() {
      try {
        makeFolder(folder);
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

import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DatabaseName } from "../../../model/backup.ts";
import { projectDatabaseName, SHARED_DATABASE_NAME, SHARED_PROJECT_ID } from "../../../model/ids.ts";
import type { MigrationRecord } from "../../../model/migration.ts";
import type { DatabaseSchema } from "../../../model/schema.ts";
import { assertSystemId } from "../../../model/system-rules.ts";
import { isMigrated, listMigrationRecords, readMigrationRecord } from "../migration/record.ts";
import { codeFileOf } from "../projects/code/code-file.ts";
import { codeSchema } from "../projects/code/schema.ts";
import { projectSchema } from "../projects/project-schema.ts";
import { runSchema } from "../runs/schema.ts";
import { systemSchema } from "../systems/schema.ts";
import { deletionsIn, describeDeletion } from "./deleted-file.ts";
import { inFileThread } from "./file-thread.ts";

/** A database of Cairn on this disk. */
export interface DatabaseFile extends DatabaseName {
  readonly path: string;
  /** The folder above it. A file that is set aside stays on the same disk. */
  readonly root: string;
  readonly schema: DatabaseSchema;
  /** Why it could not be read. Its id is then the name of the file. */
  readonly problem?: string | undefined;
  /** A copy of its content, made when its file was deleted while in use. */
  readonly rescued?: string | undefined;
}

/** A database with a migration record, finished or not. Its file may exist or not. */
export interface RecordedMigration extends DatabaseName {
  readonly record: MigrationRecord;
  /** It is on PostgreSQL now. */
  readonly isMigrated: boolean;
}

export interface DatabaseFiles {
  /** Returns the file of a database, whether it exists or not. */
  fileOf(name: DatabaseName): DatabaseFile;
  /** Lists all databases, unreadable ones too, without the code indexes. */
  list(): Promise<readonly DatabaseFile[]>;
  /** Lists the code indexes of all projects, unreadable ones too. */
  codeIndexes(): Promise<readonly DatabaseFile[]>;
  systems(): readonly DatabaseFile[];
  recordedMigrations(): readonly RecordedMigration[];
}

export interface DatabaseFolders {
  /** Holds the projects and the runs. */
  readonly dataDir: string;
  /** Holds the systems. */
  readonly stateDir: string;
}

export function databaseFiles({ dataDir, stateDir }: DatabaseFolders): DatabaseFiles {
  const projects = join(dataDir, "projects");
  const systems = join(stateDir, "checkpoints");
  const system = (id: string): DatabaseFile => ({
    kind: "system",
    id,
    path: join(systems, `${id}.db`),
    root: stateDir,
    schema: systemSchema,
  });
  const inProjects = (name: string) => ({ path: join(projects, `${name}.db`), root: dataDir, schema: projectSchema });
  const shared = (): DatabaseFile => ({ kind: "shared", id: SHARED_PROJECT_ID, ...inProjects(SHARED_DATABASE_NAME) });
  const runs = (): DatabaseFile => ({ kind: "runs", id: "runs", path: join(dataDir, "runs.db"), root: dataDir, schema: runSchema });

  /** Databases whose file was deleted while in use. Another file may have taken the name. */
  const deletedFiles = (): DatabaseFile[] =>
    [...deletionsIn(projects), ...deletionsIn(dataDir), ...deletionsIn(systems)].map((note) => {
      const name = basename(note.path, ".db");
      const lost = { problem: describeDeletion(note), rescued: note.rescued ?? undefined };
      if (dirname(note.path) === systems) return { ...system(name), ...lost };
      if (note.path === runs().path) return { ...runs(), ...lost };
      if (name === SHARED_DATABASE_NAME) return { ...shared(), ...lost };
      return { kind: "project", id: note.owner ?? name, ...inProjects(name), ...lost };
    });

  const codeOf = (name: string) => ({ path: codeFileOf(join(projects, `${name}.db`)), root: dataDir, schema: codeSchema });

  async function ownedFiles(kind: "project" | "code", names: readonly string[], placeOf: typeof inProjects): Promise<DatabaseFile[]> {
    if (names.length === 0) return [];
    const paths = names.map((name) => placeOf(name).path);
    const probes = await inFileThread({ kind: "probe", paths, nowSeconds: 0, windowSeconds: 0 });
    return names.flatMap((name, index): DatabaseFile[] => {
      const probe = probes[index]!;
      if ("problem" in probe) return [{ kind, id: name, ...placeOf(name), problem: probe.problem }];
      if (probe.owner === undefined) return []; // created by a process that died before its first write
      return [{ kind, id: probe.owner, ...placeOf(name) }];
    });
  }
  const projectFiles = () => ownedFiles("project", namesIn(projects, /^(project_[0-9a-f]{16})\.db$/), inProjects);
  const systemFiles = () => namesIn(systems, /^([A-Za-z0-9][A-Za-z0-9._-]*)\.db$/).map(system);

  return {
    fileOf(name) {
      if (name.kind === "shared") return shared();
      if (name.kind === "runs") return runs();
      if (name.kind === "system") {
        assertSystemId(name.id); // the id becomes the name of a file
        return system(name.id);
      }
      return { ...name, ...(name.kind === "code" ? codeOf : inProjects)(projectDatabaseName(name.id)) };
    },
    async list() {
      const deleted = deletedFiles();
      const present = [...(await projectFiles()), ...[shared(), runs()].filter(({ path }) => existsSync(path)), ...systemFiles()];
      return [...present.filter(({ path }) => !deleted.some((file) => file.path === path)), ...deleted];
    },
    async codeIndexes() {
      const found = await ownedFiles("code", namesIn(projects, /^(project_[0-9a-f]{16})\.code\.db$/), codeOf);
      if (found.every(({ problem }) => problem === undefined)) return found;
      // A damaged index cannot name its project, but the database next to it can.
      const owners = new Map((await projectFiles()).map(({ path, id }) => [codeFileOf(path), id]));
      return found.map((file) => ({ ...file, id: owners.get(file.path) ?? file.id }));
    },
    systems: systemFiles,
    recordedMigrations() {
      const ofRuns = readMigrationRecord(runs().path);
      const moves = [
        ...listMigrationRecords(projects).map((record) => ({
          kind: record.projectId === SHARED_PROJECT_ID ? ("shared" as const) : ("project" as const),
          record,
        })),
        ...(ofRuns ? [{ kind: "runs" as const, record: { ...ofRuns, projectId: "runs" } }] : []),
        ...listMigrationRecords(systems).map((record) => ({ kind: "system" as const, record })),
      ];
      return moves.flatMap(({ kind, record }) =>
        record.projectId === undefined ? [] : [{ kind, id: record.projectId, record, isMigrated: isMigrated(record) }],
      );
    },
  };
}

function namesIn(folder: string, pattern: RegExp): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .flatMap((file) => pattern.exec(file)?.[1] ?? [])
    .sort();
}

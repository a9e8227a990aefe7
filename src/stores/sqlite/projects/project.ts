import type { Clock } from "../../../model/ids.ts";
import type { ProjectStore } from "../../../ports/storage.ts";
import type { DatabaseHandle, SqliteDatabases } from "../driver/databases.ts";
import type { SqliteDatabase } from "../driver/driver.ts";
import { type RepairReport, repairText } from "../vectors/rebuild.ts";
import { vectorSearcher } from "../vectors/searcher.ts";
import { sqliteCheckpoints } from "./checkpoints.ts";
import { codeFileOf } from "./code/code-file.ts";
import { codeDatabase } from "./code/database.ts";
import { sqliteCode } from "./code/store.ts";
import { sqliteProjectEvents } from "./events.ts";
import { sqliteKnowledge } from "./knowledge.ts";
import { projectSchema } from "./project-schema.ts";

export interface SqliteProjectOptions {
  readonly projectId: string;
  /** The file of checkpoints and knowledge. The code index is in a file next to it. */
  readonly path: string;
  readonly now: Clock;
  readonly onNotice?: ((message: string) => void) | undefined;
}

/** A project's file with the stores in it. */
export interface SqliteProject {
  readonly path: string;
  readonly handle: DatabaseHandle;
  /** The open database that was found to belong to the project. An owner never changes, so it is read once per opening. */
  owned?: SqliteDatabase;
  readonly stores: ProjectStore;
}

/** Returns the stores of the project whose database is this file. */
export function sqliteProject(databases: SqliteDatabases, options: SqliteProjectOptions): SqliteProject {
  const { projectId, path, now, onNotice } = options;
  const handle = databases.handle({ path, schema: projectSchema, onNotice });
  const onRepair = (report: RepairReport) => onNotice?.(repairText(report));
  const vectors = vectorSearcher({ path, onRepair });
  const code = codeDatabase(databases, { projectId, projectFile: path, now, onNotice });
  const stores = {
    projectPath: projectId,
    checkpoints: sqliteCheckpoints(projectId, handle, vectors),
    knowledge: sqliteKnowledge(handle, vectors),
    code: sqliteCode(projectId, code, vectorSearcher({ path: code.path, onRepair })),
    events: sqliteProjectEvents(path, code.path, handle),
  };
  return { path, handle, stores };
}

/** Closes the project's files in this process, if they are open. The next use opens the files that exist then. */
export function releaseProject(databases: SqliteDatabases, path: string): void {
  for (const file of [path, codeFileOf(path)]) {
    databases.release(file);
    vectorSearcher({ path: file }).close();
  }
}

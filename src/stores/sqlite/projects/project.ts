import { existsSync } from "node:fs";
import type { Clock } from "../../../ports/clock.ts";
import type { ProjectStore } from "../../../ports/storage.ts";
import type { DatabaseHandle, SqliteDatabases } from "../driver/databases.ts";
import { repairText } from "../vectors/rebuild.ts";
import { type VectorSearcher, vectorSearcher } from "../vectors/searcher.ts";
import { sqliteCheckpoints } from "./checkpoints.ts";
import { codeFileOf } from "./code/code-file.ts";
import { codeDatabase } from "./code/database.ts";
import { sqliteCode } from "./code/store.ts";
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
  readonly stores: ProjectStore;
}

/** Returns the stores of the project whose database is this file. */
export function sqliteProject(databases: SqliteDatabases, options: SqliteProjectOptions): SqliteProject {
  const { projectId, path, now, onNotice } = options;
  const handle = databases.handle({ path, schema: projectSchema, onNotice });
  const vectors = searcherOf(path, onNotice);
  const code = codeDatabase(databases, { projectId, projectFile: path, now, onNotice });
  const stores = {
    projectPath: projectId,
    checkpoints: sqliteCheckpoints(projectId, handle, vectors),
    knowledge: sqliteKnowledge(handle, vectors),
    code: sqliteCode(projectId, code, searcherOf(code.path, onNotice)),
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

/** Returns a searcher that finds nothing while the file does not exist. */
function searcherOf(path: string, onNotice: SqliteProjectOptions["onNotice"]): VectorSearcher {
  const searcher = vectorSearcher({ path, onRepair: (report) => onNotice?.(repairText(report)) });
  return { ...searcher, search: async (query) => (existsSync(path) ? searcher.search(query) : []) };
}

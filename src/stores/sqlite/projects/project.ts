import { CairnError } from "../../../model/errors.ts";
import type { ProjectStore } from "../../../ports/storage.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import type { SqliteDatabase } from "../driver/driver.ts";
import { repairText } from "../vectors/rebuild.ts";
import { vectorSearcher } from "../vectors/searcher.ts";
import { sqliteCheckpoints } from "./checkpoints.ts";
import { sqliteCode } from "./code/store.ts";
import { sqliteKnowledge } from "./knowledge.ts";

/** The stores of a project whose database is this file. */
export function sqliteProject(
  projectId: string,
  path: string,
  handle: DatabaseHandle,
  onNotice?: ((message: string) => void) | undefined,
): ProjectStore {
  const vectors = vectorSearcher({ path, onRepair: (report) => onNotice?.(repairText(report)) });
  return {
    projectId,
    checkpoints: sqliteCheckpoints(projectId, handle, vectors),
    knowledge: sqliteKnowledge(handle, vectors),
    code: sqliteCode(projectId, handle, vectors),
  };
}

export function ownerOf(database: SqliteDatabase): string | undefined {
  return database.read((tx) => tx.get<{ project_id: string }>("SELECT project_id FROM project_info WHERE id = 1"))?.project_id;
}

/** Writes whose database this is, once; a file that belongs to another project is never used. */
export async function claim(database: SqliteDatabase, projectId: string, now: () => string): Promise<void> {
  let owner = ownerOf(database);
  if (owner === undefined) {
    await database.write((tx) =>
      tx.run("INSERT INTO project_info (id, project_id, created_at) VALUES (1, ?, ?) ON CONFLICT DO NOTHING", projectId, now()),
    );
    owner = ownerOf(database);
  }
  assertOwner(owner, projectId, database.path);
}

export function assertOwner(owner: string | undefined, projectId: string, path: string): void {
  if (owner !== projectId)
    throw new CairnError(
      "conflict",
      `The file ${path} belongs to the project "${owner}", not to "${projectId}". It was probably copied by hand: move it back, or take its content over with: cairn database import`,
      { details: { path } },
    );
}

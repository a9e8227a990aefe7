import { CairnError } from "../../../model/errors.ts";
import type { SqliteDatabase } from "../driver/driver.ts";

/** Returns the project that a database belongs to; `undefined` before anything was stored. */
export function ownerOf(database: SqliteDatabase): string | undefined {
  return database.read((tx) => tx.get<{ project_id: string }>("SELECT project_id FROM project_info WHERE id = 1"))?.project_id;
}

/** Records the project that a new database belongs to. A file that belongs to another project is refused. */
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

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { Migrations } from "../../src/migrate/service.ts";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import { openMigrations } from "../../src/open/open-migrations.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { fillProject } from "./full-project.ts";

export interface Place {
  readonly dataDir: string;
  readonly stateDir: string;
  readonly migrations: Migrations;
}

/** Creates fresh data folders, and removes them when the tests of the file are done. */
export function places(): () => Place {
  const folder = mkdtempSync(join(tmpdir(), "cairn-migrate-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let count = 0;
  return () => {
    const dataDir = join(folder, String(count++));
    const stateDir = join(dataDir, "state");
    return { dataDir, stateDir, migrations: openMigrations({ dataDir, stateDir, now: systemClock }) };
  };
}

export function projectFile({ dataDir }: Place, project: string): string {
  return join(dataDir, "projects", `${projectDatabaseName(project)}.db`);
}

export const projectNamed = (id: string) => ({ kind: "project", id }) as const;

/** A project with rows in every table. */
export async function makeProject({ dataDir }: Pick<Place, "dataDir">, project: string, records = 6): Promise<void> {
  const storage = sqliteStorage({ dataDir, now: systemClock });
  await fillProject(storage, project, { records });
  await storage.close();
}

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { placeNewProject, writeNewProjects } from "../../src/stores/sqlite/migration/new-projects.ts";
import { hasMigrationRecord } from "../../src/stores/sqlite/migration/record.ts";

const NOW = "2026-01-02T03:04:05.678Z";
const between = vi.hoisted(() => ({ run: () => {} }));
vi.mock("../../src/stores/sqlite/migration/record.ts", async (original) => {
  const actual = await original<typeof import("../../src/stores/sqlite/migration/record.ts")>();
  const createMigrationRecord: typeof actual.createMigrationRecord = (...args) => {
    between.run();
    actual.createMigrationRecord(...args);
  };
  return { ...actual, createMigrationRecord };
});

it.each([true, false])("a new project is in SQLite if another process created its file meanwhile: %s", (created) => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-new-project-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, `${projectDatabaseName("/new")}.db`);
  writeNewProjects(folder, { url: "postgres://localhost/cairn", where: "localhost/cairn", since: NOW });
  between.run = () => created && writeFileSync(path, "rows of the other process");
  placeNewProject(folder, path, "/new", NOW);
  expect([existsSync(path), hasMigrationRecord(path)]).toEqual([created, !created]);
});

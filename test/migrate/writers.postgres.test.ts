import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { counts, startSaver } from "../faults/processes.ts";
import { storedIds } from "../faults/stored-ids.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { makeProject, places, projectFile, projectNamed } from "./place.ts";

let database: TestDatabase;
const place = places();
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

it("loses no acknowledged write when processes keep writing during a migration there and back", { timeout: 600_000 }, async () => {
  const where = place();
  const { dataDir, migrations } = where;
  const project = "/writers/project";
  const which = projectNamed(project);
  await makeProject(where, project, 20);
  const options = { storage: "sqlite", dataDir, project, count: 1_000_000, atOnce: 4 };
  const more = counts({ short: 20, soak: 1_000 });
  const savers = [startSaver(options), startSaver(options), startSaver(options)];
  await Promise.all(savers.map(({ ready }) => ready));
  const reader = await open({ dataDir, embedder: [] });
  expect((await reader.checkpoints.list({ projectPath: project, limit: 1 })).total).toBe(20);
  for (const saver of savers) saver.go();

  await Promise.all(savers.map((saver) => saver.reached(30)));
  await migrations.migrate({ to: database.url, which });
  expect(existsSync(projectFile(where, project))).toBe(false);
  const migrated = savers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  await Promise.all(savers.map((saver) => saver.reached(saver.acknowledged.length + more)));
  await migrations.migrate({ to: "sqlite", which });
  expect(existsSync(projectFile(where, project))).toBe(true);

  await Promise.all(savers.map((saver) => saver.reached(saver.acknowledged.length + more)));
  for (const saver of savers) saver.stop();
  for (const saver of savers) expect(await saver.ended, saver.errors()).toBe(0);
  const acknowledged = savers.flatMap((saver) => saver.acknowledged);
  expect(migrated).toBeLessThan(acknowledged.length); // they continued after the switch
  const stored = await storedIds(reader, project); // opened before the migrations
  expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
  expect(stored.size).toBe(acknowledged.length + 20);
  await reader.close();
});

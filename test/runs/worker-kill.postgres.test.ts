import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { counts } from "../faults/processes.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { expectRunsSurviveKills } from "./worker-kills.ts";

describe.runIf(postgresWanted)("three worker processes on PostgreSQL", () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-worker-kill-"));
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
  });
  afterAll(async () => {
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("lose no run and repeat no finished step while they are killed", { timeout: 900_000 }, async () => {
    const size = counts({ short: { runs: 20, kills: 5 }, soak: { runs: 300, kills: 60 } });
    await expectRunsSurviveKills({ storage: "postgres", url: database.url }, join(folder, "effects"), size);
  });
});

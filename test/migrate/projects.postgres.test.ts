import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { openMigrations } from "../../src/open/open-migrations.ts";
import { systemClock } from "../../src/ports/clock.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { pack } from "../../src/text/code/text-blocks.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { fillProject, unitVector } from "./full-project.ts";

let database: TestDatabase;
const dataDir = mkdtempSync(join(tmpdir(), "cairn-migrate-"));
const project = "/home/me/moving";
const path = join(dataDir, "projects", `${projectDatabaseName(project)}.db`);
const moves = () => openMigrations({ dataDir, stateDir: dataDir, now: systemClock });
const which = { kind: "project", id: project } as const;

beforeAll(async () => {
  database = await testDatabase();
  const storage = sqliteStorage({ dataDir, now: systemClock });
  await fillProject(storage, project);
  await storage.close();
  await leaveBehind();
});
afterAll(async () => {
  await database.drop();
  rmSync(dataDir, { recursive: true, force: true });
});

/** A part of a long file that a killed process was bringing in: it belongs to no file yet. */
async function leaveBehind(): Promise<void> {
  const db = await openSqlite({ path });
  await db.write((tx) => {
    const { lastId: text } = tx.run("INSERT INTO code_texts (body) VALUES (?)", pack("half of it\n"));
    const { lastId: key } = tx.run(
      `INSERT INTO code_chunks (id, file_key, generation, chunk_index, kind, name, parents, defines, start_line, end_line, text_key, text_start, text_length)
       VALUES ('left-behind', 999, 99, 0, 'text', NULL, '[]', '[]', 1, 1, ?, 0, 11)`,
      text,
    );
    tx.run("INSERT INTO code_words (rowid, words) VALUES (?, 'half of it')", key);
    tx.run(
      "INSERT INTO quarantined_records (collection, record_id, reason, quarantined_at, raw) VALUES ('checkpoints', 'x', 'altered', '2026-01-01T00:00:00.000Z', '{}')",
    );
  });
  db.close();
}

describe("a project that moves to PostgreSQL and back", () => {
  let tables: readonly unknown[];

  it("is checked by a dry run that changes nothing", async () => {
    const before = statSync(path).mtimeMs;
    const { databases } = await moves().migrate({ to: database.url, which, dryRun: true });
    expect(databases[0]).toMatchObject({ outcome: "planned", from: path });
    expect(databases[0]!.rows).toBeGreaterThan(50);
    expect(existsSync(`${path}.migration`)).toBe(false);
    expect(statSync(path).mtimeMs).toBe(before);
    tables = databases[0]!.tables;
    for (const table of databases[0]!.tables) expect(table.rows, table.table).toBeGreaterThan(0);
  });

  it("arrives whole, findable by words and by meaning, and its numbers go on", async () => {
    const { databases } = await moves().migrate({ to: database.url, which });
    expect(databases[0]).toMatchObject({ outcome: "migrated", tables });
    expect(existsSync(path)).toBe(false);
    expect(existsSync(databases[0]!.archive!)).toBe(true);
    expect(statSync(`${path}.migration`).mode & 0o777).toBe(0o600);

    const storage = postgresStorage({ url: database.url, now: systemClock });
    const moved = (await storage.find(project))!;
    const found = await moved.checkpoints.candidates({
      filter: {},
      limit: 5,
      text: "прогресс parseConfig",
      semantic: { versionId: 1, vector: unitVector(7) },
    } as never);
    expect(found.keyword.length).toBeGreaterThan(0);
    expect(found.semantic[0]?.id).toBe("checkpoint-7");
    const hits = await moved.code.candidates({ filter: {}, limit: 5, text: "work1" } as never);
    expect(hits.keyword.length).toBeGreaterThan(0);
    expect((await moved.code.orphans()).rows).toBeGreaterThan(0); // left behind there as it was here
    await storage.close();
  });

  it("comes back the same", async () => {
    const { databases } = await moves().migrate({ to: "sqlite", which });
    expect(databases[0]).toMatchObject({ outcome: "migrated", tables });
    expect(existsSync(`${path}.migration`)).toBe(false);
    const storage = sqliteStorage({ dataDir, now: systemClock });
    const back = (await storage.find(project))!;
    const found = await back.checkpoints.candidates({
      filter: {},
      limit: 5,
      text: "прогресс",
      semantic: { versionId: 1, vector: unitVector(7) },
    } as never);
    expect(found.semantic[0]?.id).toBe("checkpoint-7");
    expect(found.keyword.length).toBeGreaterThan(0);
    await storage.close();
  });
});

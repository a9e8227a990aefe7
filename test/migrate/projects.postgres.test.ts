import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName, sha256Hex, systemClock } from "../../src/model/ids.ts";
import { openMigrations } from "../../src/open/open-migrations.ts";
import type { CodeStore } from "../../src/ports/code-store.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { codeFileOf } from "../../src/stores/sqlite/projects/code/code-file.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { fillProject, unitVector } from "./full-project.ts";

let database: TestDatabase;
const dataDir = mkdtempSync(join(tmpdir(), "cairn-migrate-"));
const project = "/home/me/migrating";
const path = join(dataDir, "projects", `${projectDatabaseName(project)}.db`);
const migrations = () => openMigrations({ dataDir, stateDir: dataDir, now: systemClock });
/** What a killed process left of a copy of another index. */
const unfinished = `${codeFileOf(path)}.seed-b7`;
const which = { kind: "project", id: project } as const;

beforeAll(async () => {
  database = await testDatabase();
  const storage = sqliteStorage({ dataDir, now: systemClock });
  await fillProject(storage, project);
  await storage.close();
  await quarantineOne();
});
afterAll(async () => {
  await database.drop();
  rmSync(dataDir, { recursive: true, force: true });
});

async function quarantineOne(): Promise<void> {
  const db = await openSqlite({ path });
  await db.write((tx) =>
    tx.run(
      "INSERT INTO quarantined_records (collection, record_id, reason, quarantined_at, raw) VALUES ('checkpoints', 'x', 'altered', '2026-01-01T00:00:00.000Z', '{}')",
    ),
  );
  db.close();
}

describe("a project that is migrated to PostgreSQL and back", () => {
  let tables: readonly unknown[];

  it("is checked by a dry run that changes nothing", async () => {
    const before = statSync(path).mtimeMs;
    const { databases } = await migrations().migrate({ to: database.url, which, dryRun: true });
    expect(databases[0]).toMatchObject({ outcome: "planned", from: path });
    expect(databases[0]!.rows).toBeGreaterThan(50);
    expect(existsSync(`${path}.migration`)).toBe(false);
    expect(statSync(path).mtimeMs).toBe(before);
    tables = databases[0]!.tables;
    for (const table of databases[0]!.tables) expect(table.rows, table.table).toBeGreaterThan(0);
  });

  it("arrives complete, with keyword and semantic search, and its counters continue", async () => {
    writeFileSync(unfinished, "half of an index");
    const { databases } = await migrations().migrate({ to: database.url, which });
    expect(databases[0]).toMatchObject({ outcome: "migrated", tables });
    expect(existsSync(path)).toBe(false);
    expect(existsSync(databases[0]!.archive!)).toBe(true);
    expect(statSync(`${path}.migration`).mode & 0o777).toBe(0o600);

    const storage = postgresStorage({ url: database.url, now: systemClock });
    const migrated = (await storage.find(project))!;
    const found = await migrated.checkpoints.candidates({
      filter: {},
      limit: 5,
      text: "прогресс parseConfig",
      semantic: { versionId: 1, vector: unitVector(7) },
    });
    expect(found.keyword.length).toBeGreaterThan(0);
    expect(found.semantic[0]?.id).toBe("checkpoint-7");
    // The code index stays behind: it is derived, and an index run builds it again.
    expect(await migrated.code.files()).toEqual([]);
    expect(await migrated.code.embeddings.versions()).toEqual([]);
    expect([codeFileOf(path), unfinished].map((file) => existsSync(file))).toEqual([false, false]);
    await indexFile(migrated.code);
    await storage.close();
  });

  it("comes back the same", async () => {
    const { databases } = await migrations().migrate({ to: "sqlite", which });
    expect(databases[0]).toMatchObject({ outcome: "migrated", tables });
    expect(existsSync(`${path}.migration`)).toBe(false);
    const storage = sqliteStorage({ dataDir, now: systemClock });
    const back = (await storage.find(project))!;
    const found = await back.checkpoints.candidates({
      filter: {},
      limit: 5,
      text: "прогресс",
      semantic: { versionId: 1, vector: unitVector(7) },
    });
    expect(found.semantic[0]?.id).toBe("checkpoint-7");
    expect(found.keyword.length).toBeGreaterThan(0);
    expect(await back.code.files()).toEqual([]);
    await indexFile(back.code);
    expect(await back.code.files()).toMatchObject([{ path: "a.txt" }]);
    await storage.close();
  });
});

describe("a process that uses a project while another one migrates it there and back", () => {
  it("finds its knowledge at each place, and stores new knowledge there", async () => {
    const own = { kind: "project", id: "/home/me/followed" } as const;
    const note = { kind: "faq", question: "How?", answer: "So.", projectPath: own.id } as const;
    const cairn = await open({ dataDir, stateDir: dataDir, embedder: [] });
    await cairn.checkpoints.save({ projectPath: own.id, summary: "First" });
    await migrations().migrate({ to: database.url, which: own });
    await cairn.checkpoints.save({ projectPath: own.id, summary: "Second" });
    const total = async () => (await cairn.knowledge.list({ projectPath: own.id })).total;
    const other = await open({ dataDir, stateDir: dataDir, embedder: [] });
    await migrations().migrate({ to: "sqlite", which: own });
    await other.knowledge.save(note);
    expect(await total()).toBe(1);
    await migrations().migrate({ to: database.url, which: own });
    expect(await total()).toBe(1);
    await migrations().migrate({ to: "sqlite", which: own });
    await cairn.knowledge.save({ ...note, question: "Why?" });
    expect(await total()).toBe(2);
    await cairn.close();
    await other.close();
  });
});

describe("a migration without deleted records", () => {
  it("leaves them in the archived source, and a rollback brings them back", async () => {
    const own = { kind: "project", id: "/home/me/without-deleted" } as const;
    const storage = sqliteStorage({ dataDir, now: systemClock });
    await fillProject(storage, own.id);
    expect((await (await storage.find(own.id))!.checkpoints.listDeleted({ limit: 5 })).total).toBe(1);
    const { databases } = await migrations().migrate({ to: database.url, which: own, withoutDeleted: true });
    expect(databases[0]).toMatchObject({ outcome: "migrated" });
    const there = postgresStorage({ url: database.url, now: systemClock });
    expect((await (await there.find(own.id))!.checkpoints.listDeleted({ limit: 5 })).total).toBe(0);
    await there.close();
    expect((await migrations().migrate({ which: own, rollback: true })).databases[0]).toMatchObject({ outcome: "rolled_back" });
    await storage.close();
    const back = sqliteStorage({ dataDir, now: systemClock });
    expect((await (await back.find(own.id))!.checkpoints.listDeleted({ limit: 5 })).total).toBe(1);
    await back.close();
  });
});

async function indexFile(code: CodeStore): Promise<void> {
  const { versionId } = await code.embeddings.addVersion({ model: "m", version: "1", dimension: 8 });
  const chunk = { index: 0, kind: "text" as const, parents: [], defines: [], startLine: 1, endLine: 1, text: "a\n" };
  const file = { path: "a.txt", contentHash: sha256Hex("a\n"), language: "text", bytes: 2, lines: 1, symbols: [] };
  await code.commit({ at: systemClock(), files: [{ ...file, chunks: [{ chunk, vectors: [{ versionId, vector: unitVector(1) }] }] }] });
}

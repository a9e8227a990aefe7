import { existsSync } from "node:fs";
import { hostname } from "node:os";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { runMigration } from "../../src/migrate/run-migration.ts";
import { PROJECT_SHAPE } from "../../src/migrate/shapes.ts";
import { projectDatabaseName, sha256Hex } from "../../src/model/ids.ts";
import { postgresMigrationTarget } from "../../src/stores/postgres/migration/target.ts";
import { projectSchema as onPostgres } from "../../src/stores/postgres/projects/project-schema.ts";
import { readMigrationRecord, removeMigrationRecord, writeMigrationRecord } from "../../src/stores/sqlite/migration/record.ts";
import { sqliteMigrationSource } from "../../src/stores/sqlite/migration/source.ts";
import { projectSchema as onSqlite } from "../../src/stores/sqlite/projects/project-schema.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { makeProject, places, projectFile, projectNamed } from "./place.ts";

let database: TestDatabase;
const place = places();
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const project = "/verified/project";
const schema = projectDatabaseName(project);

/** Runs a migration whose copy is changed between import and verification. */
async function migrateWithFault(fault: (client: pg.Client) => Promise<void>): Promise<{ where: ReturnType<typeof place>; error: unknown }> {
  const where = place();
  await makeProject(where, project, 8);
  const path = projectFile(where, project);
  const migrationId = `test-${sha256Hex(`${hostname()}:${path}`).slice(0, 8)}`;
  const source = sqliteMigrationSource({ path, schema: onSqlite, shape: PROJECT_SHAPE });
  const target = postgresMigrationTarget({
    url: database.url,
    schema,
    definition: onPostgres,
    shape: PROJECT_SHAPE,
    sameSource: () => true,
  });
  const tampered = {
    ...target,
    async fill(...args: Parameters<typeof target.fill>) {
      await target.fill(...args);
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      await client.query(`SET search_path TO ${schema}; SET cairn.migration = '${migrationId}'`);
      await fault(client);
      await client.end();
    },
  };
  const records = {
    read: () => readMigrationRecord(path),
    begin: (r: never) => writeMigrationRecord(path, r),
    write: (r: never) => writeMigrationRecord(path, r),
    remove: () => removeMigrationRecord(path),
  };
  const migration = { source, target: tampered, shape: PROJECT_SHAPE, records, watch: { rows: () => {} }, trace: () => {} };
  const record = {
    migrationId,
    direction: "up",
    state: "fencing",
    url: database.url,
    where: target.where,
    projectId: project,
    startedAt: "",
  } as const;
  const error = await runMigration(migration, record).then(
    () => undefined,
    (error) => error,
  );
  await source.close();
  await target.close();
  return { where, error };
}

describe("verification", () => {
  const statement = (sql: string) => async (client: pg.Client) => expect((await client.query(sql)).rowCount).toBe(1);
  const faults: Readonly<Record<string, [fault: (client: pg.Client) => Promise<void>, said: RegExp]>> = {
    "one changed letter of a text": [
      statement("UPDATE checkpoints SET description = overlay(description placing 'X' from 1) WHERE id = 'checkpoint-2'"),
      /checkpoints has 8 rows, but different content/,
    ],
    "one missing row": [statement("DELETE FROM vectors WHERE version_id = 1 AND key = 16"), /vectors has \d+ rows instead of \d+/],
    "one float that differs in its last bit": [
      async (client) => {
        const { rows } = await client.query("SELECT version_id, key, vector::text AS vector FROM vectors ORDER BY 1, 2 LIMIT 1");
        const floats = Float32Array.from(JSON.parse(rows[0].vector) as number[]);
        new Uint32Array(floats.buffer)[3]! ^= 1;
        await client.query("UPDATE vectors SET vector = $1::text::public.vector WHERE version_id = $2 AND key = $3", [
          `[${floats.join(",")}]`,
          rows[0].version_id,
          rows[0].key,
        ]);
      },
      /vectors has \d+ rows, but different content/,
    ],
    "a counter that lags behind": [
      statement("SELECT setval(pg_get_serial_sequence('checkpoints', 'key'), 3)"),
      /checkpoints would reuse numbers/,
    ],
    "a trigger that stayed disabled": [
      async (client) => void (await client.query("ALTER TABLE vectors DISABLE TRIGGER vectors_outbox")),
      /trigger vectors_outbox is disabled/,
    ],
    "an index that is missing": [
      async (client) => void (await client.query("DROP INDEX vectors_hnsw_1")),
      /vectors of version 1 have no index/,
    ],
  };
  for (const [what, [fault, said]] of Object.entries(faults))
    it(`finds ${what}, and nothing is switched`, async () => {
      const { where, error } = await migrateWithFault(fault);
      expect(String((error as Error)?.message)).toMatch(said);
      expect(existsSync(projectFile(where, project))).toBe(true);
      expect(existsSync(`${projectFile(where, project)}.migration`)).toBe(false);
      const cairn = await open({ dataDir: where.dataDir, embedder: [] });
      await cairn.checkpoints.save({ projectPath: project, summary: "Writes continue on the source." });
      expect((await cairn.checkpoints.list({ projectPath: project })).total).toBe(9);
      await cairn.close();
    });

  it("passes the same migration without a fault", async () => {
    const { error, where } = await migrateWithFault(statement("UPDATE checkpoints SET summary = summary WHERE id = 'checkpoint-2'"));
    expect(error).toBeUndefined();
    expect(existsSync(projectFile(where, project))).toBe(false);
  });
});

describe("a target that holds data", () => {
  it("is refused before anything is changed", async () => {
    const where = place();
    await makeProject(where, project, 2);
    await expect(where.migrations.migrate({ to: database.url, which: projectNamed(project) })).rejects.toThrow(/already contains data/);
    expect(existsSync(`${projectFile(where, project)}.migration`)).toBe(false);
  });
});

describe("two migrations at once", () => {
  it("do no harm at the same time: one migrates, the other raises conflict or finds it migrated", async () => {
    const where = place();
    const name = "/two/at-once";
    const which = projectNamed(name);
    await makeProject(where, name, 30);
    const results = await Promise.allSettled([1, 2, 3].map(() => where.migrations.migrate({ to: database.url, which })));
    const outcomes = results.map((result) =>
      result.status === "fulfilled" ? result.value.databases[0]!.outcome : (result.reason as { code?: string }).code,
    );
    expect(outcomes.filter((outcome) => outcome === "migrated")).toHaveLength(1);
    expect(outcomes.filter((outcome) => !["migrated", "unchanged", "conflict"].includes(outcome!))).toEqual([]);
    // Nobody is advised to clear away what the other has just brought there.
    for (const result of results) if (result.status === "rejected") expect(String(result.reason)).not.toContain("already contains data");
    const cairn = await open({ dataDir: where.dataDir, embedder: [] });
    expect((await cairn.checkpoints.list({ projectPath: name })).total).toBe(30);
    await cairn.close();
  });
});

describe("rollback", () => {
  it("goes back as long as nothing was written, and says what to do instead afterwards", async () => {
    const where = place();
    const name = "/rollback/project";
    const which = projectNamed(name);
    await makeProject(where, name, 4);
    const { migrations, dataDir } = where;
    const cairn = await open({ dataDir, embedder: [] });
    await migrations.migrate({ to: database.url, which });
    expect((await cairn.checkpoints.list({ projectPath: name })).total).toBe(4); // reading is no writing
    const back = await migrations.migrate({ rollback: true, which });
    expect(back.databases[0]).toMatchObject({ outcome: "rolled_back" });
    await cairn.checkpoints.save({ projectPath: name, summary: "In SQLite again." });
    expect((await cairn.checkpoints.list({ projectPath: name })).total).toBe(5);

    await migrations.migrate({ to: database.url, which });
    const saved = await cairn.checkpoints.save({ projectPath: name, summary: "In PostgreSQL." });
    await expect(migrations.migrate({ rollback: true, which })).rejects.toThrow(/was written to since the migration.*--to sqlite/);
    await cairn.checkpoints.save({ projectPath: name, summary: "A refusal blocks no writes." });
    await migrations.migrate({ to: "sqlite", which });
    const { checkpoints, total } = await cairn.checkpoints.list({ projectPath: name, limit: 100 });
    expect(total).toBe(7);
    expect(checkpoints.map(({ id }) => id)).toContain(saved.id);
    await cairn.close();
    await expect(migrations.migrate({ rollback: true, which })).rejects.toThrow(/was not migrated/);
  });

  it("removes the fence of a file that was backed up during a migration and restored later", async () => {
    const where = place();
    const name = "/restored/project";
    await makeProject(where, name, 2);
    const source = sqliteMigrationSource({ path: projectFile(where, name), schema: onSqlite, shape: PROJECT_SHAPE });
    await source.fence("gone");
    await source.close();
    expect((await where.migrations.migrate({ rollback: true, which: projectNamed(name) })).databases[0]).toMatchObject({
      outcome: "rolled_back",
    });
    const cairn = await open({ dataDir: where.dataDir, embedder: [] });
    await cairn.checkpoints.save({ projectPath: name, summary: "Free." });
    await cairn.close();
  });
});

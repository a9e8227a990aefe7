import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectPath = "/home/someone/damaged-migration";
const which = { kind: "project", id: projectPath } as const;
const name = projectDatabaseName(projectPath);
let dataDir: string;
let database: TestDatabase;
let cairn: Cairn;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-damaged-migration-"));
  database = await testDatabase();
  cairn = await open({ dataDir, embedder: [testEmbedder()] });
  for (const step of ["one", "two", "three"]) {
    await cairn.checkpoints.save({ projectPath, summary: `Step ${step}`, tags: [step] });
    await cairn.knowledge.save({ projectPath, id: step, question: `What is step ${step}?`, answer: "A step." });
  }
});
afterEach(async () => {
  await cairn.close();
  await database.drop();
  rmSync(dataDir, { recursive: true, force: true });
});

async function inFile(text: string): Promise<Record<string, unknown>[]> {
  const file = await openSqlite({ path: join(dataDir, "projects", `${name}.db`) });
  try {
    return await file.write((tx) => tx.all<Record<string, unknown>>(text));
  } finally {
    file.close();
  }
}

async function inSchema(text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: database.url, options: `-c search_path=${name},public` });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const MIRROR = "SELECT template_id, question_text, usage_count, content_hash FROM embedding_records ORDER BY template_id";
const numbered = (rows: Record<string, unknown>[]) => rows.map((row) => ({ ...row, usage_count: Number(row.usage_count) }));

it("migrates both ways although embedding_records is full of damage, and fills it again from the records", async () => {
  const right = numbered(await inFile(MIRROR));
  await inFile(
    "UPDATE embedding_records SET embedding_vector = x'00', question_text = x'ff', created_at = 'never' WHERE template_id = 'one'",
  );
  await inFile("DELETE FROM embedding_records WHERE template_id = 'two'");
  await inFile("UPDATE embedding_records SET usage_count = 9 WHERE template_id = 'three'");
  await cairn.migrations.migrate({ to: database.url, which });
  expect(numbered(await inSchema(MIRROR))).toEqual(right);
  await inSchema("UPDATE embedding_records SET question_text = 'altered', usage_count = 3");
  await cairn.migrations.migrate({ to: "sqlite", which });
  expect(numbered(await inFile(MIRROR))).toEqual(right);
  expect(await cairn.embeddings.verify({ projectPath, collection: "knowledge" })).toMatchObject({ mirrorRepaired: 0, damaged: [] });
  expect(await cairn.databases.check({ projectPath })).toMatchObject({ state: "sound" });
});

it("refuses to migrate a damaged record silently, and migrates it once it is quarantined", async () => {
  const [first, second] = (await cairn.checkpoints.list({ projectPath })).checkpoints;
  await inFile(`UPDATE checkpoints SET summary = 'altered' WHERE id = '${first!.id}'`);
  await inFile(`UPDATE checkpoints SET summary = x'00ff' WHERE id = '${second!.id}'`);
  for (const dryRun of [true, false])
    await expect(cairn.migrations.migrate({ to: database.url, which, dryRun })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("cairn doctor --repair"),
    });
  const { repairs } = await cairn.doctor.examine({ repair: true });
  expect(repairs![0]!.quarantined).toHaveLength(2);
  const aside = "SELECT collection, record_id, reason, raw FROM quarantined_records ORDER BY quarantine_id";
  const quarantined = await inFile(aside);
  await cairn.migrations.migrate({ to: database.url, which });
  expect(await inSchema(aside)).toEqual(quarantined);
  expect(await cairn.checkpoints.list({ projectPath })).toMatchObject({ total: 1, damaged: [] });

  await inSchema("UPDATE knowledge SET answer = 'altered' WHERE id = 'two'");
  await expect(cairn.migrations.migrate({ to: "sqlite", which })).rejects.toMatchObject({
    message: expect.stringMatching(/knowledge with id "two" is damaged: .*cairn doctor --repair/),
  });
  await cairn.close();
  cairn = await open({ storage: database.url, dataDir, embedder: [testEmbedder()] });
  expect((await cairn.doctor.examine({ repair: true })).repairs).toMatchObject([{ quarantined: [{ id: "two" }] }]);
  await cairn.close();
  cairn = await open({ dataDir, embedder: [testEmbedder()] });
  await cairn.migrations.migrate({ to: "sqlite", which });
  expect(await inFile("SELECT record_id FROM quarantined_records")).toHaveLength(3);
  expect(await cairn.databases.check({ projectPath })).toMatchObject({ state: "sound", quarantined: 3 });
});

it("keeps the order of records when a project migrates, including one from a clock that was ahead", async () => {
  const before = (await cairn.checkpoints.list({ projectPath })).checkpoints;
  await inFile("UPDATE checkpoints SET created_order = '2020-01-01T00:00:00.000Z' WHERE summary = 'Step three'");
  await cairn.migrations.migrate({ to: database.url, which });
  const after = (await cairn.checkpoints.list({ projectPath })).checkpoints;
  expect(after.map(({ id }) => id)).toEqual([before[1]!.id, before[2]!.id, before[0]!.id]);
  expect(after[2]!.createdAt).toBe(before[0]!.createdAt);
});

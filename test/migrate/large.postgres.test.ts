import { randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkpointChecksum, checkpointText, countPieces } from "../../src/model/stored-record.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { counts } from "../faults/processes.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { checkpointOf, unitVector } from "./full-project.ts";
import { migrator } from "./migrator.ts";
import { makeProject, places, projectFile, projectNamed } from "./place.ts";

let database: TestDatabase;
const place = places();
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const MIB = 1024 * 1024;
/** What Node, the digests and the batches take, whatever the size of the database. */
const MEMORY = 400 * MIB;

it("migrates a large database with rows in every table there and back in bounded memory, with equal digests", {
  timeout: 3_600_000,
}, async () => {
  const size = counts({ short: 16, soak: 1_100 }) * MIB;
  const where = place();
  const name = "/large/project";
  const which = projectNamed(name);
  await makeProject(where, name, 5);
  await enlarge(projectFile(where, name), size);
  expect(statSync(projectFile(where, name)).size).toBeGreaterThan(size);
  const before = (await where.migrations.migrate({ to: database.url, which, dryRun: true })).databases[0]!;

  const up = await migrator(where, { to: database.url, which });
  const down = await migrator(where, { to: "sqlite", which });
  expect(statSync(projectFile(where, name)).size).toBeGreaterThan(size);
  const after = (await where.migrations.migrate({ to: `${database.url}?again`, which, dryRun: true })).databases[0]!;
  expect(after.tables).toEqual(before.tables);
  console.log(
    `${before.rows} rows, ${size / MIB} MiB: peak ${(up.peakBytes / MIB).toFixed(0)} MiB up, ${(down.peakBytes / MIB).toFixed(0)} MiB down`,
  );
  expect(up.peakBytes).toBeLessThan(MEMORY);
  expect(down.peakBytes).toBeLessThan(MEMORY);
});

/** Mostly bytes that cannot be compressed, so that it is as large as it says; and one row that alone is larger than a batch. */
async function enlarge(path: string, size: number): Promise<void> {
  const { DatabaseSync } = await loadEngine();
  const db = new DatabaseSync(path);
  db.exec("PRAGMA synchronous = OFF; BEGIN");
  const raw = db.prepare(
    "INSERT INTO quarantined_records (collection, record_id, reason, quarantined_at, raw) VALUES ('checkpoints', 'x', 'altered', '2026-01-01T00:00:00.000Z', ?)",
  );
  raw.run(randomBytes(size / 64).toString("hex"));
  for (let bytes = size / 32; bytes < size; bytes += 16_384) raw.run(randomBytes(8_192).toString("hex"));
  const checkpoint = db.prepare(
    "INSERT INTO checkpoints (id, summary, description, context, anchors, superseded_by, token_count, pieces, created_at, updated_at, created_order, updated_order, revision, checksum) VALUES (?1, ?2, ?3, '{}', '[]', '', 7, ?6, ?4, ?4, ?4, ?4, 1, ?5)",
  );
  const vector = db.prepare(
    "INSERT INTO vectors (collection_id, key, vector) SELECT id, ?, ? FROM vector_collections WHERE collection = 'checkpoints' LIMIT 1",
  );
  const rows = Math.round(size / (128 * 1024));
  for (let n = 0; n < rows; n++) {
    const more = { id: `large-${n}`, summary: `Большой ${n}`, description: `Step ${n} of a long way. `.repeat(150) };
    const large = checkpointOf("", n, { ...more, context: {}, tags: [], anchors: [], supersededBy: "", tokenCount: 7 });
    const { id, summary, description, createdAt } = large;
    const { lastInsertRowid } = checkpoint.run(
      id,
      summary,
      description,
      createdAt,
      checkpointChecksum(large),
      countPieces(checkpointText(large)),
    );
    vector.run(16n * BigInt(lastInsertRowid), new Uint8Array(unitVector(n + 1_000).buffer));
  }
  db.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

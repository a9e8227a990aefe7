import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { checkpointChecksum } from "../../src/model/stored-record.ts";
import { openPostgres } from "../../src/stores/postgres/driver/driver.ts";
import { migratePostgres } from "../../src/stores/postgres/driver/schema-version.ts";
import { projectMigrations } from "../../src/stores/postgres/projects/project-schema.ts";
import { sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectPath = "/srv/older";
const schema = projectDatabaseName(projectPath);
const vector = JSON.stringify(Array(64).fill(1 / 8));
let database: TestDatabase;
let admin: pg.Client;
let dataDir: string;

beforeAll(async () => {
  database = await testDatabase();
  dataDir = mkdtempSync(join(tmpdir(), "cairn-code-migration-"));
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await database.drop();
  rmSync(dataDir, { recursive: true });
});

it("an index of the older form is emptied, hashes too, and the next run brings it back; other collections stay", async () => {
  await admin.query("CREATE EXTENSION IF NOT EXISTS vector");
  const older = openPostgres({ url: database.url });
  await migratePostgres(
    older,
    schema,
    projectMigrations.filter(({ id }) => id <= 5),
    "public",
  );
  await older.close();
  await admin.query(`SET search_path TO ${schema}, public`);
  const at = "2026-01-01T00:00:00.000Z";
  const kept = sampleCheckpoint(projectPath, { id: "kept", context: {}, tokenCount: 1, createdAt: at, updatedAt: at });
  const { id, summary, description, tags } = kept;
  await admin.query("INSERT INTO project_info (id, project_id, created_at) VALUES (1, $1, '2026-01-01')", [projectPath]);
  await admin.query(
    `INSERT INTO checkpoints (id, summary, description, context, tags, folded_tags, token_count, created_at, updated_at, created_order, updated_order, revision, checksum, words)
     VALUES ($1, $2, $3, '{}', $4, $4, 1, $5, $5, $5, $5, 1, $6, '')`,
    [id, summary, description, tags, at, checkpointChecksum(kept)],
  );
  await admin.query(
    `UPDATE code_generation SET last = 41;
     INSERT INTO indexed_files (project_id, file_path, content_hash, generation, language, bytes, lines)
     VALUES ('${projectPath}', 'a.py', '${"0".repeat(64)}', 41, 'python', 6, 1);
     INSERT INTO chunk_generations (project_id, file_path, current_generation, chunks_count) VALUES ('${projectPath}', 'a.py', 41, 1);
     INSERT INTO code_chunks (id, file_key, generation, chunk_index, kind, parents, defines, start_line, end_line, text, words)
     VALUES ('x', 1, 41, 0, 'text', '[]', '["x"]', 1, 1, 'x = 1', to_tsvector('simple', 'x'));
     INSERT INTO code_definitions (file_key, name, kind, line, col, parents, place) VALUES (1, 'x', 'variable', 1, 1, '[]', 0);
     INSERT INTO code_references (file_key, name, count, positions) VALUES (1, 'x', 1, '\\x0101');
     INSERT INTO embedding_versions (collection, model_name, model_version, embedding_dimension, is_current)
     VALUES ('code', 'test', '1', 64, true), ('checkpoints', 'test', '1', 64, true);
     INSERT INTO vector_index (collection, name) VALUES ('code', 'outside');
     INSERT INTO vectors (version_id, key, collection, vector) VALUES (1, 1, 'code', '${vector}'), (2, 1, 'checkpoints', '${vector}');
     DELETE FROM vector_outbox;`,
  );

  const cairn = await open({ storage: database.url, dataDir, embedder: [testEmbedder()] });
  expect(await cairn.code.stats({ projectPath })).toMatchObject({
    ...{ files: 0, chunks: 0, definitions: 0, references: 0, generation: 41 },
    embeddings: [{ model: "test", vectors: 0 }],
  });
  // An index of vectors outside is told that this one is gone.
  expect((await admin.query("SELECT collection, version_id, key FROM vector_outbox")).rows).toEqual([
    { collection: "code", version_id: 1, key: "1" },
  ]);
  expect(await cairn.code.hashes({ projectPath, paths: ["a.py"] })).toEqual({});
  expect((await cairn.code.search({ projectPath, query: "x" })).hits).toEqual([]);

  await cairn.code.indexBatch({ projectPath, files: [{ path: "a.py", content: "x = 1\n" }] });
  expect((await cairn.code.search({ projectPath, query: "x" })).hits).toHaveLength(1);
  expect((await cairn.code.usages({ projectPath, symbol: "x" })).definitions).toMatchObject([{ path: "a.py", line: 1 }]);
  expect(await cairn.code.stats({ projectPath })).toMatchObject({ generation: 42, embeddings: [{ isCurrent: true, vectors: 1 }] });
  expect((await cairn.code.compact({ projectPath })).orphans).toEqual({ rows: 0, terms: 0, vectors: 0 });
  expect((await cairn.checkpoints.list({ projectPath })).total).toBe(1);
  expect((await admin.query("SELECT 1 FROM vectors WHERE collection = 'checkpoints'")).rowCount).toBe(1);
  await cairn.close();
});

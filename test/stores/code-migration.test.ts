import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { projectMigrations } from "../../src/stores/sqlite/projects/project-schema.ts";
import { vectorWriter } from "../../src/stores/sqlite/vectors/writer.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectId = "/srv/older";
let dataDir: string;
let path: string;

beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-code-migration-"));
  mkdirSync(join(dataDir, "projects"));
  path = join(dataDir, "projects", `${projectDatabaseName(projectId)}.db`);
});
afterAll(() => rmSync(dataDir, { recursive: true }));

it("an index of the older form is emptied, hashes too, and the next run brings it back; other collections stay", async () => {
  const older = await openSqlite({ path, migrations: projectMigrations.filter(({ id }) => id <= 5) });
  await older.write((tx) => {
    tx.run("INSERT INTO project_info (id, project_id, created_at) VALUES (1, ?, '2026-01-01T00:00:00.000Z')", projectId);
    tx.run("UPDATE code_generation SET last = 41");
    tx.run(
      `INSERT INTO indexed_files (project_id, file_path, content_hash, generation, indexed_at, language, bytes, lines)
       VALUES (?, 'a.py', ?, 41, '2026-01-01T00:00:00.000Z', 'python', 6, 1)`,
      projectId,
      "0".repeat(64),
    );
    tx.run("INSERT INTO chunk_generations (project_id, file_path, current_generation, chunks_count) VALUES (?, 'a.py', 41, 1)", projectId);
    tx.run(
      `INSERT INTO code_chunks (id, file_key, generation, chunk_index, kind, parents, defines, start_line, end_line, text)
       VALUES ('x', 1, 41, 0, 'text', '[]', '[]', 1, 1, 'x = 1')`,
    );
    tx.run("INSERT INTO code_words (rowid, words) VALUES (1, 'x')");
    for (const collection of ["code", "checkpoints"]) {
      tx.run(
        "INSERT INTO embedding_versions (collection, model_name, model_version, embedding_dimension, is_current) VALUES (?, 'test', '1', 64, 1)",
        collection,
      );
      vectorWriter(tx).put(collection, collection === "code" ? 1 : 2, [{ key: 1, vector: new Float32Array(64).fill(1 / 8) }]);
    }
  });
  older.close();

  const cairn = await open({ dataDir, embedder: [testEmbedder()] });
  expect(await cairn.code.stats({ projectId })).toMatchObject({
    files: 0,
    chunks: 0,
    generation: 41,
    embeddings: [{ model: "test", vectors: 0 }],
  });
  expect(await cairn.code.hashes({ projectId, paths: ["a.py"] })).toEqual({});
  expect((await cairn.code.search({ projectId, query: "x" })).hits).toEqual([]);
  await cairn.code.indexBatch({ projectId, files: [{ path: "a.py", content: "x = 1\n" }] });
  expect((await cairn.code.search({ projectId, query: "x" })).hits).toHaveLength(1);
  expect(await cairn.code.stats({ projectId })).toMatchObject({ generation: 42, embeddings: [{ isCurrent: true, vectors: 1 }] });
  expect((await cairn.code.compact({ projectId })).orphans).toEqual({ rows: 0, terms: 0, vectors: 0 });
  await cairn.close();

  const now = await openSqlite({ path });
  const sql = "SELECT count(*) AS count FROM vectors v JOIN vector_spaces s ON s.id = v.space WHERE s.collection = 'checkpoints'";
  const { count } = now.read((tx) => tx.get<{ count: number }>(sql))!;
  expect(count).toBe(1);
  now.close();
});

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { open } from "../../src/open/open.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { projectSchema } from "../../src/stores/sqlite/projects/project-schema.ts";
import { vectorWriter } from "../../src/stores/sqlite/vectors/writer.ts";
import { testEmbedder } from "../support/embedders.ts";

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-repairs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

it("a search that finds damaged codes rebuilds them, and reports it once", async () => {
  const dataDir = temporaryFolder();
  const projectPath = "/repairs";
  const notices: string[] = [];
  const options = { dataDir, embedder: [testEmbedder()], onNotice: (message: string) => notices.push(message) };
  const first = await open(options);
  await Promise.all(Array.from({ length: 50 }, (_, i) => first.checkpoints.save({ projectPath, summary: `Step ${i}` })));
  await first.close();
  const [file] = readdirSync(join(dataDir, "projects")).filter((name) => name.endsWith(".db"));
  const behind = await openSqlite({ path: join(dataDir, "projects", file!) });
  await behind.write((tx) => tx.exec("DELETE FROM vector_delta WHERE key = (SELECT min(key) FROM vector_delta)"));
  behind.close();
  expect(notices).toEqual([]);

  const cairn = await open(options);
  for (let round = 0; round < 2; round++)
    expect((await cairn.checkpoints.search({ projectPath, query: "Step 0", mode: "semantic", topK: 100 })).hits).toHaveLength(50);
  expect(notices).toEqual([expect.stringMatching(/search index of checkpoints .*was rebuilt from 50 stored vectors: .*Nothing was lost/)]);
  await cairn.close();
});

it("so does a write of any process", async () => {
  const notices: string[] = [];
  const path = join(temporaryFolder(), "p.db");
  const database = await openSqlite({ path, schema: projectSchema, onNotice: (message) => notices.push(message) });
  const entries = (turn: number) =>
    Array.from({ length: 2_000 }, (_, key) => ({ key, vector: Float32Array.of(Math.sin(key + turn), Math.cos(key), 1, key % 7) }));
  await database.write((tx) => vectorWriter(tx).put("checkpoints", 1, entries(0)));
  await database.write((tx) => tx.exec("UPDATE vector_segment_bodies SET scales = zeroblob(length(scales))"));
  await database.write((tx) => vectorWriter(tx).put("checkpoints", 1, entries(1)));
  expect(notices).toEqual([expect.stringMatching(/search index of checkpoints .*was rebuilt from 2000 stored vectors: .*checksum/)]);
  const sound = database.read((tx) => tx.all("SELECT 1 FROM vector_segment_bodies WHERE scales = zeroblob(length(scales))"));
  expect(sound).toEqual([]);
  database.close();
});

import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { checkFile } from "../../src/stores/sqlite/driver/damage.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectPath = "/srv/compacted";

it("frees the space of removed files and reports how much, while others read and write", { timeout: 600_000 }, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-compact-"));
  const path = join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`);
  const onDisk = () => ["", "-wal"].reduce((sum, end) => sum + (statSync(path + end, { throwIfNoEntry: false })?.size ?? 0), 0);
  const cairn = await open({ dataDir, embedder: [testEmbedder({ dimension: 256 })] });
  const other = await open({ dataDir, embedder: [testEmbedder({ dimension: 256 })] });
  const files = Array.from({ length: 300 }, (_, number) => ({
    path: `part${number}.txt`,
    content: Array.from(
      { length: 3 },
      (_, part) => `number ${number} ${part} ${Math.sin(number + part)} ${"words of it ".repeat(160)}\n`,
    ).join(""),
  }));
  await cairn.code.indexBatch({ projectPath, files });
  await cairn.code.clean({ projectPath, glob: "part?*{1,2,3,4,5,6,7,8,9}.txt" });
  const left = (await cairn.code.stats({ projectPath })).files;
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThan(100);

  let compacting = true;
  const compacted = cairn.code.compact({ projectPath }).finally(() => {
    compacting = false;
  });
  let meanwhile = 0;
  for (; compacting; meanwhile++) {
    expect(
      (await other.code.search({ projectPath, query: "number 30", mode: meanwhile % 2 ? "semantic" : "keyword" })).hits.length,
    ).toBeGreaterThan(0);
    await other.code.indexBatch({ projectPath, files: [{ path: "busy.txt", content: `written meanwhile, ${meanwhile}\n` }] });
  }
  const { freedBytes, orphans } = await compacted;
  expect(meanwhile).toBeGreaterThan(0);
  expect(orphans).toEqual({ rows: 0, terms: 0, vectors: 0 });
  expect(freedBytes).toBeGreaterThan(0);
  // While idle, only the space of concurrent writes can be freed.
  await cairn.code.compact({ projectPath });
  const small = onDisk();
  expect((await cairn.code.compact({ projectPath })).freedBytes).toBeLessThan(100_000);
  expect(onDisk()).toBeLessThanOrEqual(small);
  expect((await cairn.code.search({ projectPath, query: "number 30 words", mode: "semantic" })).hits.length).toBeGreaterThan(0);
  await cairn.close();
  await other.close();
  expect((await checkFile(path)).problems).toEqual([]);
  rmSync(dataDir, { recursive: true });
});

import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/model/ids.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { countHits, damage, FILES, indexFiles, openCairn, projectPath } from "./code-file.ts";

/** Holds the write lock of a database from another connection. Returns the function that releases it. */
async function holdWriteLock(path: string): Promise<() => void> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path);
  connection.exec("BEGIN IMMEDIATE");
  return () => {
    connection.exec("ROLLBACK");
    connection.close();
  };
}

it("creates the code index with the first index run, private to the user, and never by reading", async () => {
  const { cairn, file, codeFile } = await openCairn();
  await cairn.checkpoints.save({ projectPath, summary: "Before any code" });
  expect(await countHits(cairn)).toBe(0);
  expect(await cairn.code.stats({ projectPath })).toMatchObject({ files: 0, chunks: 0 });
  expect(await cairn.code.hashes({ projectPath, paths: ["src/0.txt"] })).toEqual({});
  expect(await cairn.code.compact({ projectPath })).toMatchObject({ freedBytes: 0 });
  expect(existsSync(codeFile)).toBe(false);
  await indexFiles(cairn);
  expect(statSync(codeFile).mode & 0o777).toBe(0o600);
  expect(await countHits(cairn)).toBeGreaterThan(0);
  const { DatabaseSync } = await loadEngine();
  const memory = new DatabaseSync(file, { readOnly: true });
  expect(memory.prepare("SELECT name FROM sqlite_master WHERE name LIKE 'code%' OR name = 'indexed_files'").all()).toEqual([]);
  memory.close();
});

it("reads through the same handle what its first write has created", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-code-file-"));
  const storage = sqliteStorage({ dataDir, now: systemClock });
  onTestFinished(async () => {
    await storage.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const { code } = await storage.create(projectPath);
  const name = await code.embeddings.outbox!.enable();
  expect(name).toMatch(/^[0-9a-f]{12}$/);
  expect(await code.embeddings.outbox!.enable()).toBe(name);
});

it("saves checkpoints and knowledge while an index commit holds the lock of the code index", async () => {
  const { cairn, codeFile } = await openCairn();
  await indexFiles(cairn);
  const release = await holdWriteLock(codeFile);
  let indexed = false;
  const indexing = cairn.code.indexBatch({ projectPath, files: [{ path: "src/new.txt", content: "beta\n" }] }).finally(() => {
    indexed = true;
  });
  const { id } = await cairn.checkpoints.save({ projectPath, summary: "Saved during the index commit" });
  await cairn.knowledge.save({ projectPath, kind: "faq", question: "Who waits?", answer: "Nobody." });
  expect((await cairn.checkpoints.get({ projectPath, id })).summary).toBe("Saved during the index commit");
  expect(indexed).toBe(false);
  release();
  await indexing;
  expect(await cairn.code.hashes({ projectPath, paths: ["src/new.txt"] })).toHaveProperty(["src/new.txt"]);
});

it("indexes while another connection holds the write lock of the checkpoints", async () => {
  const { cairn, file } = await openCairn();
  await indexFiles(cairn);
  const release = await holdWriteLock(file);
  try {
    const { files } = await cairn.code.indexBatch({
      projectPath,
      files: FILES.map((one) => ({ ...one, content: `${one.content}beta\n` })),
    });
    expect(files.map(({ status }) => status)).toEqual(FILES.map(() => "indexed"));
    expect(await cairn.code.finish({ projectPath, manifest: [FILES[0]!.path] })).toMatchObject({ removed: { length: FILES.length - 1 } });
    await cairn.code.compact({ projectPath });
  } finally {
    release();
  }
});

const DAMAGES: Readonly<Record<string, readonly [start: number, length: number]>> = {
  "its header": [0, 100],
  "its schema": [100, 8_000],
  "the pages of its tables": [8_192, 400_000],
};
for (const [part, [start, length]] of Object.entries(DAMAGES))
  it(`reports a code index with damage in ${part}, keeps memory working, and rebuilds it with the next index run`, async () => {
    const { cairn, codeFile, dataDir } = await openCairn();
    const { id } = await cairn.checkpoints.save({ projectPath, summary: "Remember the harbour" });
    await indexFiles(cairn);
    await damage(codeFile, start, length);

    const damaged = { code: "unavailable", details: { damaged: true, codeIndex: true } };
    const { cairn: reopened, notices } = await openCairn(dataDir);
    await expect(countHits(reopened)).rejects.toMatchObject(damaged);
    await expect(countHits(reopened)).rejects.toThrow(/Checkpoints and knowledge are not affected.*cairn code index/);
    await expect(reopened.code.stats({ projectPath })).rejects.toMatchObject(damaged);
    await reopened.checkpoints.save({ projectPath, summary: "Remember the lighthouse" });
    const { hits } = await reopened.checkpoints.search({ projectPath, query: "harbour" });
    expect(hits.map((hit) => hit.record.id)).toContain(id);

    expect(await reopened.code.hashes({ projectPath, paths: FILES.map(({ path }) => path) })).toEqual({});
    const { files } = await indexFiles(reopened);
    expect(files.map(({ status }) => status)).toEqual(FILES.map(() => "indexed"));
    expect(await countHits(reopened)).toBeGreaterThan(0);
    expect(notices.join("\n")).toMatch(/was damaged and has been deleted/);
  });

it("refuses a code index with a planted trigger, keeps memory working, and rebuilds the index with the next index run", async () => {
  const { cairn, codeFile, dataDir } = await openCairn();
  await indexFiles(cairn);
  await cairn.close();
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(codeFile);
  connection.exec("CREATE TRIGGER planted AFTER INSERT ON indexed_files BEGIN DELETE FROM code_chunks; END");
  connection.close();
  const { cairn: reopened } = await openCairn(dataDir);
  await expect(countHits(reopened)).rejects.toMatchObject({ code: "unavailable", details: { codeIndex: true } });
  await reopened.checkpoints.save({ projectPath, summary: "Still saved" });
  expect((await indexFiles(reopened)).files.map(({ status }) => status)).toEqual(FILES.map(() => "indexed"));
  expect(await countHits(reopened)).toBeGreaterThan(0);
});

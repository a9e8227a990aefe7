import { closeSync, existsSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { codeFileOf } from "../../src/stores/sqlite/projects/code/code-file.ts";

const projectPath = "/home/me/app";
const FILES = Array.from({ length: 8 }, (_, index) => ({ path: `src/${index}.txt`, content: `alpha number ${index}\n`.repeat(40) }));

async function openCairn() {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-code-file-"));
  const file = join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`);
  const notices: string[] = [];
  const cairn = await open({ dataDir, embedder: { kind: "none" }, onNotice: (message) => notices.push(message) });
  onTestFinished(async () => {
    await cairn.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return { cairn, file, codeFile: codeFileOf(file), notices };
}

type Cairn = Awaited<ReturnType<typeof open>>;
const index = (cairn: Cairn) => cairn.code.indexBatch({ projectPath, files: FILES });
const search = async (cairn: Cairn) => (await cairn.code.search({ projectPath, query: "alpha" })).hits.length;

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
  expect(await search(cairn)).toBe(0);
  expect(await cairn.code.stats({ projectPath })).toMatchObject({ files: 0, chunks: 0 });
  expect(await cairn.code.hashes({ projectPath, paths: ["src/0.txt"] })).toEqual({});
  expect(await cairn.code.compact({ projectPath })).toMatchObject({ freedBytes: 0 });
  expect(existsSync(codeFile)).toBe(false);
  await index(cairn);
  expect(statSync(codeFile).mode & 0o777).toBe(0o600);
  expect(await search(cairn)).toBeGreaterThan(0);
  const { DatabaseSync } = await loadEngine();
  const memory = new DatabaseSync(file, { readOnly: true });
  expect(memory.prepare("SELECT name FROM sqlite_master WHERE name LIKE 'code%' OR name = 'indexed_files'").all()).toEqual([]);
  memory.close();
});

it("saves checkpoints and knowledge while an index commit holds the lock of the code index", async () => {
  const { cairn, codeFile } = await openCairn();
  await index(cairn);
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
  await index(cairn);
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
    const { cairn, codeFile, notices } = await openCairn();
    const { id } = await cairn.checkpoints.save({ projectPath, summary: "Remember the harbour" });
    await index(cairn);
    const { DatabaseSync } = await loadEngine();
    const connection = new DatabaseSync(codeFile);
    connection.exec("PRAGMA wal_checkpoint(TRUNCATE)"); // all pages are in the file now
    connection.close();
    const descriptor = openSync(codeFile, "r+");
    writeSync(descriptor, Buffer.alloc(Math.min(length, statSync(codeFile).size - start), 0xa5), 0, undefined, start);
    closeSync(descriptor);

    const damaged = { code: "unavailable", details: { damaged: true, codeIndex: true } };
    const reopened = await open({
      dataDir: join(codeFile, "..", ".."),
      embedder: { kind: "none" },
      onNotice: (text) => notices.push(text),
    });
    onTestFinished(() => reopened.close());
    await expect(search(reopened)).rejects.toMatchObject(damaged);
    await expect(search(reopened)).rejects.toThrow(/Checkpoints and knowledge are not affected.*cairn code index/);
    await expect(reopened.code.stats({ projectPath })).rejects.toMatchObject(damaged);
    await reopened.checkpoints.save({ projectPath, summary: "Remember the lighthouse" });
    const { hits } = await reopened.checkpoints.search({ projectPath, query: "harbour" });
    expect(hits.map((hit) => hit.record.id)).toContain(id);

    expect(await reopened.code.hashes({ projectPath, paths: FILES.map(({ path }) => path) })).toEqual({});
    const { files } = await index(reopened);
    expect(files.map(({ status }) => status)).toEqual(FILES.map(() => "indexed"));
    expect(await search(reopened)).toBeGreaterThan(0);
    expect(notices.join("\n")).toMatch(/was damaged and has been deleted/);
  });

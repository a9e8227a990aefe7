import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { codeFileOf } from "../../src/stores/sqlite/projects/code/code-file.ts";

export const projectPath = "/home/me/app";
export const FILES = Array.from({ length: 8 }, (_, index) => ({
  path: `src/${index}.txt`,
  content: `alpha number ${index}\n`.repeat(40),
}));

export type Cairn = Awaited<ReturnType<typeof open>>;
export const indexFiles = (cairn: Cairn) => cairn.code.indexBatch({ projectPath, files: FILES });
export const countHits = async (cairn: Cairn) => (await cairn.code.search({ projectPath, query: "alpha" })).hits.length;

/** Opens Cairn for one test, in a folder of its own or in one that another test instance uses. */
export async function openCairn(dataDir = mkdtempSync(join(tmpdir(), "cairn-code-file-"))) {
  const notices: string[] = [];
  const cairn = await open({ dataDir, embedder: { kind: "none" }, onNotice: (message) => notices.push(message) });
  onTestFinished(async () => {
    await cairn.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const file = join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`);
  return { cairn, dataDir, file, codeFile: codeFileOf(file), notices };
}

/** Overwrites bytes of a database, whose log is brought into the file first. */
export async function damage(path: string, start: number, length: number): Promise<void> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path);
  connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  connection.close();
  const descriptor = openSync(path, "r+");
  writeSync(descriptor, Buffer.alloc(Math.min(length, statSync(path).size - start), 0xa5), 0, undefined, start);
  closeSync(descriptor);
}

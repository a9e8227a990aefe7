import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName, sha256Hex } from "../../src/model/ids.ts";

export const PROJECT = "/home/me/app";

/** A data folder of its own, and Cairn opened on it as often as wanted. */
export function dataFolder() {
  const folder = mkdtempSync(join(tmpdir(), "cairn-backups-"));
  const dataDir = join(folder, "data");
  const opened: Cairn[] = [];
  return {
    folder,
    dataDir,
    stateDir: join(folder, "state"),
    backupDir: join(dataDir, "backups"),
    file: (project = PROJECT) => join(dataDir, "projects", `${projectDatabaseName(project)}.db`),
    async open(options = {}) {
      const cairn = await open({ dataDir, stateDir: join(folder, "state"), embedder: [], ...options });
      opened.push(cairn);
      return cairn;
    },
    async clear() {
      for (const cairn of opened) await cairn.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function summaries(cairn: Cairn, projectPath = PROJECT): Promise<string[]> {
  const { checkpoints } = await cairn.checkpoints.list({ projectPath, limit: 100 });
  return checkpoints.map(({ summary }) => summary).sort();
}

/** Everything under a folder, by path, so that «nothing changed» can be said. */
export function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true }).map(String).sort();
}

/** Changes a manifest and makes its own checksum right again, as somebody might who wants to hide damage. */
export function forgeManifest(location: string, change: (manifest: { databases: { sha256: string; bytes: number }[] }) => void): void {
  const path = join(location, "manifest.json");
  const content = JSON.parse(readFileSync(path, "utf8"));
  change(content.manifest);
  content.sha256 = sha256Hex(JSON.stringify(content.manifest));
  writeFileSync(path, JSON.stringify(content));
}

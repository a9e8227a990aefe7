import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { checkFile } from "../../src/stores/sqlite/driver/damage.ts";
import { counts, saveTogether, startSaver } from "./processes.ts";
import { storedIds } from "./stored-ids.ts";

const project = "/home/me/app";
let dataDir: string;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-faults-"));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

describe("SQLite under stress", () => {
  it("takes the saves of ten concurrent processes: none is refused or lost", { timeout: 900_000 }, async () => {
    const each = counts({ short: 100, soak: 1_000 });
    const acknowledged = await saveTogether(10, { storage: "sqlite", dataDir, project, count: each, atOnce: 4 });
    expect(acknowledged).toHaveLength(10 * each);
    expect(await stored()).toEqual(new Set(acknowledged));
    expect((await checkFile(file())).problems).toEqual([]);
  });

  it("keeps every acknowledged checkpoint through kill -9 in the middle of saves", { timeout: 900_000 }, async () => {
    const rounds = counts({ short: 10, soak: 50 });
    const acknowledged: string[] = [];
    for (let round = 0; round < rounds; round++) {
      // Two processes, so that a kill also hits one that waits for the lock of the other.
      const savers = [0, 1].map(() => startSaver({ storage: "sqlite", dataDir, project, count: 1_000_000, atOnce: 8 }));
      await Promise.all(savers.map(({ ready }) => ready));
      for (const saver of savers) saver.go();
      await Promise.race(savers.map((saver) => saver.reached(1 + ((round * 37) % 60))));
      for (const saver of savers) saver.child.kill("SIGKILL");
      for (const saver of savers) {
        expect(await saver.ended).toBe("SIGKILL");
        acknowledged.push(...saver.acknowledged);
      }
      const there = await stored();
      expect(acknowledged.filter((id) => !there.has(id))).toEqual([]);
    }
    expect(acknowledged.length).toBeGreaterThanOrEqual(rounds);
    expect((await checkFile(file())).problems).toEqual([]);
  });
});

async function stored(): Promise<Set<string>> {
  const cairn = await open({ dataDir, embedder: [] });
  try {
    return await storedIds(cairn, project);
  } finally {
    await cairn.close();
  }
}

function file(): string {
  return join(dataDir, "projects", `${projectDatabaseName(project)}.db`);
}

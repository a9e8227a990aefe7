import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import { checkFile } from "../../src/stores/sqlite/driver/damage.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { counts } from "./processes.ts";

const project = "/home/me/app";
const FILES = 4;
let dataDir: string;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-code-faults-"));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

/** Indexes from this round, until the process is killed some time after N rounds. Returns the last acknowledged round. */
async function writeUntilKilled(first: number, rounds: number, delayMs: number): Promise<number> {
  const args = [join(import.meta.dirname, "code-writer.mjs"), "sqlite", dataDir, project, String(first), String(FILES)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (data) => {
    errors += data;
  });
  let last = first - 1;
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line === "ready") return;
    last = Number(line);
    if (last >= first + rounds) setTimeout(() => child.kill("SIGKILL"), delayMs);
  });
  const signal = await new Promise((resolve) => child.once("close", (_, ended) => resolve(ended)));
  expect(signal, errors).toBe("SIGKILL");
  return last;
}

describe("the code index under kill -9", () => {
  it("holds one complete round of a batch, never a mixture, and no orphans", { timeout: 900_000 }, async () => {
    let acknowledged = 0;
    const kills = counts({ short: 5, soak: 100 });
    for (let kill = 0; kill < kills; kill++) {
      acknowledged = await writeUntilKilled(acknowledged + 1, 1 + (kill % 3), (kill * 7) % 40);
      const storage = sqliteStorage({ dataDir, now: systemClock });
      try {
        const { code } = (await storage.find(project))!;
        // Chunks of the long file from before its commit, or from the previous round, are orphans.
        await code.reconcile();
        const all = await code.files();
        const files = all.filter(({ path }) => path !== "src/long.py");
        expect(files.map(({ path }) => path)).toEqual(Array.from({ length: FILES }, (_, index) => `src/file${index}.py`));
        expect(new Set(files.map(({ generation }) => generation)).size).toBe(1);
        const rounds = new Set<number>();
        for (const { path } of files)
          for (const { text } of await code.chunksOf(path))
            for (const [, round] of text.matchAll(/_round(\d+)/g)) rounds.add(Number(round));
        expect(rounds.size).toBe(1);
        const [round] = rounds;
        // The last acknowledged round, or the next one, whose acknowledgement was lost.
        expect([acknowledged, acknowledged + 1]).toContain(round);
        const long = (await code.chunksOf("src/long.py")).map(({ text }) => text).join("");
        const parts = [...long.matchAll(/def g(\d+)_round(\d+)/g)];
        if (all.length > FILES) expect(parts.map(([, part]) => Number(part))).toEqual(Array.from({ length: 60 }, (_, part) => part));
        else expect(round).toBe(1);
        // The long file is stored after the others.
        for (const [, , of] of parts) expect([round, round! - 1]).toContain(Number(of));
        expect(new Set(parts.map(([, , of]) => of)).size).toBeLessThan(2);
        expect(await code.definitions([`f0_round${round}`], {}, 10)).toHaveLength(FILES);
        expect(await code.definitions([`f0_round${round! - 1}`], {}, 10)).toEqual([]);
        expect((await code.references("shared", {}, 100)).total).toBe(FILES * (1 + (round! % 3)));
        const [version] = await code.embeddings.versions();
        const { records, vectors } = await code.embeddings.counts(version!.versionId);
        expect(vectors).toBe(records);
        expect(await code.orphans()).toEqual({ rows: 0, terms: 0, vectors: 0 });
        acknowledged = round!;
      } finally {
        await storage.close();
      }
    }
    expect((await checkFile(join(dataDir, "projects", `${projectDatabaseName(project)}.db`))).problems).toEqual([]);
  });
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type CairnError, open } from "../../src/index.ts";
import { ownCluster, testDatabase } from "../setup/postgres.ts";
import { counts, saveTogether } from "./processes.ts";
import { storedIds } from "./stored-ids.ts";

const project = "/home/me/app";
/** Milliseconds that a call waits for a server to come back. */
const RECONNECT_MS = 15_000;

describe("PostgreSQL under stress", () => {
  it("takes the saves of ten concurrent processes: none is refused or lost", { timeout: 900_000 }, async () => {
    const database = await testDatabase();
    const dataDir = mkdtempSync(join(tmpdir(), "cairn-faults-"));
    const each = counts({ short: 100, soak: 1_000 });
    const acknowledged = await saveTogether(10, { storage: database.url, dataDir, project, count: each, atOnce: 4 });
    expect(acknowledged).toHaveLength(10 * each);
    const cairn = await open({ storage: database.url, dataDir, embedder: [] });
    expect(await storedIds(cairn, project)).toEqual(new Set(acknowledged));
    await cairn.close();
    await database.drop();
    rmSync(dataDir, { recursive: true });
  });

  it("continues to save when the server is restarted or killed: no save is refused or lost", { timeout: 900_000 }, async () => {
    const cluster = await ownCluster();
    const dataDir = mkdtempSync(join(tmpdir(), "cairn-faults-"));
    try {
      const cairn = await open({ storage: cluster.url, dataDir, embedder: [] });
      const acknowledged: string[] = [];
      let saving = true;
      let downSince = Number.POSITIVE_INFINITY;
      let tooLong = 0;
      const savers = Array.from({ length: 8 }, async () => {
        while (saving)
          try {
            acknowledged.push((await cairn.checkpoints.save({ projectPath: project, summary: "Through the restart" })).id);
          } catch (error) {
            // The server was down for longer than a call waits, because a busy machine started it slowly.
            if ((error as CairnError).code !== "unavailable" || Date.now() - downSince < RECONNECT_MS) throw error;
            tooLong++;
          }
      });
      const allSavers = Promise.all(savers); // rejects when one save fails
      const more = async (saves: number) => {
        const target = acknowledged.length + saves;
        while (acknowledged.length < target) await Promise.race([sleep(5), allSavers]);
      };
      const rounds = counts({ short: 1, soak: 10 });
      for (let round = 0; round < rounds; round++)
        for (const fault of ["stop", "kill"] as const) {
          await more(20);
          downSince = Date.now();
          await cluster[fault]();
          await sleep(200);
          await cluster.start();
          await more(20);
          downSince = Number.POSITIVE_INFINITY;
        }
      saving = false;
      await allSavers;
      const stored = await storedIds(cairn, project);
      expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
      if (tooLong === 0) expect(stored.size).toBe(acknowledged.length);
      await cairn.close();
    } finally {
      await cluster.destroy();
      rmSync(dataDir, { recursive: true });
    }
  });
});

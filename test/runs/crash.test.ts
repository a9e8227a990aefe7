import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { openRunStore, type RunStoreOptions } from "../../src/runs.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { expectExact, finished, finishedSteps, soak, work } from "./processes.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-crash-"));
const databases: TestDatabase[] = [];
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  for (const database of databases) await database.drop();
});

let places = 0;
const stores: Record<string, () => Promise<RunStoreOptions>> = {
  files: async () => ({ storage: "file", folder: join(folder, `runs-${places++}`) }),
  SQLite: async () => ({ storage: "sqlite", path: join(folder, `runs-${places++}.db`) }),
};
if (postgresWanted)
  stores.PostgreSQL = async () => {
    const database = await testDatabase();
    databases.push(database);
    return { storage: "postgres", url: database.url, poolMax: 3 };
  };

const TIMEOUT = soak ? 3_600_000 : 900_000;

for (const [name, place] of Object.entries(stores))
  describe(`a process killed with kill -9, runs on ${name}`, () => {
    const effects = () => {
      const path = join(folder, `effects-${places++}`);
      writeFileSync(path, "");
      return path;
    };

    async function recovered(store: RunStoreOptions, path: string): Promise<number> {
      const look = await openRunStore(store);
      const done = await finishedSteps(look);
      await look.close();
      expect(await finished(work({ store, mode: "recover", effects: path, leaseMs: 60_000 }))).toBe(true);
      return expectExact(store, path, done);
    }

    it("at every write point loses nothing and repeats nothing that was done", { timeout: TIMEOUT }, async () => {
      const store = await place();
      const path = effects();
      let deaths = 0;
      for (let next = 1, ended = false; !ended; next += 3) {
        const points = [next, next + 1, next + 2];
        const ends = await Promise.all(
          points.map((dieAt) => finished(work({ store, mode: "run", effects: path, runId: `point-${dieAt}`, dieAt, leaseMs: 1_000 }))),
        );
        deaths += ends.filter((end) => !end).length;
        ended = ends.some(Boolean);
      }
      expect(deaths).toBeGreaterThanOrEqual(18);
      await recovered(store, path);
    });

    it("at random moments loses nothing and repeats nothing that was done", { timeout: TIMEOUT }, async () => {
      const store = await place();
      const path = effects();
      const kills = soak ? 200 : 8;
      for (let i = 0; i < kills; i += 2)
        await Promise.all(
          [i, i + 1].map(async (n) => {
            const child = work({ store, mode: "run-many", effects: path, runId: `random-${n}`, leaseMs: 1_000, paceMs: 3 });
            await once(child.stdout!, "data");
            await sleep(Math.random() * 300);
            child.kill("SIGKILL");
            expect(await finished(child)).toBe(false);
          }),
        );
      expect(await recovered(store, path)).toBeGreaterThan(0);
    });
  });

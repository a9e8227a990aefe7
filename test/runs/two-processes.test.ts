import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, describe, expect, it, vi } from "vitest";
import { openRunStore, type RunStoreOptions } from "../../src/runs.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { finished, soak, work } from "./processes.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-two-"));
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

for (const [name, place] of Object.entries(stores))
  describe(`two processes and one run on ${name}`, () => {
    const count = soak ? 500 : 30;

    it("exactly one advances it, every time", { timeout: soak ? 1_800_000 : 600_000 }, async () => {
      const store = await place();
      const effects = join(folder, `effects-${places++}`);
      writeFileSync(effects, "");
      await finished(work({ store, mode: "pause", effects, runId: "race", count }));

      const racers = [0, 1].map(() => work({ store, mode: "race", effects, leaseMs: 30_000 }));
      const lines = racers.map((racer) => createInterface({ input: racer.stdout! })[Symbol.asyncIterator]());
      for (const line of lines) expect((await line.next()).value).toBe("ready");
      const outcomes: string[][] = [];
      for (let i = 0; i < count; i++) {
        const order = `${JSON.stringify({ id: `race-${i}`, at: Date.now() + 15 })}\n`;
        for (const racer of racers) racer.stdin!.write(order);
        outcomes.push(await Promise.all(lines.map(async (line) => JSON.parse((await line.next()).value as string).outcome)));
      }
      for (const racer of racers) racer.stdin!.end();
      for (const racer of racers) expect(await finished(racer)).toBe(true);

      // The other found the run held, or came when it was complete.
      for (const pair of outcomes) {
        expect(pair).toContain("completed");
        for (const outcome of pair) expect(["completed", "held"]).toContain(outcome);
      }
      const acted = readFileSync(effects, "utf8").trim().split("\n");
      expect(acted.map((line) => JSON.parse(line).runId).sort()).toEqual(Array.from({ length: count }, (_, i) => `race-${i}`).sort());
      const look = await openRunStore(store);
      for (let i = 0; i < count; i++) {
        const history = await look.history(`race-${i}`, { limit: 20 });
        expect(history.map(({ kind, nodeId }) => `${kind} ${nodeId}`)).toEqual([
          "node act",
          "node ask",
          "answer ask",
          "pause ask",
          "start __start__",
        ]);
      }
      await look.close();
    });

    it("one that was stopped past its lease is fenced off when it wakes up", async () => {
      const store = await place();
      const effects = join(folder, `effects-${places++}`);
      writeFileSync(effects, "");
      const sleeper = work({ store, mode: "slow", effects, runId: "slow", leaseMs: 1_000 });
      const said = linesOf(sleeper);
      await vi.waitFor(() => expect(said).toContain("working"), 120_000);
      sleeper.kill("SIGSTOP");
      const look = await openRunStore(store);
      await vi.waitFor(async () => expect(await look.listRuns({ abandoned: true, limit: 1 })).toHaveLength(1), {
        timeout: 120_000,
        interval: 100,
      });
      const taken = await look.acquire("slow", { owner: "another", leaseMs: 60_000 });
      await look.save(
        { runId: "slow", nodeId: "prepare", nextNode: "__end__", state: new Uint8Array() },
        { fence: taken.fence, status: "completed" },
      );
      const before = await look.history("slow", { limit: 10 });
      sleeper.stdin!.end("continue\n");
      sleeper.kill("SIGCONT");
      expect(await finished(sleeper)).toBe(true);
      expect(said.at(-1)).toBe("lease");
      expect(await look.history("slow", { limit: 10 })).toEqual(before);
      expect(await look.getRun("slow")).toMatchObject({ status: "completed", fence: taken.fence });
      await look.close();
    });

    it("one that was stopped past its lease cannot write though nobody took over", async () => {
      const store = await place();
      const effects = join(folder, `effects-${places++}`);
      writeFileSync(effects, "");
      const sleeper = work({ store, mode: "slow", effects, runId: "slow", leaseMs: 1_000 });
      const said = linesOf(sleeper);
      await vi.waitFor(() => expect(said).toContain("working"), 120_000);
      sleeper.kill("SIGSTOP");
      const look = await openRunStore(store);
      await vi.waitFor(async () => expect(await look.listRuns({ abandoned: true, limit: 1 })).toHaveLength(1), {
        timeout: 120_000,
        interval: 100,
      });
      sleeper.stdin!.end("continue\n");
      sleeper.kill("SIGCONT");
      expect(await finished(sleeper)).toBe(true);
      expect(said.at(-1)).toBe("lease");
      expect((await look.history("slow", { limit: 10 })).map(({ kind }) => kind)).toEqual(["start"]);
      await look.close();
    });
  });

function linesOf(child: ChildProcess): string[] {
  const lines: string[] = [];
  createInterface({ input: child.stdout! }).on("line", (line) => lines.push(line));
  return lines;
}

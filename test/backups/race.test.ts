import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CairnError } from "../../src/index.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { counts, startSaver } from "../faults/processes.ts";
import { dataFolder, PROJECT } from "./folders.ts";

let at: ReturnType<typeof dataFolder>;
beforeEach(() => {
  at = dataFolder();
});
afterEach(() => at.clear());

const project = { kind: "project", id: PROJECT } as const;

async function idsIn(path: string): Promise<string[]> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path);
  try {
    return (connection.prepare("SELECT id FROM checkpoints").all() as { id: string }[]).map(({ id }) => id);
  } finally {
    connection.close();
  }
}

describe("a restore among processes that come, write and go", () => {
  it("loses no write that was acknowledged: each is in the database or in one that was kept aside", { timeout: 900_000 }, async () => {
    const cairn = await at.open();
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "First" });
    const { id } = await cairn.backups.create(project);
    await cairn.close();
    const acknowledged: string[] = [];
    let writing = true;
    const writers = [0, 1].map(async () => {
      for (let round = 0; round < counts({ short: 5, soak: 40 }); round++) {
        const saver = startSaver({ storage: "sqlite", dataDir: at.dataDir, project: PROJECT, count: 4, atOnce: 2 });
        await saver.ready;
        saver.go();
        expect(await saver.ended, saver.errors()).toBe(0);
        acknowledged.push(...saver.acknowledged);
      }
    });
    const restoring = (async () => {
      let [restored, refused] = [0, 0];
      while (writing) {
        const mine = await at.open();
        try {
          await mine.backups.restore({ id, which: project, overwrite: true });
          restored++;
        } catch (error) {
          if (!(error instanceof CairnError && error.code === "conflict")) throw error;
          refused++;
        }
        await mine.close();
      }
      return { restored, refused };
    })();
    await Promise.all(writers).finally(() => {
      writing = false;
    });
    const { restored } = await restoring;
    expect(restored).toBeGreaterThan(0);
    const aside = join(at.dataDir, "replaced");
    const found = new Set(await idsIn(at.file()));
    for (const name of readdirSync(aside)) for (const one of await idsIn(join(aside, name))) found.add(one);
    expect(acknowledged.length).toBeGreaterThan(30);
    expect(acknowledged.filter((one) => !found.has(one))).toEqual([]);
  });
});

describe("a restore in a process that continues to work", () => {
  it("is done or refused as in use, and no save that was acknowledged is lost", async () => {
    const cairn = await at.open();
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "First" });
    await cairn.backups.create(project);
    const acknowledged: string[] = [];
    let working = true;
    const worker = async () => {
      while (working) {
        try {
          acknowledged.push((await cairn.checkpoints.save({ projectPath: PROJECT, summary: "Work" })).id);
          await nextTurn(); // as a server's requests do
        } catch (error) {
          if (!(error instanceof CairnError && error.code === "unavailable")) throw error; // the caller can try again
          await sleep(5);
        }
      }
    };
    const workers = [worker(), worker()];
    try {
      await cairn.backups.restore({ which: project, overwrite: true });
    } catch (error) {
      expect(error).toMatchObject({ code: "conflict", message: expect.stringContaining("in use") });
    }
    while (acknowledged.length <= 3) await Promise.race([sleep(5), ...workers]);
    working = false;
    await Promise.all(workers);
    await cairn.backups.restore({ which: project, overwrite: true }); // nobody uses it any more
    expect((await cairn.checkpoints.list({ projectPath: PROJECT })).total).toBe(1);
    await cairn.close();
    const aside = join(at.dataDir, "replaced");
    const found = new Set(await idsIn(at.file()));
    for (const name of readdirSync(aside)) for (const one of await idsIn(join(aside, name))) found.add(one);
    expect(acknowledged.length).toBeGreaterThan(3);
    expect(acknowledged.filter((one) => !found.has(one))).toEqual([]);
  });
});

describe("a database on its way to PostgreSQL", () => {
  it.each([
    ["fenced", /being migrated.*--rollback/],
    ["migrated", /on PostgreSQL.*pg_dump/],
  ])("that is %s is neither backed up nor restored over", async (state, words) => {
    const cairn = await at.open();
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "One" });
    await cairn.checkpoints.save({ projectPath: "/other", summary: "Two" });
    await cairn.backups.create(project);
    const record = {
      migrationId: "m",
      projectId: PROJECT,
      direction: "up",
      state,
      url: "postgres://127.0.0.1:1/x",
      where: "x",
      startedAt: new Date().toISOString(),
    };
    writeFileSync(`${at.file()}.migration`, JSON.stringify(record), { mode: 0o600 });
    await expect(cairn.backups.create(project)).rejects.toMatchObject({ code: "conflict", message: expect.stringMatching(words) });
    await expect(cairn.backups.restore({ which: project, overwrite: true })).rejects.toMatchObject({ code: "conflict" });
    const { databases, failed } = await cairn.backups.create("all");
    expect(databases.map(({ id }) => id)).toEqual(["/other"]);
    expect(failed).toMatchObject([{ id: PROJECT }]);
    const { findings } = await cairn.doctor.examine({ quick: true });
    expect(findings.filter(({ check }) => check === "migrations")).toHaveLength(state === "migrated" ? 0 : 1);
  });
});

describe("a system that this process uses", () => {
  it("is restored under it, and the next call sees the restored state", async () => {
    const cairn = await at.open();
    const shop = await cairn.systems.storage.create("shop");
    const put = (value: string, version: number) =>
      shop.commit({
        component: "store",
        version,
        at: new Date().toISOString(),
        messages: [],
        ports: [],
        state: [["stock", Buffer.from(value)]],
      });
    const stock = async () => Buffer.from((await shop.state("store", ["stock"]))[0]!).toString();
    expect(await put("three", 0)).toBe(true);
    await cairn.backups.create({ kind: "system", id: "shop" });
    expect(await put("none", 1)).toBe(true);
    await cairn.backups.restore({ which: { kind: "system", id: "shop" }, overwrite: true });
    expect(await stock()).toBe("three");
    expect(await put("four", 2)).toBe(false); // worked out from a state that is gone
    expect(await put("four", 1)).toBe(true);
    expect(await stock()).toBe("four");
  });
});

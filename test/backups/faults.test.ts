import { spawn } from "node:child_process";
import { cpSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { checkFile } from "../../src/stores/sqlite/driver/damage.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { sqliteSystemStorage } from "../../src/stores/sqlite/systems/storage.ts";
import { type FaultMode, faultShim } from "../faults/fault-shim.ts";
import { counts } from "../faults/processes.ts";

const shim = faultShim();
const { folder } = shim;
const template = join(folder, "template");
const which = { kind: "system", id: "shop" } as const;
const at = new Date().toISOString();

/** A system with a backup of the state "backed up", whose file and log now hold the state "present". */
beforeAll(async () => {
  const places = placesIn(template);
  await put(places.stateDir, "backed up", 0);
  const cairn = await open({ ...places, embedder: [] });
  await cairn.backups.create(which);
  await cairn.close();
  await put(places.stateDir, "present", 1);
  // Killed, it leaves a write-ahead log.
  const holding = spawn(process.execPath, [join(import.meta.dirname, "../doctor/system-process.mjs"), places.stateDir, String(Date.now())]);
  await new Promise((resolve) => holding.stdout.once("data", resolve));
  await new Promise((resolve) => holding.once("close", resolve).kill("SIGKILL"));
  expect(existsSync(join(places.stateDir, "checkpoints", "shop.db-wal"))).toBe(true);
});

function placesIn(root: string) {
  return { dataDir: join(root, "data"), stateDir: join(root, "state"), backupDir: join(root, "backups") };
}

async function put(stateDir: string, value: string, version: number): Promise<void> {
  const storage = sqliteSystemStorage({ stateDir });
  const store = await storage.create("shop");
  const state = [["value", Buffer.from(value)]] as const;
  expect(await store.commit({ component: "store", version, at, messages: [], ports: [], state })).toBe(true);
  await storage.close();
}

interface Fault {
  readonly action: "backup" | "restore";
  /** Which files: a part of their path. */
  readonly path: "/backups/" | "/state/";
  readonly nth: number;
  readonly mode: FaultMode;
}

/** Runs the action on a copy of the template, with one fault. */
async function withFault({ action, path, nth, mode }: Fault) {
  const root = join(folder, `${action}-${mode}-${nth}`);
  cpSync(template, root, { recursive: true });
  const places = placesIn(root);
  const args = [join(import.meta.dirname, "backup-process.mjs"), action, places.dataDir, places.stateDir, places.backupDir];
  const { lines, ended, operations } = await shim.run({ args, path: `${root}${path}`, nth, mode });
  return { places, said: lines.join("\n").trim(), ended, points: operations, clear: () => rmSync(root, { recursive: true }) };
}

/** Every write point in a soak; in a short run some of them, the last ones among them, where it matters most. */
function chosen(points: number, few: number): number[] {
  const all = Array.from({ length: points }, (_, index) => index + 1);
  const every = Math.ceil(points / few);
  return counts({ short: all.filter((point) => point % every === 0 || point > points - few / 2), soak: all });
}

async function two<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const turn = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all([turn(), turn()]);
}

/** What a database file that nobody uses holds. */
async function valueIn(path: string): Promise<string> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path);
  try {
    const row = connection.prepare("SELECT value FROM state WHERE component_name = 'store' AND key = 'value'").get() as {
      value: Uint8Array;
    };
    return Buffer.from(row.value).toString();
  } finally {
    connection.close();
  }
}

describe("a backup", () => {
  it("that is killed at any write is whole or not there, and the next one works", { timeout: 900_000 }, async () => {
    const { points, said, clear } = await withFault({ action: "backup", path: "/backups/", nth: 0, mode: "kill" });
    expect(said).toBe("done");
    expect(points).toBeGreaterThan(20);
    clear();
    let killed = 0;
    await two(chosen(points, 6), async (nth) => {
      const run = await withFault({ action: "backup", path: "/backups/", nth, mode: "kill" });
      if (run.ended !== "SIGKILL")
        expect(run.said, `point ${nth}`).toBe("done"); // the number of writes differs a little from run to run
      else killed++;
      const cairn = await open({ ...run.places, embedder: [] });
      const listed = await cairn.backups.list();
      for (const { id } of listed) expect(await cairn.backups.verify({ id, level: "full" }), `point ${nth}`).toMatchObject({ sound: true });
      expect([1, 2], `point ${nth}`).toContain(listed.length);
      await cairn.backups.create(which);
      expect(readdirSync(run.places.backupDir).filter((name) => name.startsWith("."))).toEqual([]);
      expect(await cairn.backups.list()).toHaveLength(listed.length + 1);
      await cairn.close();
      expect(await valueIn(join(run.places.stateDir, "checkpoints", "shop.db"))).toBe("present");
      run.clear();
    });
    expect(killed).toBeGreaterThan(4);
  });

  it.each([
    ["the disk is full", "ENOSPC" as const, /disk that holds .* is full|Reading or writing/],
    ["the disk fails", "EIO" as const, /cannot be written|Reading or writing|not sound|differs/],
  ])("that finds at any write that %s reports it and leaves nothing, or is complete", { timeout: 900_000 }, async (_, mode, words) => {
    const { points, clear } = await withFault({ action: "backup", path: "/backups/", nth: 0, mode });
    clear();
    const said: string[] = [];
    await two(chosen(points, 4), async (nth) => {
      const run = await withFault({ action: "backup", path: "/backups/", nth, mode });
      expect(run.ended).toBe(0);
      const cairn = await open({ ...run.places, embedder: [] });
      const listed = await cairn.backups.list();
      if (run.said === "done") expect(listed, `point ${nth}`).toHaveLength(2);
      else {
        said.push(run.said);
        expect(run.said, `point ${nth}`).toMatch(/^unavailable: /);
        expect(run.said, `point ${nth}`).toMatch(words);
        expect(listed.length, `point ${nth}: ${run.said}`).toBeLessThanOrEqual(2);
      }
      for (const { id } of listed) expect(await cairn.backups.verify({ id, level: "full" }), `point ${nth}`).toMatchObject({ sound: true });
      await cairn.close();
      expect(
        readdirSync(run.places.backupDir).filter((name) => name.startsWith(".")),
        `point ${nth}: ${run.said}`,
      ).toEqual([]);
      run.clear();
    });
    expect(said.length).toBeGreaterThan(2);
    if (mode === "ENOSPC") expect(said.filter((text) => text.includes("is full")).length).toBeGreaterThan(1);
  });
});

describe("a restore", () => {
  it("that is killed at any write leaves the old state or the new, loses neither, and works when run again", {
    timeout: 900_000,
  }, async () => {
    const { points, said, clear, places } = await withFault({ action: "restore", path: "/state/", nth: 0, mode: "kill" });
    expect(said).toBe("done");
    expect(await valueIn(join(places.stateDir, "checkpoints", "shop.db"))).toBe("backed up");
    expect(points).toBeGreaterThan(5);
    clear();
    const found = new Set<string>();
    let killed = 0;
    await two(chosen(points, 8), async (nth) => {
      const run = await withFault({ action: "restore", path: "/state/", nth, mode: "kill" });
      if (run.ended !== "SIGKILL")
        expect(run.said, `point ${nth}`).toBe("done"); // the number of writes differs a little from run to run
      else killed++;
      const live = join(run.places.stateDir, "checkpoints", "shop.db");
      const value = await valueIn(live); // by a connection that may write, as every use of it is: it takes back what was half done
      expect((await checkFile(live)).problems, `point ${nth}`).toEqual([]);
      found.add(value);
      if (value !== "present") expect(value, `point ${nth}`).toBe("backed up");
      const cairn = await open({ ...run.places, embedder: [] });
      await cairn.backups.restore({ which, overwrite: true });
      expect(await valueIn(live)).toBe("backed up");
      // The database before the first attempt is kept, once.
      const aside = join(run.places.stateDir, "replaced");
      const kept = await Promise.all(readdirSync(aside).map((name) => valueIn(join(aside, name))));
      expect(
        kept.filter((one) => one === "present"),
        `point ${nth}`,
      ).toHaveLength(1);
      expect(await cairn.doctor.examine({ quick: true })).toMatchObject({ findings: [] });
      await cairn.close();
      run.clear();
    });
    expect(killed).toBeGreaterThan(4);
    expect(found.has("present")).toBe(true);
  });
});

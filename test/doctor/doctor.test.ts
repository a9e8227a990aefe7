import { spawn } from "node:child_process";
import { linkSync, mkdirSync, readdirSync, truncateSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DoctorReport } from "../../src/model/doctor.ts";
import { sqliteRunStore } from "../../src/stores/sqlite/runs/store.ts";
import { sqliteSystemStorage } from "../../src/stores/sqlite/systems/storage.ts";
import { dataFolder, filesUnder, PROJECT } from "../backups/folders.ts";

let at: ReturnType<typeof dataFolder>;
beforeEach(() => {
  at = dataFolder();
});
afterEach(() => at.clear());

const NOON = Date.parse("2026-03-01T12:00:00.000Z");
const clock = () => new Date(NOON).toISOString();
/** A machine that is short of room must not decide these tests. */
const roomy = { freeDiskMinBytes: 0 };

/** Returns N commits, spread over the last seconds before noon. */
async function commits(count: number, { system = "shop", spreadSeconds = 30, bytes = 10 } = {}): Promise<void> {
  const storage = sqliteSystemStorage({ stateDir: at.stateDir });
  const store = await storage.create(system);
  const { version } = await store.load("store", []);
  for (let i = 0; i < count; i++) {
    const when = new Date(NOON - (spreadSeconds * 1_000 * i) / count).toISOString();
    const state = [[`key ${i}`, Buffer.alloc(bytes, i)]] as const;
    expect(await store.commit({ component: "store", version: version + i, at: when, messages: [], ports: [], state })).toBe(true);
  }
  await storage.close();
}

function fired({ systems }: DoctorReport): string[] {
  return systems.flatMap(({ systemId, triggers }) => triggers.filter((one) => one.fired).map(({ name }) => `${systemId} ${name}`));
}

const examine = async (settings = {}, quick = false, commitsPerSecond = 1) =>
  (await at.open({ now: clock, doctor: { ...roomy, ...settings }, systems: { commitsPerSecond } })).doctor.examine({ quick });

describe("a system is driven over one threshold", () => {
  it("under all of them nothing fires", async () => {
    await commits(50);
    const report = await examine();
    expect(fired(report)).toEqual([]);
    expect(report).toMatchObject({ healthy: true, findings: [] });
    expect(report.systems).toMatchObject([{ systemId: "shop", command: undefined }]);
    const measured = Object.fromEntries(report.systems[0]!.triggers.map(({ name, measured: figure }) => [name, figure]));
    expect(measured).toMatchObject({ processes: 1, compliance: 0 });
    expect(measured.write_rate).toBeCloseTo(50 / 60, 5);
    expect(measured.size).toBeGreaterThan(8_192);
    expect(measured.rto).toBeGreaterThan(0);
    expect(report.versions).toMatchObject({ node: process.versions.node, database: expect.stringMatching(/^SQLite 3\./) });
  });

  it("write rate: a component that uses up its write budget over the window, and the command that helps is named", async () => {
    await commits(55);
    await commits(1, { system: "quiet" });
    const report = await examine();
    expect(fired(report)).toEqual(["shop write_rate"]);
    expect(report.healthy).toBe(false);
    const shop = report.systems.find(({ systemId }) => systemId === "shop")!;
    expect(shop.command).toBe("cairn migrate --to postgres://… --system shop");
    expect(shop.triggers.find(({ name }) => name === "write_rate")!.message).toBe(
      "0.92 commits/s by store over 60 s; limit 0.9/s, 90 % of the write budget",
    );
    expect(fired(await examine({}, false, 2))).toEqual([]);
    expect(fired(await examine({ windowSeconds: 600 }))).toEqual([]);
  });

  it("write rate: commits before the window do not count", async () => {
    await commits(120, { spreadSeconds: 3_000 });
    expect(fired(await examine())).toEqual([]);
    expect(fired(await examine({ windowSeconds: 3_600 }))).toEqual([]);
  });

  it("processes: a second one that writes", async () => {
    await commits(2);
    const other = await holdOpen(NOON);
    await other.end();
    // It is gone, and what it did is still in the window.
    const report = await examine();
    expect(fired(report)).toEqual(["shop processes"]);
    expect(report.systems[0]!.triggers[0]!.message).toContain(`${other.pid}@${hostname()}`);
    expect(fired(await examine({ processesMax: 2 }))).toEqual([]);
  });

  it("processes: a second one that only has it open now", async () => {
    await commits(2);
    const reading = await holdOpen(undefined);
    expect(fired(await examine())).toEqual(["shop processes"]);
    await reading.end();
    expect(fired(await examine())).toEqual([]);
  });

  it("size: the write-ahead log counts", async () => {
    await commits(1);
    const storage = sqliteSystemStorage({ stateDir: at.stateDir });
    const store = await storage.create("shop");
    const state = [["big", Buffer.alloc(400_000, 1)]] as const;
    await store.commit({ component: "other", version: 0, at: clock(), messages: [], ports: [], state });
    const { systems } = await examine({}, true);
    const bytes = systems[0]!.triggers.find(({ name }) => name === "size")!.measured!;
    expect(bytes).toBeGreaterThan(400_000); // still in the log, because it is open
    expect(fired(await examine({ sizeMaxBytes: bytes - 1 }, true))).toEqual(["shop size"]);
    expect(fired(await examine({ sizeMaxBytes: bytes }, true))).toEqual([]);
    await storage.close();
  });

  it("rto: the trial restore takes longer than required, or less is required than a file can promise", async () => {
    await commits(2);
    expect(fired(await examine({ rtoSeconds: 0.000_1, rtoFloorSeconds: 0 }))).toEqual(["shop rto"]);
    expect(fired(await examine({ rtoSeconds: 9 }))).toEqual(["shop rto"]);
    expect(fired(await examine({ rtoSeconds: 9, rtoFloorSeconds: 9 }))).toEqual([]);
    const quick = await examine({ rtoSeconds: 0.000_1, rtoFloorSeconds: 0 }, true);
    expect(quick.systems[0]!.triggers.find(({ name }) => name === "rto")).toMatchObject({ fired: false, measured: undefined });
    expect(readdirSync(at.backupDir)).toEqual([]); // the trial leaves nothing
  });

  it("compliance: what is required is named", async () => {
    await commits(2);
    const report = await examine({ compliance: { centralBackup: true, pitr: true, auditLog: false } }, true);
    expect(fired(report)).toEqual(["shop compliance"]);
    expect(report.systems[0]!.triggers.at(-1)!.message).toBe("required: central backup, point-in-time recovery");
  });
});

describe("general health", () => {
  const findings = async (settings = {}, quick = false) => {
    const { findings: found, healthy } = await examine(settings, quick);
    return { healthy, found: found.map(({ check, severity, subject }) => `${severity} ${check} ${subject}`) };
  };

  it("of nothing at all is good, and nothing is made", async () => {
    expect(await findings()).toEqual({ healthy: true, found: [] });
    expect(filesUnder(at.folder)).toEqual(["data", "data/projects"]);
  });

  it("names a damaged database and the way back, and looks at the others all the same", async () => {
    await commits(2);
    await commits(61, { system: "busy" });
    truncateSync(join(at.stateDir, "checkpoints", "shop.db"), 20_000);
    const report = await examine();
    expect(report.findings).toMatchObject([
      { check: "integrity", subject: "system shop", command: "cairn restore --system shop --overwrite" },
    ]);
    expect(fired(report)).toContain("busy write_rate");
    expect(report.healthy).toBe(false);
  });

  it("names a project that cannot be opened at all", async () => {
    const cairn = await at.open();
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "One" });
    await cairn.close();
    writeFileSync(at.file(), "garbage ".repeat(2_000));
    const { healthy, found } = await findings();
    expect(healthy).toBe(false);
    expect(found).toEqual([`problem integrity project ${basename(at.file(), ".db")}`]);
  });

  it("reports a full disk, a large project and a newer schema", async () => {
    const cairn = await at.open();
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "One" });
    await cairn.close();
    expect((await findings({ freeDiskMinBytes: Number.MAX_SAFE_INTEGER }, true)).found).toEqual([`problem disk ${at.dataDir}`]);
    expect((await findings({ sizeMaxBytes: 10_000 }, true)).found).toEqual([`problem size project ${PROJECT}`]);
    const { loadEngine } = await import("../../src/stores/sqlite/driver/engine.ts");
    const { DatabaseSync } = await loadEngine();
    const future = new DatabaseSync(at.file());
    future.exec("INSERT INTO schema_migrations (migration_id, migration_name, checksum) VALUES (999, 'from the future', 'x')");
    future.close();
    expect((await findings({}, true)).found).toEqual([`problem schema project ${PROJECT}`]);
  });

  it("notes what nothing uses: logs without database, unfinished restores and backups, second names", async () => {
    await commits(1);
    const cairn = await at.open();
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "One" });
    const { id } = await cairn.backups.create("all");
    await cairn.close();
    const dead = `-999999999@${hostname()}`;
    writeFileSync(join(at.dataDir, "projects", "project_0123456789abcdef.db-wal"), "");
    writeFileSync(`${at.file()}.restoring-${id}${dead}`, "");
    mkdirSync(join(at.backupDir, `.partial-${id}${dead}`));
    mkdirSync(join(at.backupDir, "20260101T000000Z-00000000"));
    mkdirSync(join(at.dataDir, "replaced"));
    linkSync(at.file(), join(at.dataDir, "replaced", "second.db"));
    const { healthy, found } = await findings({}, true);
    expect(healthy).toBe(true); // a note does not change it
    expect(found.map((line) => line.replace(at.folder, ""))).toEqual([
      "note leftovers /data/projects/project_0123456789abcdef.db-wal",
      `note leftovers /data/projects/${basename(at.file())}.restoring-${id}${dead}`,
      "note leftovers /data/replaced/second.db",
      `note leftovers /data/backups/.partial-${id}${dead}`,
      "note leftovers /data/backups/20260101T000000Z-00000000",
    ]);
  });

  it("reports runs whose process ended, after a while", async () => {
    const store = sqliteRunStore({ path: join(at.dataDir, "runs.db"), now: () => new Date(NOON - 600_000).toISOString() });
    await store.start({ runId: "r1", graph: "g", fingerprint: "f", owner: "me", leaseMs: 1_000, first: { nodeId: "a", state: "{}" } });
    await store.close();
    const { findings: found } = await examine({}, true);
    expect(found).toMatchObject([{ check: "leases", severity: "problem", command: "cairn run list --abandoned" }]);
    expect(found[0]!.message).toContain("1 runs");
    expect((await findings({ staleLeaseSeconds: 3_600 }, true)).found).toEqual([]);
  });

  it("reports records without a vector", async () => {
    const { hashEmbedder } = await import("../support/hash-embedder.mjs");
    const cairn = await at.open({ embedder: [hashEmbedder({ model: "hash", dimension: 16 })] });
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "With a vector" });
    await cairn.close();
    const without = await at.open();
    for (const summary of ["One", "Two"]) await without.checkpoints.save({ projectPath: PROJECT, summary });
    expect((await findings({ embeddingBacklogMax: 2 }, true)).found).toEqual([]);
    expect((await findings({ embeddingBacklogMax: 1 }, true)).found).toEqual([`problem embeddings project ${PROJECT}`]);
  });

  it("reports a failed trial restore instead of failing", async () => {
    await commits(1);
    writeFileSync(join(at.folder, "taken"), "a file");
    const cairn = await at.open({ now: clock, doctor: roomy, backupDir: join(at.folder, "taken") });
    const report = await cairn.doctor.examine();
    expect(report.findings).toMatchObject([{ check: "recovery", severity: "problem", subject: "system shop" }]);
    expect(report.findings[0]!.message).toContain("taken cannot be written");
    expect(report.healthy).toBe(false);
  });

  it("notes snapshots that were begun long ago and never completed", async () => {
    const storage = sqliteSystemStorage({ stateDir: at.stateDir });
    const store = await storage.create("shop");
    await store.beginSnapshot({ id: "young", createdAt: clock(), mode: "consistent" });
    await store.beginSnapshot({ id: "old", createdAt: new Date(NOON - 3_600_000).toISOString(), mode: "consistent" });
    await storage.close();
    const report = await examine({}, true);
    expect(report.findings).toMatchObject([{ check: "snapshots", severity: "note", message: expect.stringContaining("1 snapshots") }]);
    expect(report.healthy).toBe(true);
  });
});

/** A process that has the system open; with a time, it commits once as if at that time. */
async function holdOpen(commitAt: number | undefined) {
  const args = [join(import.meta.dirname, "system-process.mjs"), at.stateDir, String(commitAt ?? "")];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  return { pid: child.pid!, end: () => new Promise((resolve) => child.once("close", resolve).kill("SIGKILL")) };
}

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/model/ids.ts";
import { startSaver } from "../faults/processes.ts";
import { storedIds } from "../faults/stored-ids.ts";
import { dataFolder, filesUnder, forgeManifest, PROJECT, summaries } from "./folders.ts";

let at: ReturnType<typeof dataFolder>;
beforeEach(() => {
  at = dataFolder();
});
afterEach(() => at.clear());

const project = { kind: "project", id: PROJECT } as const;

describe("a backup", () => {
  it("holds every kind of database, with counts and checksums, in private files", async () => {
    const cairn = await at.open();
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "One" });
    await cairn.checkpoints.save({ projectPath: "/other", summary: "Two" });
    await cairn.knowledge.save({ scope: "shared", kind: "faq", question: "Why?", answer: "Because." });
    await cairn.runs.list({});
    const backup = await cairn.backups.create("all");
    expect(backup.databases.map(({ kind, id }) => `${kind} ${id}`).sort()).toEqual([
      `project ${PROJECT}`,
      "project /other",
      "runs runs",
      "shared shared",
    ]);
    expect(backup.failed).toEqual([]);
    for (const { file, bytes, sha256, tables } of backup.databases) {
      const path = join(backup.location, file);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(readFileSync(path)).toHaveLength(bytes);
      expect(sha256Hex(readFileSync(path))).toBe(sha256);
      expect(tables.map(({ name }) => name)).toContain("schema_migrations");
    }
    const own = backup.databases.find(({ id }) => id === PROJECT)!;
    expect(own.tables.find(({ name }) => name === "checkpoints")).toMatchObject({ rows: 1 });
    expect(readdirSync(backup.location).sort()).toEqual([...backup.databases.map(({ file }) => file), "manifest.json"].sort());
    const { onPostgres, ...kept } = backup; // known when it is made, and no part of it
    expect(onPostgres).toEqual([]);
    expect(await cairn.backups.list()).toEqual([kept]);
    expect(await cairn.backups.verify({ level: "full" })).toMatchObject({ id: backup.id, sound: true });
  });

  it("is one moment of a database that other processes write to, and holds all that was acknowledged before", async () => {
    const options = { storage: "sqlite", dataDir: at.dataDir, project: PROJECT, count: 1_000_000, atOnce: 4 };
    const savers = [startSaver(options), startSaver(options)];
    await Promise.all(savers.map(({ ready }) => ready));
    for (const saver of savers) saver.go();
    await Promise.all(savers.map((saver) => saver.reached(50)));
    const cairn = await at.open();
    const rounds = [];
    for (let round = 0; round < 3; round++) {
      const before = savers.flatMap(({ acknowledged }) => [...acknowledged]);
      rounds.push({ before, backup: await cairn.backups.create(project) });
    }
    for (const saver of savers) saver.child.kill("SIGKILL");
    for (const saver of savers) expect(await saver.ended, saver.errors()).toBe("SIGKILL");
    for (const { before, backup } of rounds) {
      expect(await cairn.backups.verify({ id: backup.id, level: "full" })).toMatchObject({ sound: true });
      await cairn.backups.restore({ id: backup.id, which: project, overwrite: true });
      const there = await storedIds(cairn, PROJECT);
      expect(before.filter((id) => !there.has(id))).toEqual([]);
    }
  });

  it("is refused with words when the folder cannot be written, and leaves nothing", async () => {
    const cairn = await at.open({ backupDir: join(at.folder, "taken") });
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "One" });
    writeFileSync(join(at.folder, "taken"), "a file");
    await expect(cairn.backups.create(project)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("taken cannot be written"),
    });
    if (process.getuid?.() === 0) return; // root may write anywhere
    const closed = join(at.folder, "closed");
    mkdirSync(closed, { mode: 0o500 });
    await expect((await at.open({ backupDir: join(closed, "b") })).backups.create(project)).rejects.toMatchObject({ code: "unavailable" });
    chmodSync(closed, 0o700);
    expect(readdirSync(closed)).toEqual([]);
  });

  it("of all leaves out a damaged database, reports it, and keeps the others", async () => {
    const cairn = await at.open();
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "One" });
    await cairn.checkpoints.save({ projectPath: "/other", summary: "Two" });
    await cairn.close();
    truncateSync(at.file("/other"), 9_000);
    const again = await at.open();
    const { databases, failed } = await again.backups.create("all");
    expect(databases.map(({ id }) => id)).toEqual([PROJECT]);
    expect(failed).toMatchObject([{ kind: "project", reason: expect.any(String) }]);
    await expect(again.backups.create({ kind: "project", id: "/other" })).rejects.toMatchObject({
      code: "unavailable",
      details: { damaged: true },
    });
    expect(await again.backups.list()).toHaveLength(1);
  });

  it("of nothing is refused", async () => {
    const cairn = await at.open();
    await expect(cairn.backups.create("all")).rejects.toMatchObject({ code: "not_found" });
    await expect(cairn.backups.create(project)).rejects.toMatchObject({ code: "not_found" });
    await expect(cairn.backups.restore({ which: project })).rejects.toMatchObject({ code: "not_found" });
    await expect(cairn.backups.verify({ id: "../../etc" })).rejects.toMatchObject({ code: "invalid_input" });
    expect(existsSync(at.backupDir)).toBe(false);
  });

  it("that was cancelled leaves nothing", async () => {
    const cairn = await at.open();
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "One" });
    const controller = new AbortController();
    const making = cairn.backups.create(project, { signal: controller.signal, progress: () => controller.abort() });
    await expect(making).rejects.toMatchObject({ name: "AbortError" });
    expect(readdirSync(at.backupDir)).toEqual([]);
  });
});

describe("verifying a backup", () => {
  async function made() {
    const cairn = await at.open();
    for (let i = 0; i < 40; i++)
      await cairn.checkpoints.save({ projectPath: PROJECT, summary: `Needle ${i}`, description: "hay ".repeat(500) });
    const { id, location, databases } = await cairn.backups.create(project);
    const path = join(location, databases[0]!.file);
    const verify = async (level: "count" | "integrity" | "checksum" | "full") => {
      const { sound, databases: verified } = await cairn.backups.verify({ id, level });
      expect(sound).toBe(verified.every(({ problems }) => problems.length === 0));
      return verified.flatMap(({ problems, damaged }) => [...problems, ...damaged]).join("; ");
    };
    return { cairn, id, location, path, verify };
  }

  it("count finds a missing row, a missing table and a missing file", async () => {
    const { path, verify } = await made();
    const whole = readFileSync(path);
    await change(path, "DELETE FROM checkpoint_tags; DELETE FROM checkpoints WHERE key = 7; VACUUM");
    truncateSync(path, whole.length); // same size, so that only the rows tell
    expect(await verify("count")).toMatch(/checkpoints has 39 rows instead of 40|bytes instead/);
    writeFileSync(path, whole);
    expect(await verify("count")).toBe("");
    truncateSync(path, whole.length - 8_192);
    expect(await verify("count")).toMatch(/bytes instead of/);
    rmSync(path);
    expect(await verify("count")).toBe("the file is missing");
  });

  it("integrity finds a broken structure that the counts do not show", async () => {
    const { path, verify } = await made();
    // One digit of a time in an index: the row is then missing from it.
    const bytes = readFileSync(path);
    const isIndexLeaf = (offset: number) => bytes[offset - (offset % 8_192)] === 0x0a;
    let where = bytes.indexOf("202");
    while (!isIndexLeaf(where)) where = bytes.indexOf("202", where + 1);
    bytes[where + 2] = "9".charCodeAt(0);
    writeFileSync(path, bytes);
    expect(await verify("count")).toBe("");
    expect(await verify("integrity")).not.toBe("");
  });

  it("checksum finds one flipped bit in a text, which the counts do not show", async () => {
    const { cairn, id, path, verify } = await made();
    const bytes = readFileSync(path);
    const where = bytes.indexOf("hay hay hay");
    bytes[where] = bytes[where]! ^ 1;
    writeFileSync(path, bytes);
    expect(await verify("count")).toBe("");
    expect(await verify("checksum")).toMatch(/its checksum is not the one in the manifest/);
    await expect(cairn.backups.restore({ id, which: project, overwrite: true })).rejects.toMatchObject({ code: "unavailable" });
    expect(await summaries(cairn)).toHaveLength(40);
  });

  it("integrity reports a record that was damaged when it was backed up, and the backup can be restored", async () => {
    const { cairn, location, path, id, verify } = await made();
    await change(path, "UPDATE checkpoints SET summary = 'Needle X' WHERE key = 3");
    const bytes = readFileSync(path);
    forgeManifest(location, ({ databases: [entry] }) => Object.assign(entry!, { sha256: sha256Hex(bytes), bytes: bytes.length }));
    expect(await verify("integrity")).toMatch(/checkpoints .*does not match its checksum/);
    await cairn.backups.restore({ id, which: project, overwrite: true });
    expect((await cairn.checkpoints.list({ projectPath: PROJECT, limit: 100 })).damaged).toHaveLength(1);
  });

  it("full finds a changed value even where file and manifest agree", async () => {
    const { location, path, verify } = await made();
    await change(path, "UPDATE checkpoints SET created_order = '2020-01-01T00:00:00.000Z' WHERE key = 3");
    const bytes = readFileSync(path);
    forgeManifest(location, ({ databases: [entry] }) => Object.assign(entry!, { sha256: sha256Hex(bytes), bytes: bytes.length }));
    expect(await verify("checksum")).toBe("");
    expect(await verify("full")).toBe("the table checkpoints has other values than it should");
  });

  it("refuses a manifest that was altered, and never lists or restores such a backup", async () => {
    const { cairn, id, location } = await made();
    const manifest = join(location, "manifest.json");
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace('"rows": 40', '"rows": 41'));
    await expect(cairn.backups.verify({ id })).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("manifest") });
    expect(await cairn.backups.list()).toEqual([]);
    await expect(cairn.backups.restore({ which: project, overwrite: true })).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("what a kill leaves", () => {
  it("is no backup, and the next backup removes it", async () => {
    const cairn = await at.open();
    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "One" });
    const { location, id } = await cairn.backups.create(project);
    const { hostname } = await import("node:os");
    const half = join(at.backupDir, `.partial-${id}-999999999@${hostname()}`);
    mkdirSync(half);
    writeFileSync(join(half, "manifest.json"), readFileSync(join(location, "manifest.json")));
    expect(await cairn.backups.list()).toHaveLength(1);
    await cairn.backups.create(project);
    expect(filesUnder(at.backupDir).filter((name) => name.startsWith(".partial"))).toEqual([]);
    expect(await cairn.backups.list()).toHaveLength(2);
  });
});

/** Changes a database file behind Cairn's back, and leaves one file. */
async function change(path: string, sql: string): Promise<void> {
  const { loadEngine } = await import("../../src/stores/sqlite/driver/engine.ts");
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  connection.exec(sql);
  connection.close();
}

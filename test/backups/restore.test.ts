import { spawn } from "node:child_process";
import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { checkFile } from "../../src/stores/sqlite/driver/damage.ts";
import { sqliteSystemStorage } from "../../src/stores/sqlite/systems/storage.ts";
import { dataFolder, PROJECT, summaries } from "./folders.ts";

let at: ReturnType<typeof dataFolder>;
beforeEach(() => {
  at = dataFolder();
});
afterEach(() => at.clear());

const project = { kind: "project", id: PROJECT } as const;
const save = (cairn: Awaited<ReturnType<typeof at.open>>, summary: string) => cairn.checkpoints.save({ projectPath: PROJECT, summary });

/** A process that has the database open and reads it on request and prints what it sees. */
async function reader(dataDir: string) {
  const child = spawn(process.execPath, [join(import.meta.dirname, "reading-process.mjs"), dataDir, PROJECT], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines: string[] = [];
  let heard: (() => void) | undefined;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    lines.push(...text.trim().split("\n"));
    heard?.();
  });
  const line = async () => {
    while (lines.length === 0)
      await new Promise<void>((resolve) => {
        heard = resolve;
      });
    return JSON.parse(lines.shift()!) as string[];
  };
  const first = await line();
  return {
    first,
    pid: child.pid!,
    read: async () => {
      child.stdin.write("read\n");
      return line();
    },
    end: () => new Promise((resolve) => child.once("close", resolve).kill("SIGKILL")),
  };
}

describe("a restore", () => {
  it("refuses to overwrite without permission, and keeps what it replaces", async () => {
    const cairn = await at.open();
    await save(cairn, "Kept");
    await cairn.backups.create(project);
    await save(cairn, "Later");
    await expect(cairn.backups.restore({ which: project })).rejects.toMatchObject({ code: "conflict" });
    expect(await summaries(cairn)).toEqual(["Kept", "Later"]);

    const { databases } = await cairn.backups.restore({ which: project, overwrite: true });
    expect(await summaries(cairn)).toEqual(["Kept"]);
    const { replaced, location } = databases[0]!;
    expect(location).toBe(at.file());
    expect((await checkFile(replaced!)).problems).toEqual([]);
    // What was set aside is itself a whole database that holds everything.
    const again = join(at.folder, "again");
    mkdirSync(join(again, "projects"), { recursive: true });
    copyFileSync(replaced!, join(again, "projects", basename(location)));
    expect(await summaries(await at.open({ dataDir: again }))).toEqual(["Kept", "Later"]);
  });

  it("brings back every kind of database where there is none", async () => {
    const cairn = await at.open();
    await save(cairn, "Mine");
    await cairn.knowledge.save({ scope: "shared", kind: "faq", question: "Why?", answer: "Because." });
    await cairn.runs.list({});
    const systems = sqliteSystemStorage({ stateDir: at.stateDir });
    const at0 = new Date().toISOString();
    const state = [["stock", Buffer.from("three")]] as const;
    await (await systems.create("shop")).commit({ component: "store", version: 0, at: at0, messages: [], ports: [], state });
    await cairn.backups.create("all");
    await systems.close();
    const elsewhere = join(at.folder, "new-machine");
    const stateDir = join(elsewhere, "state");
    const other = await open({ dataDir: elsewhere, stateDir, embedder: [], backupDir: at.backupDir });
    const { databases } = await other.backups.restore({ which: "all" });
    expect(databases.map(({ kind, replaced }) => [kind, replaced]).sort()).toEqual([
      ["project", undefined],
      ["runs", undefined],
      ["shared", undefined],
      ["system", undefined],
    ]);
    const restored = sqliteSystemStorage({ stateDir });
    expect(Buffer.from((await (await restored.find("shop"))!.state("store", ["stock"]))[0]!).toString()).toBe("three");
    await restored.close();
    expect(await summaries(other)).toEqual(["Mine"]);
    expect((await other.knowledge.list({ scope: "shared" })).total).toBe(1);
    await other.close();
  });

  it("takes the newest backup that holds what is asked for, or the one that is named", async () => {
    const cairn = await at.open();
    await save(cairn, "First");
    const first = await cairn.backups.create(project);
    await save(cairn, "Second");
    await cairn.backups.create(project);
    await cairn.checkpoints.save({ projectPath: "/other", summary: "Other" });
    await cairn.backups.create({ kind: "project", id: "/other" });
    await save(cairn, "Third");
    await cairn.backups.restore({ which: project, overwrite: true });
    expect(await summaries(cairn)).toEqual(["First", "Second"]);
    await cairn.backups.restore({ id: first.id, which: project, overwrite: true });
    expect(await summaries(cairn)).toEqual(["First"]);
    await expect(cairn.backups.restore({ id: first.id, which: { kind: "project", id: "/other" }, overwrite: true })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  it("is refused while another process has the database open, and works once that is gone", async () => {
    const cairn = await at.open();
    await save(cairn, "Kept");
    await cairn.backups.create(project);
    await save(cairn, "Later");
    await cairn.close();
    const other = await reader(at.dataDir);
    expect(other.first).toEqual(["Kept", "Later"]);
    const mine = await at.open();
    await expect(mine.backups.restore({ which: project, overwrite: true })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining(String(other.pid)),
    });
    expect(await other.read()).toEqual(["Kept", "Later"]);
    expect(await summaries(mine)).toEqual(["Kept", "Later"]);
    await other.end();
    await mine.backups.restore({ which: project, overwrite: true });
    expect(await summaries(mine)).toEqual(["Kept"]);
    expect(readdirSync(join(at.dataDir, "projects")).filter((name) => name.includes("restoring"))).toEqual([]);
  });

  it("replaces a damaged database and keeps it with its write-ahead log", async () => {
    const cairn = await at.open();
    await save(cairn, "Kept");
    await cairn.backups.create(project);
    await cairn.close();
    const damaged = "no database at all ".repeat(1_000);
    // A file of its own: the closed connection may still hold the first one, and delete its log when it is collected.
    rmSync(at.file());
    writeFileSync(at.file(), damaged);
    writeFileSync(`${at.file()}-wal`, "old log");
    const mine = await at.open();
    const { databases } = await mine.backups.restore({ which: project, overwrite: true });
    expect(readFileSync(databases[0]!.replaced!, "utf8")).toBe(damaged);
    expect(readFileSync(`${databases[0]!.replaced}-wal`, "utf8")).toBe("old log");
    expect(await summaries(mine)).toEqual(["Kept"]);
  });

  it("never lets a write-ahead log that lies about into the restored database", async () => {
    const cairn = await at.open();
    await save(cairn, "Kept");
    await cairn.backups.create(project);
    await cairn.close();
    renameSync(at.file(), join(at.folder, "away.db"));
    writeFileSync(`${at.file()}-wal`, "stray");
    const mine = await at.open();
    await mine.backups.restore({ which: project });
    expect(await summaries(mine)).toEqual(["Kept"]);
    const kept = readdirSync(join(at.dataDir, "replaced")).find((name) => name.endsWith("-wal"))!;
    expect(readFileSync(join(at.dataDir, "replaced", kept), "utf8")).toBe("stray");
  });

  it("is refused for a schema that is newer than this program", async () => {
    const cairn = await at.open();
    await save(cairn, "Kept");
    await cairn.close();
    const { loadEngine } = await import("../../src/stores/sqlite/driver/engine.ts");
    const { DatabaseSync } = await loadEngine();
    const future = new DatabaseSync(at.file());
    future.exec("INSERT INTO schema_migrations (migration_id, migration_name, checksum) VALUES (999, 'from the future', 'x')");
    future.close();
    const mine = await at.open();
    await mine.backups.create(project);
    await expect(mine.backups.restore({ which: project, overwrite: true })).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("newer version"),
    });
    expect(existsSync(join(at.dataDir, "replaced"))).toBe(false);
  });

  it("clears the second name of the live file that a killed restore left", async () => {
    const cairn = await at.open();
    await save(cairn, "Kept");
    await cairn.backups.create(project);
    await cairn.close();
    const aside = join(at.dataDir, "replaced");
    mkdirSync(aside);
    linkSync(at.file(), join(aside, `${at.file().split("/").at(-1)}.20260101T000000Z-00000000`));
    const mine = await at.open();
    await mine.backups.restore({ which: project, overwrite: true });
    expect(readdirSync(aside)).toHaveLength(1);
    expect(readdirSync(aside)[0]).not.toContain("20260101");
  });
});

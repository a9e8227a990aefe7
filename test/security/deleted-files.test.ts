import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { sqliteRunStore } from "../../src/stores/sqlite/runs/store.ts";
import { sqliteSystemStorage } from "../../src/stores/sqlite/systems/storage.ts";

const projectPath = "/deleted/project";
const GONE = { code: "unavailable", message: expect.stringContaining("was deleted while in use") };

let dataDir: string;
let cairn: Cairn;
const opening = () => open({ dataDir, stateDir: join(dataDir, "state"), embedder: { kind: "none" } });
const path = () => join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`);
const removeAll = (file: string) => {
  for (const end of ["", "-wal", "-shm"]) rmSync(file + end, { force: true });
};
const rescuedIn = (folder: string) => readdirSync(folder).filter((name) => name.includes(".rescued-"));

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-deleted-"));
  cairn = await opening();
  await cairn.checkpoints.save({ projectPath, summary: "Must not be lost" });
});
afterEach(async () => {
  await cairn.close();
  rmSync(dataDir, { recursive: true, force: true });
});

describe("a database file that is deleted while in use", () => {
  it.each([
    ["the file and its log", () => removeAll(path())],
    ["the file alone", () => rmSync(path())],
    ["the file, by moving it away", () => renameSync(path(), join(dataDir, "elsewhere.db"))],
  ])("is not replaced by an empty one: %s", async (_what, remove) => {
    remove();
    await expect(cairn.checkpoints.list({ projectPath })).rejects.toMatchObject(GONE);
    await expect(cairn.checkpoints.save({ projectPath, summary: "Into an empty one" })).rejects.toMatchObject(GONE);
    expect(existsSync(path())).toBe(false);
  });

  it("is refused by other processes too, before and after a restart", async () => {
    removeAll(path());
    await expect(cairn.checkpoints.list({ projectPath })).rejects.toMatchObject(GONE);
    await cairn.close();
    cairn = await opening();
    await expect(cairn.checkpoints.list({ projectPath })).rejects.toMatchObject(GONE);
    await expect(cairn.checkpoints.save({ projectPath, summary: "Into an empty one" })).rejects.toMatchObject(GONE);
  });

  it("is refused and reported when its marker file is truncated", async () => {
    removeAll(path());
    await expect(cairn.checkpoints.list({ projectPath })).rejects.toMatchObject(GONE);
    await cairn.close();
    writeFileSync(`${path()}.deleted`, '{"path":');
    cairn = await opening();
    await expect(cairn.checkpoints.save({ projectPath, summary: "Into an empty one" })).rejects.toMatchObject(GONE);
    await expect(cairn.databases.check({ projectPath })).resolves.toMatchObject({ state: "damaged" });
    renameSync(join(dataDir, "projects", rescuedIn(join(dataDir, "projects"))[0]!), path());
    expect((await cairn.checkpoints.list({ projectPath })).total).toBe(1);
  });

  it("is saved from the open descriptor, with everything that was acknowledged, and can be put back", async () => {
    const saving = cairn.checkpoints.save({ projectPath, summary: "Written while it was deleted" });
    removeAll(path());
    await saving.catch(() => {});
    const refusal = await cairn.checkpoints.list({ projectPath }).catch((error) => error);
    expect(refusal).toMatchObject(GONE);
    const rescued: string = refusal.details.rescued;
    expect(refusal.message).toContain(`mv '${rescued}' '${path()}'`);
    renameSync(rescued, path());
    const { checkpoints } = await cairn.checkpoints.list({ projectPath });
    expect(checkpoints.map(({ summary }) => summary)).toContain("Must not be lost");
    await cairn.checkpoints.save({ projectPath, summary: "Works again" });
    expect(existsSync(`${path()}.deleted`)).toBe(false);
  });

  it("is saved when the process ends without another use of it", async () => {
    removeAll(path());
    await cairn.close();
    expect(rescuedIn(join(dataDir, "projects"))).toHaveLength(1);
    cairn = await opening();
    await expect(cairn.checkpoints.list({ projectPath })).rejects.toMatchObject(GONE);
  });

  it("is noticed when another process has made an empty one in its place", async () => {
    removeAll(path());
    const other = await opening();
    await other.checkpoints.save({ projectPath, summary: "From the other process" });
    await expect(cairn.checkpoints.list({ projectPath })).rejects.toMatchObject(GONE);
    await other.close();
    expect(rescuedIn(join(dataDir, "projects"))).toHaveLength(1);
    await expect(cairn.checkpoints.searchAll({ query: "anything", mayTouch: () => true })).resolves.toBeDefined();
  });

  it("is reported by the doctor and by the check, and can be given up explicitly", async () => {
    removeAll(path());
    await expect(cairn.checkpoints.list({ projectPath })).rejects.toMatchObject(GONE);
    const { healthy, findings } = await cairn.doctor.examine({ quick: true });
    expect(healthy).toBe(false);
    expect(findings).toContainEqual(
      expect.objectContaining({ check: "integrity", severity: "problem", message: expect.stringContaining("deleted while in use") }),
    );
    const [rescued] = rescuedIn(join(dataDir, "projects"));
    expect(findings.map(({ command }) => command)).toContain(`mv ${join(dataDir, "projects", rescued!)} ${path()}`);
    const report = await cairn.databases.check({ projectPath });
    expect(report).toMatchObject({ state: "damaged", problems: [expect.stringContaining("deleted while in use")] });
    await cairn.databases.quarantine({ projectPath });
    await cairn.checkpoints.save({ projectPath, summary: "A new start" });
    expect((await cairn.checkpoints.list({ projectPath })).total).toBe(1);
    expect(rescuedIn(join(dataDir, "projects"))).toHaveLength(1);
  });

  it("is brought back by restoring a backup", async () => {
    const { id } = await cairn.backups.create("all");
    removeAll(path());
    await expect(cairn.checkpoints.list({ projectPath })).rejects.toMatchObject(GONE);
    await cairn.backups.restore({ id, which: { kind: "project", id: projectPath } });
    expect((await cairn.checkpoints.list({ projectPath })).total).toBe(1);
    expect(existsSync(`${path()}.deleted`)).toBe(false);
  });

  it("is refused in a data folder that was deleted as a whole, which is not made again", async () => {
    rmSync(dataDir, { recursive: true });
    await expect(cairn.checkpoints.list({ projectPath })).rejects.toMatchObject(GONE);
    await expect(cairn.checkpoints.save({ projectPath, summary: "Into an empty one" })).rejects.toMatchObject(GONE);
    expect(existsSync(dataDir)).toBe(false);
  });

  it("does not take a restored backup or a quarantined file for a deletion", async () => {
    await cairn.databases.quarantine({ projectPath, evenIfSound: true });
    await cairn.checkpoints.save({ projectPath, summary: "After the quarantine" });
    expect((await cairn.checkpoints.list({ projectPath })).total).toBe(1);
    expect(rescuedIn(join(dataDir, "projects"))).toEqual([]);
  });

  it("is refused when it belongs to a system", async () => {
    const stateDir = join(dataDir, "state");
    const storage = sqliteSystemStorage({ stateDir });
    await storage.create("shop");
    removeAll(storage.location!("shop"));
    await expect(storage.find("shop")).rejects.toMatchObject(GONE);
    await expect(storage.create("shop")).rejects.toMatchObject(GONE);
    expect(rescuedIn(join(stateDir, "checkpoints"))).toHaveLength(1);
    await storage.close();
  });

  it("is refused when it holds runs", async () => {
    const file = join(dataDir, "runs.db");
    const store = sqliteRunStore({ path: file });
    await store.listRuns();
    removeAll(file);
    await new Promise((done) => setTimeout(done, 20));
    await expect(store.listRuns()).rejects.toMatchObject(GONE);
    await expect(store.listRuns()).rejects.toMatchObject(GONE);
    expect(existsSync(file)).toBe(false);
    expect(rescuedIn(dataDir)).toHaveLength(1);
    writeFileSync(file, ""); // an explicit start with an empty database
    await expect(store.listRuns()).resolves.toEqual([]);
    await store.close();
  });
});

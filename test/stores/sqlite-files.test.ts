import { spawn } from "node:child_process";
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { databases } from "../../src/admin/databases.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { checkFile } from "../../src/stores/sqlite/driver/damage.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";

const project = "/home/me/app";
const list = { limit: 100, offset: 0, sortBy: "created_at" } as const;
let dataDir: string;
let path: string;
let opened: Storage[];

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-files-"));
  path = join(dataDir, "projects", `${projectDatabaseName(project)}.db`);
  opened = [];
});
afterEach(async () => {
  for (const storage of opened) await storage.close();
  rmSync(dataDir, { recursive: true });
});

function openStorage(): Storage {
  const storage = sqliteStorage({ dataDir, now: () => new Date().toISOString() });
  opened.push(storage);
  return storage;
}

async function storeSome(count = 200): Promise<void> {
  const storage = sqliteStorage({ dataDir, now: () => new Date().toISOString() });
  const { checkpoints } = await storage.create(project);
  await Promise.all(Array.from({ length: count }, (_, index) => checkpoints.put(sampleCheckpoint(project, { id: `${index}` }))));
  await storage.close();
}

const queue = { depth: async () => ({ pending: 0, running: 0, capacity: 1 }) };

describe("a project's SQLite file", () => {
  it("can be read by its owner only, and so can its WAL", async () => {
    const { checkpoints } = await openStorage().create(project);
    await checkpoints.put(sampleCheckpoint(project));
    const modes = Object.fromEntries(
      readdirSync(join(dataDir, "projects")).map((name) => [name, statSync(join(dataDir, "projects", name)).mode & 0o777]),
    );
    const name = `${projectDatabaseName(project)}.db`;
    expect(modes).toEqual({ [name]: 0o600, [`${name}-wal`]: 0o600, [`${name}-shm`]: 0o600 });
    expect(statSync(join(dataDir, "projects")).mode & 0o777).toBe(0o700);
  });

  it("is opened with WAL, full synchronisation and foreign keys, whatever the engine's defaults", async () => {
    const database = await openSqlite({ path: join(dataDir, "plain.db") });
    const pragma = (name: string) => database.read((tx) => Object.values(tx.get<Record<string, unknown>>(`PRAGMA ${name}`)!)[0]);
    expect([pragma("journal_mode"), pragma("synchronous"), pragma("foreign_keys"), pragma("trusted_schema")]).toEqual(["wal", 2, 1, 0]);
    await database.write((tx) => tx.exec("CREATE TABLE parent (id INTEGER PRIMARY KEY); CREATE TABLE child (id REFERENCES parent)"));
    await expect(database.write((tx) => tx.run("INSERT INTO child VALUES (1)"))).rejects.toMatchObject({ code: "conflict" });
    database.close();
  });

  it.each([
    ["written by a newer version", "INSERT INTO schema_migrations VALUES (999, 'later', 'x', '2030-01-01')", /newer version/],
    ["written by an older version", "UPDATE schema_migrations SET migration_id = 0", /older version/],
    ["altered", "UPDATE schema_migrations SET checksum = 'x'", /was altered/],
  ])("is refused when its schema was %s, and stays as it is", async (_, sql, message) => {
    await storeSome(1);
    const database = await openSqlite({ path });
    await database.write((tx) => tx.exec(sql));
    database.close();
    const before = readFileSync(path);
    for (const call of [() => openStorage().find(project), () => openStorage().create(project), () => openStorage().projects()])
      await expect(call()).rejects.toMatchObject({ code: "unavailable", message: expect.stringMatching(message) });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("keeps the locks of this process when this process opens it once more", async () => {
    // Closing any descriptor of a file drops all locks of the process on it, and then another process may throw the WAL away.
    const { checkpoints } = await openStorage().create(project);
    await checkpoints.put(sampleCheckpoint(project, { id: "before" }));
    await openStorage().find(project);
    expect(await otherProcess(path)).toEqual({ rows: 1, last: "before" });
    expect(readdirSync(join(dataDir, "projects"))).toContain(`${projectDatabaseName(project)}.db-wal`);
    await checkpoints.put(sampleCheckpoint(project, { id: "later" }));
    expect(await otherProcess(path)).toEqual({ rows: 2, last: "later" });
  });

  it("says what is wrong when its folder cannot be made", async () => {
    writeFileSync(join(dataDir, "projects"), "a file where a folder should be");
    await expect(openStorage().create(project)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/Check the permissions/),
    });
  });
});

const DAMAGES: [string, () => void][] = [
  ["a garbled header", () => overwrite(0, Buffer.from("this is not a database at all"))],
  ["zeros in the middle", () => overwrite(3 * 8192, Buffer.alloc(8192))],
  ["flipped bytes in every page but the first", () => flipBytes()],
  ["its second half cut off", () => truncateSync(path, Math.floor(statSync(path).size / 2))],
  ["its last bytes cut off", () => truncateSync(path, statSync(path).size - 100)],
];

describe.each(DAMAGES)("a file with %s", (_, damage) => {
  beforeEach(async () => {
    await storeSome();
    damage();
  });

  it("is never reset, and the error names the commands that help", async () => {
    const before = readFileSync(path);
    const storage = openStorage();
    const outcome = await Promise.resolve()
      .then(() => storage.find(project))
      .then((store) => store!.checkpoints.list({ ...list, limit: 1_000 }))
      .catch((error) => error);
    // Some damage shows only when the bad page is read; then what is read is right.
    if (outcome instanceof Error)
      expect(outcome).toMatchObject({
        code: "unavailable",
        message: expect.stringMatching(/damaged.*cairn database check/s),
        details: { damaged: true },
      });
    else
      expect(outcome.checkpoints.every((checkpoint: { summary: string }) => checkpoint.summary === "Parser done, lexer next")).toBe(true);
    await storage.close();
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("is found damaged by a check, set aside whole with a report, and replaced by a new one", async () => {
    const storage = openStorage();
    const service = databases({ storage, queue });
    const before = readFileSync(path);
    const report = await service.check({ projectPath: project });
    expect(report).toMatchObject({ projectPath: project, location: path, state: "damaged" });
    expect(report.problems.length).toBeGreaterThan(0);
    expect(await storage.projects().catch((error) => error)).not.toBeInstanceOf(Error);

    const { movedTo } = await service.quarantine({ projectPath: project });
    expect(readFileSync(movedTo).equals(before)).toBe(true);
    expect(statSync(movedTo).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(`${movedTo}.json`, "utf8"))).toMatchObject({
      project_path: project,
      original_path: path,
      problems: report.problems,
    });

    expect(await storage.find(project)).toBeUndefined();
    const { checkpoints } = await storage.create(project);
    await checkpoints.put(sampleCheckpoint(project, { id: "again" }));
    expect((await checkpoints.list(list)).total).toBe(1);
    expect(await service.check({ projectPath: project })).toMatchObject({ state: "sound", problems: [] });
  });
});

describe("setting a database aside", () => {
  it("is refused for a sound one, unless requested", async () => {
    await storeSome();
    const service = databases({ storage: openStorage(), queue });
    await expect(service.quarantine({ projectPath: project })).rejects.toMatchObject({ code: "conflict" });
    expect((await service.quarantine({ projectPath: project, evenIfSound: true })).problems).toEqual([]);
    await expect(service.quarantine({ projectPath: project })).rejects.toMatchObject({ code: "not_found" });
  });

  it("takes the WAL along, so that what was committed is still in it", async () => {
    const storage = openStorage();
    const { checkpoints } = await storage.create(project);
    await checkpoints.put(sampleCheckpoint(project, { id: "in the WAL" }));
    const { movedTo } = await storage.quarantine(project, []);
    const kept = await openSqlite({ path: movedTo, mustExist: true });
    expect(kept.read((tx) => tx.all("SELECT id FROM checkpoints"))).toEqual([{ id: "in the WAL" }]);
    kept.close();
  });

  it.runIf(process.platform === "linux")("is refused while another process has it open", async () => {
    await storeSome(1);
    const child = spawn(process.execPath, ["--input-type=module", "-e", OTHER_PROCESS, path, "stay"], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    const storage = openStorage();
    await expect(storage.quarantine(project, [])).rejects.toMatchObject({ code: "conflict", details: { processes: [child.pid] } });
    child.stdin.end();
    await new Promise((resolve) => child.once("exit", resolve));
    expect((await storage.quarantine(project, [])).location).toBe(path);
  });

  it("is noticed by a process that had the file open", async () => {
    const [mine, theirs] = [openStorage(), openStorage()];
    const held = await mine.create(project);
    await held.checkpoints.put(sampleCheckpoint(project, { id: "old" }));
    await theirs.quarantine(project, []);
    expect(await mine.find(project)).toBeUndefined();
    await theirs.create(project);
    await (await mine.create(project)).checkpoints.put(sampleCheckpoint(project, { id: "new" }));
    expect((await (await theirs.find(project))!.checkpoints.list(list)).checkpoints.map(({ id }) => id)).toEqual(["new"]);
  });
});

describe("the check of a file", () => {
  it("reports references that lead nowhere", async () => {
    const file = join(dataDir, "keys.db");
    const database = await openSqlite({ path: file });
    await database.write((tx) => tx.exec("CREATE TABLE parent (id INTEGER PRIMARY KEY); CREATE TABLE child (parent_id REFERENCES parent)"));
    database.close();
    await otherProcess(file, "PRAGMA foreign_keys = OFF; INSERT INTO child VALUES (7)");
    expect((await checkFile(file)).problems).toEqual(["row 1 of child refers to a row of parent that is not there"]);
  });

  it("finds nothing wrong with a file that is being written", async () => {
    const { checkpoints } = await openStorage().create(project);
    const writes = Promise.all(Array.from({ length: 300 }, () => checkpoints.put(sampleCheckpoint(project))));
    expect((await checkFile(path)).problems).toEqual([]);
    await writes;
  });
});

function overwrite(position: number, bytes: Buffer): void {
  const file = openSync(path, "r+");
  writeSync(file, bytes, 0, bytes.length, position);
  closeSync(file);
}

function flipBytes(): void {
  const content = readFileSync(path);
  for (let position = 8192 + 3; position < content.length; position += 1024) content[position]! ^= 0xff;
  writeFileSync(path, content);
}

/** Opens the file as a process of its own would, with the plain engine, and closes it again. */
const OTHER_PROCESS = `
  import { createRequire } from "node:module";
  const { DatabaseSync } = createRequire(${JSON.stringify(import.meta.url)})("@photostructure/sqlite");
  const [path, what] = process.argv.slice(1);
  const database = new DatabaseSync(path);
  if (what === "stay") {
    database.exec("SELECT count(*) FROM checkpoints");
    console.log("open");
    for await (const _ of process.stdin);
  } else if (what) database.exec(what);
  else {
    const statement = database.prepare("SELECT count(*) AS rows, max(id) AS last FROM checkpoints");
    console.log(JSON.stringify(statement.get()));
  }
  globalThis.gc?.();
  database.close();
`;

async function otherProcess(file: string, sql?: string): Promise<unknown> {
  const args = ["--expose-gc", "--input-type=module", "-e", OTHER_PROCESS, file, ...(sql ? [sql] : [])];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (data) => {
    output += data;
  });
  const code = await new Promise((resolve) => child.once("exit", resolve));
  if (code !== 0) throw new Error(`The other process ended with ${code}.`);
  return output ? JSON.parse(output) : undefined;
}

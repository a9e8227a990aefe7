import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSystemStorage } from "../../src/open/open-system-storage.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { createFence } from "../../src/stores/sqlite/migration/fence.ts";
import { projectSchema } from "../../src/stores/sqlite/projects/project-schema.ts";
import { stage } from "../cli/stage.ts";

let folder: string;
let stateDir: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-state-")));
  stateDir = join(folder, ".state");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const openStorage = (implicitStateDir = true) => openSystemStorage({ storage: "sqlite", stateDir, implicitStateDir });
async function genuine(systemId: string): Promise<string> {
  const storage = await openStorage();
  await storage.create(systemId);
  await storage.close();
  return join(stateDir, "checkpoints", `${systemId}.db`);
}
async function change(path: string, sql: string): Promise<void> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path);
  connection.exec(sql);
  connection.close();
}

describe("a .state folder that comes with a cloned repository", () => {
  it("cannot hold a database whose trigger drops what was acknowledged", async () => {
    const path = await genuine("orders");
    await change(path, "CREATE TRIGGER evil AFTER INSERT ON metadata BEGIN DELETE FROM metadata WHERE key = NEW.key; END");
    const storage = await openStorage();
    await expect(storage.find("orders")).rejects.toThrow(/holds "evil", a trigger or view that Cairn did not make/);
    await expect(storage.create("orders")).rejects.toThrow(/did not make/);
    await storage.close();
  });

  it("cannot hold a view in place of a table", async () => {
    const path = await genuine("orders");
    await change(path, "CREATE VIEW spy AS SELECT * FROM metadata");
    const storage = await openStorage();
    await expect(storage.find("orders")).rejects.toThrow(/holds "spy"/);
    await storage.close();
  });

  it("cannot send a system's state to a server by a record of a migration", async () => {
    let connections = 0;
    const server: Server = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    mkdirSync(join(stateDir, "checkpoints"), { recursive: true });
    const url = `postgres://evil@127.0.0.1:${port}/evil`;
    const record = {
      migrationId: "m",
      direction: "up",
      state: "migrated",
      url,
      where: "evil",
      projectId: "orders",
      startedAt: "2026-01-01T00:00:00.000Z",
    };
    writeFileSync(join(stateDir, "checkpoints", "orders.db.migration"), JSON.stringify(record), { mode: 0o600 });
    const storage = await openStorage();
    for (const call of [() => storage.create("orders"), () => storage.find("orders"), () => storage.systems()])
      await expect(call()).rejects.toThrow(/This folder was not chosen by you.*CAIRN_STATE_DIR=/);
    await storage.close();

    const { cairn, clear } = stage();
    const { code, stderr } = await cairn(["system", "list"], { cwd: folder });
    expect([code, stderr]).toEqual([5, expect.stringMatching(/CAIRN_STATE_DIR/)]);
    const migrated = await cairn(["migrate", "--system", "orders", "--rollback"], { cwd: folder });
    expect([migrated.code, migrated.stderr]).toEqual([2, expect.stringMatching(/from a folder that you chose/)]);
    clear();
    expect(connections).toBe(0);

    const chosen = await openStorage(false);
    await expect(chosen.find("orders")).rejects.not.toThrow(/chosen by you/);
    expect(connections).toBeGreaterThan(0);
    await chosen.close();
    server.close();
  });

  it("cannot make Cairn write to files elsewhere through symbolic links", async () => {
    const elsewhere = join(folder, "elsewhere");
    mkdirSync(elsewhere);
    mkdirSync(join(stateDir, "checkpoints"), { recursive: true });
    symlinkSync(join(elsewhere, "victim.db"), join(stateDir, "checkpoints", "orders.db"));
    const storage = await openStorage();
    await expect(storage.create("orders")).rejects.toThrow(/symbolic link in a folder that you did not choose/);
    rmSync(stateDir, { recursive: true });
    symlinkSync(elsewhere, stateDir);
    await expect(storage.create("orders")).rejects.toThrow(/symbolic link/);
    await storage.close();
    expect(readdirSync(elsewhere)).toEqual([]);
  });
});

describe("every connection to a database file", () => {
  it("distrusts the functions in the file's schema and refuses writes to the schema itself", async () => {
    const { DatabaseSync } = await loadEngine();
    const connection = new DatabaseSync(join(folder, "any.db"));
    expect(connection.prepare("PRAGMA trusted_schema").get()).toEqual({ trusted_schema: 0 });
    connection.exec("CREATE TABLE t (a)");
    if ("enableDefensive" in connection) {
      connection.exec("PRAGMA writable_schema = ON");
      expect(() => connection.exec("UPDATE sqlite_master SET sql = 'CREATE TABLE t (b)'")).toThrow(/may not be modified/);
    }
    connection.close();
  });

  it("accepts the triggers and views of Cairn's own schema, and those of a migration under way, and no others", async () => {
    const path = join(folder, "project.db");
    const open = () => openSqlite({ path, schema: projectSchema });
    (await open()).close();
    (await open()).close();
    const { DatabaseSync } = await loadEngine();
    const connection = new DatabaseSync(path);
    await createFence(connection, path, "move");
    connection.close();
    (await open()).close();
    await change(path, "DROP TRIGGER knowledge_changed; CREATE TRIGGER knowledge_changed AFTER UPDATE ON knowledge BEGIN SELECT 1; END");
    await expect(open()).rejects.toThrow(/holds "knowledge_changed"/);
  });
});

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { metrics } from "@opentelemetry/api";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { sqliteSystemStorage } from "../../src/stores/sqlite/systems/storage.ts";
import { startTelemetry } from "../../src/telemetry/start.ts";
import { stage } from "../cli/stage.ts";
import { api, REMOTE } from "../http/api.ts";
import { dataFolder, PROJECT } from "./folders.ts";

const NO_LIMIT = { CAIRN_EMBEDDER_KIND: "none", CAIRN_DOCTOR_FREE_DISK_MIN_BYTES: "0" };

describe("on the command line", () => {
  let at: ReturnType<typeof stage>;
  beforeEach(() => {
    at = stage();
  });
  afterEach(() => at.clear());
  const cairn = (...argv: string[]) => at.cairn(argv, { env: NO_LIMIT });

  it("backs up, lists, verifies and restores, also from a folder of one's choice", async () => {
    await cairn("checkpoint", "save", "Kept");
    const elsewhere = join(at.folder, "elsewhere");
    const made = await cairn("backup", "--to", elsewhere, "--json");
    expect(made.code, made.stderr).toBe(0);
    const { id, location, databases } = JSON.parse(made.stdout);
    expect(location).toBe(join(elsewhere, id));
    expect(databases).toMatchObject([{ kind: "project", id: at.project }]);
    expect((await cairn("backup", "list")).stdout).toBe("There are no backups.\n");
    expect((await cairn("backup", "list", "--from", elsewhere)).stdout).toContain(id);
    for (const level of ["count", "integrity", "checksum", "full"])
      expect((await cairn("backup", "verify", id, "--level", level, "--from", elsewhere)).stdout).toContain(`${id}: sound (${level})`);

    await cairn("checkpoint", "save", "Later");
    const refused = await cairn("restore", "--from", elsewhere);
    expect(refused.code).toBe(4);
    expect(refused.stderr).toContain("kept aside");
    expect((await cairn("restore", id, "--overwrite", "--from", elsewhere)).code).toBe(0);
    expect(JSON.parse((await cairn("checkpoint", "list", "--json")).stdout)).toMatchObject({ total: 1 });
  });

  it("ends with a code of its own when a backup is damaged or the doctor finds something", async () => {
    await cairn("checkpoint", "save", "Kept");
    const { location, databases } = JSON.parse((await cairn("backup", "--json")).stdout);
    const { truncateSync } = await import("node:fs");
    expect((await cairn("doctor", "--quick")).code).toBe(0);
    truncateSync(join(location, databases[0].file), 10_000);
    const verified = await cairn("backup", "verify");
    expect(verified.code).toBe(11);
    expect(verified.stdout).toMatch(/DAMAGED[\s\S]*10000 bytes instead of/);
    const small = await cairn("doctor", "--quick", "--set", "doctor.size_max_bytes=1000");
    expect(small.code).toBe(11);
    expect(small.stdout).toMatch(/PROBLEM {2}project .*limit 0\.0 MB[\s\S]*cairn migrate --to postgres:/);
    const report = JSON.parse((await cairn("doctor", "--json")).stdout);
    expect(report).toMatchObject({ healthy: true, databases: [{ kind: "project" }], checks: expect.arrayContaining(["integrity"]) });
  });

  it("takes one choice of databases at a time", async () => {
    expect((await cairn("backup", "--all", "--runs")).stderr).toContain("Select one of");
    expect((await cairn("backup", "--system", "../../etc")).code).toBe(2);
    expect((await cairn("restore", "../../etc/passwd")).code).toBe(2);
  });
});

describe("over HTTP", () => {
  let at: ReturnType<typeof dataFolder>;
  beforeEach(() => {
    at = dataFolder();
  });
  afterEach(() => at.clear());

  it("writes only into the server's folder, for admin keys, and each key sees its own projects", async () => {
    const cairn = await at.open();
    const { call } = await api({ cairn });
    for (const projectPath of [PROJECT, "/other"]) await cairn.checkpoints.save({ projectPath, summary: "One" });
    const keyFor = async (access: "write" | "admin", projects: "all" | string[]) => {
      const { key } = await cairn.keys.create({ label: "k", access, projects });
      return { connection: REMOTE, headers: { authorization: `Bearer ${key}` } };
    };
    const [all, mine, writer] = [await keyFor("admin", "all"), await keyFor("admin", [PROJECT]), await keyFor("write", "all")];

    expect((await call("POST", "/v1/backup", { all: true }, writer)).status).toBe(403);
    expect((await call("POST", "/v1/backup", { all: true }, mine)).status).toBe(403);
    expect((await call("POST", "/v1/backup", { runs: true }, mine)).status).toBe(403);
    expect((await call("POST", "/v1/backup", { project_path: "/other" }, mine)).status).toBe(403);
    expect((await call("POST", "/v1/backup", { scope: "shared" }, mine)).status).toBe(403);
    for (const field of ["to", "dir", "backup_dir", "location"])
      expect((await call("POST", "/v1/backup", { project_path: PROJECT, [field]: "/tmp/anywhere" }, all)).status).toBe(400);
    expect(existsSync(at.backupDir)).toBe(false);

    const { status, body } = await call("POST", "/v1/backup", { all: true }, all);
    expect(status).toBe(201);
    expect(body.location).toBe(join(at.backupDir, body.id));
    expect((await call("GET", "/v1/backup/list", undefined, all)).body.backups[0].databases).toHaveLength(2);
    expect((await call("GET", "/v1/backup/list", undefined, mine)).body.backups[0].databases).toMatchObject([{ id: PROJECT }]);
    expect((await call("POST", "/v1/backup/verify", { id: body.id, level: "full" }, all)).body).toMatchObject({ sound: true });
    expect((await call("POST", "/v1/backup/verify", { id: `../${body.id}` }, all)).status).toBe(400);

    await cairn.checkpoints.save({ projectPath: PROJECT, summary: "Two" });
    expect((await call("POST", "/v1/restore", { id: body.id, project_path: PROJECT }, mine)).status).toBe(409);
    expect((await call("POST", "/v1/restore", { id: body.id, project_path: "/other", overwrite: true }, mine)).status).toBe(403);
    expect((await call("POST", "/v1/restore", { id: body.id, project_path: PROJECT, overwrite: true }, mine)).status).toBe(200);
    expect((await cairn.checkpoints.list({ projectPath: PROJECT })).total).toBe(1);
    expect((await call("POST", "/v1/doctor", { quick: true }, mine)).status).toBe(403);
    expect((await call("POST", "/v1/doctor", { quick: true }, all)).body).toMatchObject({
      databases: [{ kind: "project" }, { kind: "project" }],
    });
  });
});

describe("elsewhere", () => {
  it("memory is not backed up, and reports it; the doctor still answers", async () => {
    const cairn = await open({ storage: "memory", embedder: [] });
    await expect(cairn.backups.create("all")).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining("memory") });
    expect(await cairn.doctor.examine()).toMatchObject({ healthy: true, versions: { database: "memory" }, systems: [] });
    await cairn.close();
  });

  it("the triggers of a system are metrics", async () => {
    const at = dataFolder();
    const telemetry = await startTelemetry({ prometheus: true });
    try {
      const storage = sqliteSystemStorage({ stateDir: at.stateDir });
      const store = await storage.create("shop");
      await store.commit({ component: "store", version: 0, at: new Date().toISOString(), messages: [], ports: [], state: [] });
      await storage.close();
      const cairn = await at.open({ doctor: { compliance: { centralBackup: false, pitr: true, auditLog: false }, freeDiskMinBytes: 0 } });
      const before = await telemetry.prometheus();
      expect(before).toMatch(/system_processes\{[^}]*system="shop"[^}]*\} 1/);
      expect(before).toMatch(/system_size_bytes\{[^}]*system="shop"[^}]*\} \d{5,}/);
      expect(before).toMatch(/system_trigger_fired\{[^}]*trigger="compliance"[^}]*\} 1/);
      expect(before).toMatch(/system_trigger_fired\{[^}]*trigger="size"[^}]*\} 0/);
      expect(before).not.toMatch(/^system_rto_seconds\{/m);
      await cairn.doctor.examine();
      expect(await telemetry.prometheus()).toMatch(/^system_rto_seconds\{[^}]*system="shop"[^}]*\} \d/m);
      expect(readdirSync(at.backupDir)).toEqual([]);
    } finally {
      await at.clear();
      await telemetry.close();
      metrics.disable();
    }
  });
});

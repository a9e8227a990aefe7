import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { stage } from "../cli/stage.ts";

const { cairn, project, home, folder, clear } = stage();
const env = { CAIRN_EMBEDDER_KIND: "none" };
const planted = join(project, "cairn.config.json");
const trusted = join(home, ".cairn", "trusted.json");
const plant = (content: unknown) => writeFileSync(planted, typeof content === "string" ? content : JSON.stringify(content));
const load = () => loadConfig({ env: {}, home, cwd: project, projectDir: project });
beforeEach(() => {
  rmSync(planted, { recursive: true, force: true });
  rmSync(trusted, { force: true });
});
afterAll(clear);

/** A value that each key accepts and that is not its default. */
function someValue({ key, kind, choices }: (typeof SETTINGS)[number]): unknown {
  if (choices) return kind === "list" ? [choices.at(-1)] : choices.find((choice) => choice !== "auto" && choice !== "info");
  if (kind === "number") return 1;
  if (kind === "boolean") return true;
  if (kind === "list") return /origin/.test(key) ? ["http://elsewhere.example"] : ["10.0.0.1"];
  if (/url|endpoint/.test(key)) return "http://elsewhere.example";
  return key === "storage" ? "memory" : "elsewhere";
}
const nested = (key: string, value: unknown): unknown => key.split(".").reduceRight((inner, part) => ({ [part]: inner }), value);

describe("a cairn.config.json that comes with a cloned repository", () => {
  it("may set the allow list of harmless keys and no other key, new keys included", () => {
    const allowed = SETTINGS.filter(({ fromProject }) => fromProject).map(({ key }) => key);
    expect(allowed).toEqual(["code.batch_files", "code.batch_bytes"]);
    for (const setting of SETTINGS) {
      plant(nested(setting.key, someValue(setting)));
      const { settings, ignored } = load();
      const { origin } = settings.find(({ setting: { key } }) => key === setting.key)!;
      expect([setting.key, origin.source]).toEqual([setting.key, setting.fromProject ? "project file" : "default"]);
      expect(ignored.map(({ key }) => key)).toEqual(setting.fromProject ? [] : [setting.key]);
    }
  });

  it("cannot make a save go to memory, where it would be lost", async () => {
    plant({ storage: "memory", data_dir: "planted-data", state_dir: "planted-state" });
    const saved = await cairn(["checkpoint", "save", "Must not be lost"], { env });
    expect(saved.code).toBe(0);
    expect(saved.stderr).toMatch(/cairn\.config\.json: storage needs a trusted project file/);
    expect(saved.stderr).toContain(`cairn trust ${project}`);
    rmSync(planted);
    expect((await cairn(["checkpoint", "list"], { env })).stdout).toContain("Must not be lost");
    expect(existsSync(join(project, "planted-data"))).toBe(false);
  });

  it("cannot make the planted keys of its own data folder admin keys", async () => {
    mkdirSync(join(project, "planted"), { recursive: true });
    const key = {
      id: "evil",
      label: "evil",
      access: "admin",
      projects: "all",
      createdAt: "2026-01-01T00:00:00.000Z",
      secretHash: "0".repeat(64),
    };
    writeFileSync(join(project, "planted", "keys.json"), JSON.stringify({ version: 1, keys: [key] }), { mode: 0o600 });
    plant({ data_dir: "planted" });
    expect((await cairn(["key", "list"], { env })).stdout).not.toContain("evil");
  });

  it("cannot deny service, whatever is in the file", async () => {
    for (const content of [
      "{",
      "[]",
      '{"nonsense": 1}',
      '{"code": {"batch_files": "x"}}',
      '{"http": 5}',
      "\u001b[2J",
      " ".repeat(2_000_000),
    ]) {
      plant(content);
      const { code, stderr } = await cairn(["checkpoint", "list"], { env });
      expect([content.slice(0, 20), code]).toEqual([content.slice(0, 20), 0]);
      expect(stderr).toContain("cairn.config.json");
      expect(stderr).not.toContain("\u001b");
    }
  });

  it("cannot hang or flood Cairn as a FIFO, a device or a folder", async () => {
    for (const make of [() => execFileSync("mkfifo", [planted]), () => symlinkSync("/dev/zero", planted), () => mkdirSync(planted)]) {
      rmSync(planted, { recursive: true, force: true });
      make();
      const { code, stderr } = await cairn(["checkpoint", "list"], { env });
      expect(code).toBe(0);
      expect(stderr).toContain("not a regular file");
    }
    rmSync(planted, { recursive: true, force: true });
    plant(Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`key${n}`, n])));
    expect((await cairn(["checkpoint", "list"], { env })).stderr.length).toBeLessThan(3_000);
  });

  it("cannot pass variables to Cairn through a .env file", async () => {
    writeFileSync(join(project, ".env"), "CAIRN_STORAGE=memory\nCAIRN_DATA_DIR=/tmp/elsewhere\n");
    const { settings } = JSON.parse((await cairn(["config", "get", "--json"], { env })).stdout);
    expect(settings.find(({ key }: { key: string }) => key === "storage").value).toBe("sqlite");
    rmSync(join(project, ".env"));
  });

  it("is reported by config get and the doctor with its keys and without its values", async () => {
    plant({ api: { url: "http://elsewhere.example", key: "k-123456" } });
    const config = await cairn(["config", "get"], { env });
    expect(config.stdout).toMatch(/Ignored, because the project file is not trusted[\s\S]*api\.url needs/);
    const { findings, healthy } = JSON.parse((await cairn(["doctor", "--quick", "--json"], { env })).stdout);
    expect(healthy).toBe(true);
    expect(findings).toContainEqual(
      expect.objectContaining({ check: "configuration", severity: "note", subject: planted, command: `cairn trust ${project}` }),
    );
    expect(config.stdout + config.stderr + JSON.stringify(findings)).not.toMatch(/k-123456|elsewhere/);
  });
});

describe("cairn trust", () => {
  it("shows what the file would set, with secrets masked, and does nothing unless it is confirmed", async () => {
    plant({ data_dir: "data", api: { key: "k-123456" }, code: { batch_files: 3 } });
    const { code, stdout, stderr } = await cairn(["trust"]);
    expect(code).toBe(5);
    expect(stdout).toContain(`data_dir = "${join(project, "data")}"`);
    expect(stdout).toContain('api.key = "********"');
    expect(stdout).not.toMatch(/batch_files|k-123456/);
    expect(stderr).toContain("--yes");
    expect(existsSync(trusted)).toBe(false);
  });

  it("applies the file until a single byte of it changes", async () => {
    plant({ data_dir: "data" });
    expect((await cairn(["trust", "--yes"], { cwd: join(project, "src", "deep") })).code).toBe(0);
    expect(statSync(trusted).mode & 0o777).toBe(0o600);
    expect(load().config.dataDir).toBe(join(project, "data"));
    expect(load().ignored).toEqual([]);
    writeFileSync(planted, `${readFileSync(planted, "utf8")}\n`);
    expect(load().config.dataDir).toBe(join(home, ".cairn"));
    expect(load().ignored.map(({ key }) => key)).toEqual(["data_dir"]);
  });

  it("does not carry over to a copy of the repository in another folder", async () => {
    plant({ data_dir: "data" });
    await cairn(["trust", "--yes"]);
    const copy = join(folder, "copy");
    mkdirSync(copy, { recursive: true });
    writeFileSync(join(copy, "cairn.config.json"), readFileSync(planted));
    expect(loadConfig({ env: {}, home, cwd: copy, projectDir: copy }).config.dataDir).toBe(join(home, ".cairn"));
  });

  it("reports mistakes in a trusted file as errors", async () => {
    plant({ http: { prot: 1 } });
    expect((await cairn(["trust", "--yes"])).stderr).toContain('unknown key "http.prot"');
    expect((await cairn(["trust", join(folder, "nowhere"), "--yes"])).code).toBe(2);
    rmSync(planted);
    expect((await cairn(["trust", "--yes"])).code).toBe(3);
  });

  it("lists and revokes", async () => {
    plant({ data_dir: "data" });
    expect((await cairn(["trust", "--list"])).stdout).toBe("No folder is trusted.\n");
    await cairn(["trust", "--yes"]);
    expect(JSON.parse((await cairn(["trust", "--list", "--json"])).stdout).folders).toMatchObject([{ path: project }]);
    expect((await cairn(["trust", "--revoke"])).code).toBe(0);
    expect(load().config.dataDir).toBe(join(home, ".cairn"));
    expect((await cairn(["trust", "--revoke"])).code).toBe(3);
  });

  it("ignores a list that another user could have written", async () => {
    plant({ data_dir: "data" });
    await cairn(["trust", "--yes"]);
    chmodSync(trusted, 0o666);
    expect(load().config.dataDir).toBe(join(home, ".cairn"));
    expect(load().ignored[0]?.problem).toMatch(/no folder is trusted.*can be written by every user/);
    expect((await cairn(["trust", "--yes"])).code).toBe(9);
  });
});

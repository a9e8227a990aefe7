import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { healthCheck } from "../../src/http/health.ts";
import { type Cairn, open } from "../../src/index.ts";
import { CairnError } from "../../src/model/errors.ts";
import { probeWrite } from "../../src/stores/sqlite/driver/write-probe.ts";
import { type Api, api } from "../http/api.ts";

let folder: string;
let cairn: Cairn | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "cairn-probe-"));
  await chmod(folder, 0o777); // another user looks at it below
});
afterEach(async () => {
  await cairn?.close();
  cairn = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function start(): Promise<Api> {
  cairn = await open({ dataDir: folder, stateDir: join(folder, "state"), embedder: { kind: "none" } });
  return api({ cairn });
}

/** What a process of its own, started by this shell command, finds: the answer of /health, and the reason. */
async function probeInProcess(before = "", shell = ""): Promise<unknown> {
  const script = `
    const { open } = await import(${JSON.stringify(join(import.meta.dirname, "../../dist/index.js"))});
    const { httpHandler } = await import(${JSON.stringify(join(import.meta.dirname, "../../dist/http/index.js"))});
    const cairn = await open({ dataDir: ${JSON.stringify(folder)}, stateDir: ${JSON.stringify(join(folder, "state"))}, embedder: { kind: "none" } });
    ${before}
    const response = await httpHandler({ cairn })(new Request("http://127.0.0.1/health"), { remoteAddress: "127.0.0.1" });
    const problem = await cairn.check().then(() => "none", ({ code, message }) => ({ code, message }));
    console.log(JSON.stringify({ status: response.status, ready: (await response.json()).ready, problem }));
    await cairn.close();`;
  const command = `${shell} exec ${JSON.stringify(process.execPath)} --input-type=module -e "$SCRIPT" | cat`;
  const { stdout } = await promisify(execFile)("sh", ["-c", command], { env: { ...process.env, SCRIPT: script } });
  return JSON.parse(stdout);
}

/** Permissions do not hold for root. */
const AS_ORDINARY_USER = "if (process.getuid() === 0) process.setuid(65534);";

describe("a server whose disk takes no more writes", () => {
  it("is not ready when the disk is full, though the folder may be written", async () => {
    // A file size limit fails every write as a full disk does, and needs no disk of its own.
    expect(await probeInProcess("", "ulimit -f 16 &&")).toEqual({
      status: 503,
      ready: false,
      problem: { code: "unavailable", message: expect.stringMatching(/^The disk that holds .* is full \(EFBIG\)\. .*free some space/) },
    });
    expect(await readdir(folder, { recursive: true })).toEqual(["projects"]);
  });

  it("is not ready when a database file may only be read", async () => {
    await mkdir(join(folder, "projects"));
    await chmod(join(folder, "projects"), 0o777);
    const database = join(folder, "projects", "project_0123456789abcdef.db");
    await writeFile(database, "", { mode: 0o444 });
    expect(await probeInProcess(AS_ORDINARY_USER)).toEqual({
      status: 503,
      ready: false,
      problem: { code: "unavailable", message: expect.stringContaining(`${database} cannot be written (EACCES)`) },
    });
  });

  it("is not ready when the folder of the systems may only be read", async () => {
    const systems = join(folder, "state", "checkpoints");
    for (const path of [join(folder, "projects"), systems]) await mkdir(path, { recursive: true });
    await chmod(join(folder, "projects"), 0o777);
    await chmod(systems, 0o555);
    expect(await probeInProcess(AS_ORDINARY_USER)).toEqual({
      status: 503,
      ready: false,
      problem: { code: "unavailable", message: expect.stringContaining(`${systems} cannot be written (EACCES)`) },
    });
  });

  it("is ready otherwise, and the probe leaves nothing behind", async () => {
    const server = await start();
    await cairn!.checkpoints.save({ projectPath: "/p", summary: "one" });
    const before = (await readdir(folder, { recursive: true })).sort();
    for (let count = 0; count < 5; count++) await cairn!.check();
    expect((await server.call("GET", "/health")).body).toMatchObject({ ready: true, checks: { storage: { ok: true } } });
    expect((await readdir(folder, { recursive: true })).sort()).toEqual(before);
  });

  it("passes for a folder that does not exist, and creates none", async () => {
    await probeWrite(join(folder, "missing"));
    expect(await readdir(folder)).toEqual([]);
  });
});

describe("continuous probes", () => {
  const knowledge = { readiness: async () => ({ records: 0, vectors: 0, ready: true }) };

  it("cost one write in five seconds, and one per second while it fails", async () => {
    let now = 0;
    let checks = 0;
    let broken = false;
    const check = async () => {
      checks++;
      if (broken) throw new CairnError("unavailable", "The disk is full.");
    };
    const health = healthCheck(
      { check, knowledge },
      () => false,
      () => now,
    );
    const probe = async (atMs: number) => {
      now = atMs;
      return (await Promise.all(Array.from({ length: 50 }, () => health())))[0]!.ready;
    };
    expect([await probe(0), await probe(4_999), checks]).toEqual([true, true, 1]);
    broken = true;
    expect([await probe(5_000), await probe(5_999), checks]).toEqual([false, false, 2]);
    broken = false;
    expect([await probe(6_000), checks]).toEqual([true, 3]);
  });

  it("never start a second check while one hangs", async () => {
    let checks = 0;
    const check = () => {
      checks++;
      return new Promise<void>(() => {});
    };
    const health = healthCheck({ check, knowledge }, () => false);
    const answers = await Promise.all([health(), health(), health()]);
    expect(answers.map(({ ready }) => ready)).toEqual([false, false, false]);
    expect((await health()).checks.storage).toMatchObject({ ok: false, reason: expect.stringContaining("did not answer") });
    expect(checks).toBe(1);
  });
});

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { OPEN_FILES_MIN, openFilesBudget } from "../../src/files/open-files.ts";
import { asCairnError } from "../../src/model/errors.ts";
import { withTimeLimit } from "../../src/scheduling/calls.ts";
import { openSlots } from "../../src/stores/sqlite/driver/open-slots.ts";
import { killProcess, removeFolder } from "../support/processes.ts";

const root = resolve(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "cairn-open-files-"));
afterAll(() => removeFolder(folder));

/** Runs Node under a limit of open files. */
function underLimit(limit: number, args: readonly string[]) {
  return ["-c", `ulimit -n ${limit} && exec "$0" "$@"`, process.execPath, ...args];
}

describe("open files", () => {
  it("serves many more projects than the limit of open files allows to be open at once", () => {
    const { stdout, stderr } = spawnSync(
      "bash",
      underLimit(200, [join(import.meta.dirname, "many-projects.mjs"), join(folder, "many"), "60"]),
      {
        encoding: "utf8",
      },
    );
    expect(stderr).toBe("");
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ limit: 200, failed: 0, failures: [], found: 60, listed: 60, systems: 60, damaged: 0 });
    expect(report.mostOpen).toBeLessThan(170);
  });

  it("reports that too many files are open instead of missing permissions, and recovers when descriptors are free", () => {
    const { stdout, stderr } = spawnSync("bash", underLimit(200, [join(import.meta.dirname, "used-up.mjs"), join(folder, "used-up")]), {
      encoding: "utf8",
    });
    expect(stderr).toBe("");
    const { refusals, after } = JSON.parse(stdout);
    expect(refusals.length).toBeGreaterThan(0);
    for (const refusal of refusals) expect(refusal).toMatchObject({ code: "unavailable", message: expect.stringContaining("ulimit -n") });
    expect(after).toBe("Saved after all");
  });

  it.each([["serve", "--port", "0"], ["mcp"]])(
    "refuses to start `cairn %s` under a very low limit, and reports which limit to raise",
    (...args) => {
      const { status, stderr } = spawnSync("bash", underLimit(32, [join(root, "dist/bundle/main.cjs"), ...args]), {
        encoding: "utf8",
        input: "",
        env: { ...process.env, CAIRN_DATA_DIR: join(folder, "low") },
      });
      expect(status).not.toBe(0);
      expect(stderr).toMatch(/32 files open at once.*at least 128.*ulimit -n/s);
      expect(stderr).not.toMatch(/\n\s+at /);
    },
  );

  it("starts and answers under the lowest limit that it accepts", async () => {
    const server = spawn("bash", underLimit(OPEN_FILES_MIN, [join(root, "dist/bundle/main.cjs"), "serve", "--port", "0", "--json"]), {
      env: { ...process.env, CAIRN_DATA_DIR: join(folder, "lowest") },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [line] = (await new Promise<Buffer>((done) => server.stdout.once("data", done))).toString().split("\n");
      const { url } = JSON.parse(line!);
      for (let call = 0; call < 5; call++) expect((await fetch(`${url}/health`)).status).toBe(200);
      expect(readdirSync(`/proc/${server.pid}/fd`).length).toBeLessThan(OPEN_FILES_MIN);
    } finally {
      await killProcess(server);
    }
  });

  it("leaves room for sockets and for the process itself whatever the limit is", () => {
    for (const limit of [128, 256, 1_024, 65_536]) {
      const { databases, searched, sockets } = openFilesBudget(limit);
      expect(3 * (databases + searched) + sockets).toBeLessThanOrEqual(limit - 64);
      expect(Math.min(databases, searched, sockets)).toBeGreaterThan(0);
    }
  });

  it("waits for an idle database to close, and refuses with a reason when none does", async () => {
    const impatient = openSlots(1, 50);
    const other = { lastUse: 0, closeIfIdle: () => false };
    await impatient.take(other);
    await expect(impatient.take(other)).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("ulimit -n") });

    const slots = openSlots(1, 60_000);
    const busy = {
      idle: false,
      lastUse: 0,
      closeIfIdle() {
        if (busy.idle) slots.free(busy);
        return busy.idle;
      },
    };
    await slots.take(busy);
    const waiting = slots.take(other);
    busy.idle = true;
    await waiting;
  });

  it("answers a call with a short limit while a call with a long limit waits in front of it", async () => {
    const slots = openSlots(1, 60_000);
    const busy = { lastUse: 0, closeIfIdle: () => false };
    await slots.take(busy);
    const first = slots.take({ lastUse: 0, closeIfIdle: () => false });
    await expect(withTimeLimit(200, () => slots.take({ lastUse: 0, closeIfIdle: () => false }))).rejects.toMatchObject({
      retryAfterMs: 1_000,
    });
    slots.free(busy);
    await first;
    await expect(withTimeLimit(200, () => slots.take(busy))).rejects.toMatchObject({ code: "unavailable" }); // the one that gave up took no slot
  });

  it("translates EMFILE from sockets and threads wherever it surfaces", () => {
    for (const code of ["EMFILE", "ENFILE"])
      expect(asCairnError(Object.assign(new Error("open"), { code }))).toMatchObject({
        code: "unavailable",
        message: expect.stringContaining("ulimit -n"),
      });
  });
});

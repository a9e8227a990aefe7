import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeAll, expect, it } from "vitest";
import { sampleSession, writeOpencode } from "../../../bench/adopt/sessions.ts";
import { openCopy } from "../../../src/client/adopt/database-copy.ts";
import { READERS } from "../../../src/client/adopt/readers.ts";
import { builtCommand } from "../../cli/stage.ts";
import { killProcess } from "../../support/processes.ts";
import { type Machine, machine, readAll, SIGNAL, writeFile } from "./machine.ts";

let host: Machine;
afterEach(() => host.clear());
beforeAll(() => void builtCommand());

const COPIES = 8;

it.each(["WAL", "DELETE"])("copies one consistent state while the owner writes, in journal mode %s", async (mode) => {
  host = machine();
  const path = join(host.home, "owner.db");
  const owner = spawn(process.execPath, [join(import.meta.dirname, "database-owner.mjs"), path, mode], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(createInterface(owner.stdout), "line");
  try {
    let consistent = 0;
    for (let copy = 0; copy < COPIES; copy++) {
      const database = await openCopy(path, host, SIGNAL).catch((error) => {
        expect(error.code).toBe("conflict"); // the owner never paused
        return undefined;
      });
      if (!database) continue;
      const [check] = [...database.rows("PRAGMA integrity_check")];
      expect(Object.values(check!)).toEqual(["ok"]);
      const [sums] = [...database.rows("SELECT (SELECT total(n) FROM a) + (SELECT total(n) FROM b) AS sum")];
      expect(sums).toEqual({ sum: 0 });
      consistent++;
      database.close();
    }
    expect(consistent).toBeGreaterThan(0);
  } finally {
    await killProcess(owner);
  }
});

it("reads what a killed owner left in its write-ahead log, and touches neither file", async () => {
  host = machine();
  const path = join(host.home, "owner.db");
  const owner = spawn(process.execPath, [join(import.meta.dirname, "database-owner.mjs"), path, "WAL"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(createInterface(owner.stdout), "line");
  await killProcess(owner);
  const names = readdirSync(host.home).sort();
  const database = await openCopy(path, host, SIGNAL);
  expect(database.columns("a")).toEqual(["n", "filler"]);
  database.close();
  expect(readdirSync(host.home).sort()).toEqual(names);
});

it("reports damaged pages as a problem of the file", async () => {
  host = machine();
  const path = await writeOpencode(host.home, [sampleSession(1, host.project, 200_000), sampleSession(2, host.project, 200_000)]);
  const bytes = readFileSync(path);
  bytes.fill(0xa5, 8_192, bytes.length - 4_096);
  writeFile(path, bytes);
  const { items } = await readAll(READERS.opencode, host);
  expect(items.at(-1)).toEqual({ type: "problem", path, problem: "is not a readable SQLite database" });
});

it("leaves no copy behind when the file is no database", async () => {
  host = machine();
  const path = writeFile(join(host.home, "no.db"), "text ".repeat(1_000));
  await expect(openCopy(path, host, SIGNAL)).rejects.toMatchObject({ code: "invalid_input" });
  expect(readdirSync(host.scratch)).toEqual([]);
  expect(existsSync(`${path}-wal`)).toBe(false);
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import { counts } from "../faults/processes.ts";
import { expectRunsSurviveKills } from "./worker-kills.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-worker-kill-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("three worker processes on SQLite", () => {
  it("lose no run and repeat no finished step while they are killed", { timeout: 900_000 }, async () => {
    const size = counts({ short: { runs: 20, kills: 5 }, soak: { runs: 300, kills: 60 } });
    await expectRunsSurviveKills({ storage: "sqlite", path: join(folder, "runs.db") }, join(folder, "effects"), size);
  });
});

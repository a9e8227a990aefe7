import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";

it("passes the MCP conformance suite for both revisions, and the Inspector", { timeout: 1_800_000 }, () => {
  const script = join(import.meta.dirname, "../../scripts/conformance.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], {
    encoding: "utf8",
    timeout: 1_700_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  expect(status, stdout + stderr).toBe(0);
  expect(stdout).toContain("2026-07-28, test server with fixtures: 37 of 37 required scenarios pass");
  expect(stdout).toContain("2025-11-25, test server with fixtures: 30 of 30 required scenarios pass");
  expect(stdout).toContain("2026-07-28, cairn serve: 9 of 9 scenarios without a fixture pass");
  expect(stdout).toContain("2025-11-25, cairn serve: 8 of 8 scenarios without a fixture pass");
});

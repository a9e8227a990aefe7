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
  expect(stdout).toContain("37 of 37 required scenarios pass");
  expect(stdout).toContain("30 of 30 required scenarios pass");
});

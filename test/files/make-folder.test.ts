import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeFolder } from "../../src/files/make-folder.ts";

describe("makeFolder", () => {
  it("creates missing parents for the current user, and accepts an existing folder", () => {
    const base = mkdtempSync(join(tmpdir(), "cairn-folder-"));
    const path = join(base, "a", "b", "c");
    makeFolder(path);
    makeFolder(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    rmSync(base, { recursive: true });
  });

  it.runIf(process.platform === "linux")("fails where a folder cannot be created, instead of trying forever", () => {
    expect(() => makeFolder("/proc/cairn/x")).toThrow("ENOENT");
  });
});

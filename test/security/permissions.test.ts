import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stage } from "../cli/stage.ts";

const { cairn, project, home, clear } = stage();
const env = { CAIRN_EMBEDDER_KIND: "none" };
const data = join(home, ".cairn");
afterAll(clear);
beforeAll(async () => {
  await cairn(["checkpoint", "save", "one"], { env });
  mkdirSync(join(project, ".state"), { mode: 0o700 });
});

interface Finding {
  readonly check: string;
  readonly severity: string;
  readonly subject: string;
  readonly message: string;
  readonly command?: string;
}
async function examine(): Promise<{ readonly code: number; readonly found: readonly Finding[] }> {
  const { code, stdout } = await cairn(["doctor", "--quick", "--json"], { env });
  return { code, found: (JSON.parse(stdout).findings as Finding[]).filter(({ check }) => check === "permissions") };
}

describe("folders and files that other users of the machine could change or read", () => {
  it("are never created by Cairn", async () => {
    expect(await examine()).toEqual({ code: 0, found: [] });
  });

  it.each([
    ["a data folder that its group can write", data, 0o770, 0o700, /can be written by its group/, "go-w"],
    ["a data folder that everybody can write", data, 0o707, 0o700, /by every user of this machine/, "go-w"],
    ["a state folder that everybody can write", join(project, ".state"), 0o777, 0o700, /by every user/, "go-w"],
    ["a folder of databases that everybody can write", join(data, "projects"), 0o777, 0o700, /by every user/, "go-w"],
    ["keys that its group can read", join(data, "keys.json"), 0o640, 0o600, /holds secrets and can be read/, "600"],
    ["a configuration that everybody can read", join(data, "config.json"), 0o644, 0o600, /holds secrets and can be read/, "600"],
    ["a configuration that everybody can write", join(data, "config.json"), 0o666, 0o600, /by every user/, "go-w"],
    ["a token that everybody can read", join(data, "token"), 0o604, 0o600, /holds secrets/, "600"],
  ])("are reported with the command that helps: %s", async (_name, path, mode, right, message, chmod) => {
    const made = statSync(path, { throwIfNoEntry: false }) === undefined;
    if (made) writeFileSync(path, path.endsWith("keys.json") ? '{"version":1,"keys":[]}' : "{}", { mode: 0o600 });
    try {
      chmodSync(path, mode);
      const { code, found } = await examine();
      expect(code).toBe(11);
      expect(found).toEqual([
        {
          check: "permissions",
          severity: "problem",
          subject: path,
          message: expect.stringMatching(message),
          command: `chmod ${chmod} ${path}`,
        },
      ]);
      execFileSync("sh", ["-c", found[0]!.command!]);
      expect((await examine()).found.map(({ message: left }) => left)).toEqual(
        mode === 0o666 ? [expect.stringMatching(/can be read/)] : [],
      );
    } finally {
      chmodSync(path, right);
      if (made) rmSync(path);
    }
  });
});

describe("an index that could not read every file", () => {
  it("ends with an exit code that a script notices", async () => {
    const root = join(project, "..", "partial");
    mkdirSync(root);
    writeFileSync(join(root, "good.py"), "def good(): pass\n");
    expect((await cairn(["code", "index", root, "--wait"], { env })).code).toBe(0);
    writeFileSync(join(root, "bad.py"), Buffer.from([0x64, 0xff, 0xfe, 0x0a]));
    const { code, stdout } = await cairn(["code", "index", root, "--wait", "--json"], { env });
    expect([code, JSON.parse(stdout).status]).toEqual([11, "partial"]);
  });
});

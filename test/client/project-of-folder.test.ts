import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { withIdentity } from "../../src/client/decorate-served.ts";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operation } from "../../src/operations/operation.ts";

let folder: string;
let cairn: Cairn;

beforeEach(async () => {
  cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-folder-")));
});
afterEach(async () => {
  await cairn.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the project that an operation of this name runs on. */
async function projectOf(name: string, path: string): Promise<unknown> {
  const described = operation({
    name,
    summary: "Returns its project.",
    input: z.strictObject({ project_path: z.string() }),
    output: z.object({ project: z.string() }),
    access: "read",
    toolset: "none",
    render: () => "",
    run: async (_, { projectPath }) => ({ project: projectPath }),
  });
  return (await invoke(cairn, withIdentity(described), { project_path: path }, { caller: LOCAL_CALLER })).project;
}

describe("the project of a folder", () => {
  it("is the repository around it, and the folder itself outside of one", async () => {
    mkdirSync(join(folder, "repository", ".git"), { recursive: true });
    mkdirSync(join(folder, "repository", "deep", "down"), { recursive: true });
    mkdirSync(join(folder, "plain"));
    expect(await projectOf("checkpoint_list", join(folder, "repository", "deep", "down"))).toBe(join(folder, "repository"));
    expect(await projectOf("checkpoint_list", join(folder, "plain"))).toBe(join(folder, "plain"));
  });

  it("follows a link at once when it leads to another folder", async () => {
    const link = join(folder, "current");
    for (const name of ["one", "two"]) {
      mkdirSync(join(folder, name));
      rmSync(link, { force: true });
      symlinkSync(join(folder, name), link);
      expect(await projectOf("checkpoint_list", link)).toBe(join(folder, name));
    }
  });

  it("is the given path where there is no folder, which only checkpoint_save refuses", async () => {
    const gone = join(folder, "gone");
    expect(await projectOf("checkpoint_list", gone)).toBe(gone);
    await expect(projectOf("checkpoint_save", gone)).rejects.toMatchObject({ code: "invalid_input" });
  });
});

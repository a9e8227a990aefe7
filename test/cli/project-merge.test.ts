import { spawnSync } from "node:child_process";
import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { open } from "../../src/open/open.ts";
import { servicesOf } from "../../src/operations/validate-library.ts";
import { stage } from "./stage.ts";

let s: ReturnType<typeof stage>;
let folder: string;
let repository: string;
let sub: string;
let link: string;
let worktree: string;

beforeEach(() => {
  s = stage();
  folder = realpathSync(s.folder);
  [repository, sub, link, worktree] = ["repository", "repository/packages/api", "link", "worktree"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
    string,
  ];
  mkdirSync(sub, { recursive: true });
  const git = (...args: string[]) =>
    expect(spawnSync("git", ["-C", repository, "-c", "user.name=a", "-c", "user.email=a@b", ...args]).status).toBe(0);
  git("init", "--quiet");
  git("commit", "--quiet", "--allow-empty", "-m", "first");
  git("worktree", "add", "--quiet", worktree);
  symlinkSync(repository, link);
});
afterEach(() => s.clear());

/** Stores records under paths as they are given, as earlier versions and servers do. */
async function store(...paths: readonly string[]): Promise<void> {
  const cairn = await open({ dataDir: join(s.home, ".cairn"), embedder: { kind: "none" } });
  const { checkpoints } = servicesOf(cairn); // a library call refuses a trailing slash today
  for (const projectPath of paths) await checkpoints.import({ projectPath, records: [record(projectPath)] });
  await cairn.code.indexBatch({ projectPath: worktree, files: [{ path: "a.txt", content: "one line\n" }] });
  await cairn.close();
}
const record = (path: string) => ({ id: `id of ${path}`.slice(-90), summary: `Saved in ${path}`, created_at: "2026-01-01T00:00:00Z" });
const env = { CAIRN_EMBEDDER_KIND: "none", CAIRN_DOCTOR_FREE_DISK_MIN_BYTES: "0" };
const run = async (...args: string[]) => s.cairn(args, { env });
const json = async (...args: string[]) => JSON.parse((await run(...args, "--json")).stdout);
const oldOnes = async () => (await json("doctor", "--quick")).findings.filter(({ check }: { check: string }) => check === "projects");

describe("projects under old identities", () => {
  it("are notes of the doctor with the command that merges them, and are gone after it", async () => {
    await store(repository, sub, link, worktree, `${repository}/`);
    const found = await oldOnes();
    expect(found.map(({ subject }: { subject: string }) => subject).sort()).toEqual(
      [sub, link, worktree, `${repository}/`].map((path) => `project ${path}`).sort(),
    );
    expect(found[0]).toMatchObject({ severity: "note", message: expect.stringContaining(`belongs to the project ${repository}.`) });
    for (const { command } of found) {
      const { code, stdout, stderr } = await run(...command.split(" ").slice(1));
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toContain("Moved 1 checkpoint and 0 knowledge records");
      expect(stdout).toContain(`into ${repository}.`);
    }
    expect(await oldOnes()).toEqual([]);
    const { checkpoints } = await json("checkpoint", "list", "--project", repository, "--limit", "50");
    expect(checkpoints.map(({ summary }: { summary: string }) => summary).sort()).toEqual(
      [repository, sub, link, worktree, `${repository}/`].map((path) => `Saved in ${path}`).sort(),
    );
    const { projects } = await json("project", "list");
    expect(projects.map(({ project_path }: { project_path: string }) => project_path).sort()).toEqual([repository, worktree]);
    expect(await json("code", "stats", "--project", worktree)).toMatchObject({ files: 1 });
  });

  it("are not noted for a worktree that has only its code index", async () => {
    await store(repository);
    expect(await oldOnes()).toEqual([]);
    expect((await json("doctor", "--quick")).checks).toContain("projects");
  });
});

describe("cairn project merge", () => {
  it("counts in a dry run and changes nothing", async () => {
    await store(sub);
    expect(await json("project", "merge", sub, "--dry-run")).toMatchObject({ from: sub, into: repository, dry_run: true, checkpoints: 1 });
    expect(await oldOnes()).toHaveLength(1);
  });

  it("merges a project whose folder is gone into the one that --into names, by a folder in it", async () => {
    await store("/gone/app");
    expect(await json("project", "merge", "/gone/app/", "--into", sub)).toMatchObject({
      from: "/gone/app",
      into: repository,
      checkpoints: 1,
    });
    expect(await json("checkpoint", "list", "--project", repository)).toMatchObject({ total: 1 });
  });

  it("asks for --into where the folder does not tell, and refuses a folder that does not exist", async () => {
    await store("/gone/app", repository);
    for (const from of ["/gone/app", repository]) {
      const { code, stderr } = await run("project", "merge", from);
      expect(code).toBe(2);
      expect(stderr).toContain("name the project that receives the records");
    }
    expect(await run("project", "merge", "/gone/app", "--into", "/also/gone")).toMatchObject({ code: 2 });
    expect(await run("project", "merge", "/never/stored", "--into", repository)).toMatchObject({ code: 3 });
  });
});

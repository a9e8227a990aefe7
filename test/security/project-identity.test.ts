import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openClient } from "../../src/client/open-client.ts";
import { loadConfig } from "../../src/config/load.ts";
import { gitDataFolder, identifyProject } from "../../src/files/git-repository.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { stage } from "../cli/stage.ts";

const env = { CAIRN_EMBEDDER_KIND: "none" };
const { cairn, folder: made, clear } = stage();
const folder = realpathSync(made);
afterAll(clear);

const git = (cwd: string, ...args: string[]) =>
  execFileSync(
    "git",
    ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", ...args],
    { cwd, stdio: "pipe", env: { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_NOSYSTEM: "1" } },
  );
const at = (...parts: string[]) => join(folder, ...parts);
function repository(name: string): string {
  mkdirSync(at(name, "src"), { recursive: true });
  git(at(name), "init", "--quiet");
  writeFileSync(at(name, "src", "main.py"), `def ${name}(): pass\n`);
  git(at(name), "add", ".");
  git(at(name), "commit", "--quiet", "-m", "first");
  return at(name);
}
const save = (cwd: string, summary: string) => cairn(["checkpoint", "save", summary, "--json"], { env, cwd });
const summaries = async (cwd: string) =>
  (JSON.parse((await cairn(["checkpoint", "list", "--json"], { env, cwd })).stdout).checkpoints as { summary: string }[])
    .map(({ summary }) => summary)
    .sort();

let main: string;
let linked: string;
beforeAll(() => {
  main = repository("main");
  linked = at("linked");
  git(main, "worktree", "add", "--quiet", "-b", "feature", linked);
  mkdirSync(join(linked, "deep"));
});

describe("a folder and the project it belongs to", () => {
  it("resolves a subfolder and a symbolic link to the repository root", () => {
    symlinkSync(main, at("link"));
    for (const path of [main, join(main, "src"), at("link"), at("link", "src"), join(main, ".git")])
      expect(identifyProject(path)).toEqual({ repository: main, tree: main });
  });

  it("gives a linked working tree the memory of its repository and a code index of its own", () => {
    for (const path of [linked, join(linked, "deep")]) expect(identifyProject(path)).toEqual({ repository: main, tree: linked });
    expect(gitDataFolder(linked)).toBe(join(main, ".git"));
  });

  it("follows relative links between a working tree and its repository", () => {
    const relative = at("relative");
    git(main, "worktree", "add", "--quiet", "-b", "relative", relative);
    writeFileSync(join(relative, ".git"), "gitdir: ../main/.git/worktrees/relative\n");
    writeFileSync(join(main, ".git", "worktrees", "relative", "gitdir"), "../../../../relative/.git\n");
    expect(identifyProject(relative)).toEqual({ repository: main, tree: relative });
  });

  it("treats a bare repository as the project of its working trees", () => {
    git(folder, "clone", "--quiet", "--bare", main, at("bare.git"));
    git(at("bare.git"), "worktree", "add", "--quiet", at("of-bare"), "main");
    expect(identifyProject(at("of-bare"))).toEqual({ repository: at("bare.git"), tree: at("of-bare") });
    expect(identifyProject(at("bare.git", "refs"))).toEqual({ repository: at("bare.git"), tree: at("bare.git") });
  });

  it("keeps a submodule apart from the repository around it, and its working trees together", () => {
    const inner = repository("inner");
    git(main, "submodule", "--quiet", "add", inner, "vendor/inner");
    const module = join(main, "vendor", "inner");
    expect(identifyProject(join(module, "src"))).toEqual({ repository: module, tree: module });
    git(module, "worktree", "add", "--quiet", "-b", "side", at("of-module"));
    expect(identifyProject(at("of-module"))).toEqual({ repository: module, tree: at("of-module") });
  });

  it("does not treat a home directory in git as the project of every folder in it", () => {
    const home = at("someone");
    mkdirSync(join(home, "notes"), { recursive: true });
    git(home, "init", "--quiet");
    expect(identifyProject(join(home, "notes"), home).repository).toBe(join(home, "notes"));
    expect(identifyProject(home, home).repository).toBe(home);
  });

  it("saves and finds the same checkpoints from a subfolder, a link and a linked working tree", async () => {
    symlinkSync(join(linked, "deep"), at("link-to-deep"));
    expect(JSON.parse((await save(join(main, "src"), "from a subfolder")).stdout).project_path).toBe(main);
    await save(at("link-to-deep"), "from a linked working tree");
    for (const cwd of [main, linked, at("link-to-deep")])
      expect(await summaries(cwd)).toEqual(["from a linked working tree", "from a subfolder"]);
  });

  it("resolves the folder that an agent names in a call", async () => {
    const { config } = loadConfig({ env, home: at("home"), cwd: folder });
    const edge = await openClient(config, { jobs: "here" });
    const call = (name: string, input: object) =>
      invoke(edge.cairn, edge.operations.find((one) => one.name === name)!, input, { caller: LOCAL_CALLER });
    const { project_path } = await call("checkpoint_save", { project_path: join(linked, "deep"), summary: "by an agent" });
    expect(project_path).toBe(main);
    await call("code_index", { project_path: join(linked, "deep"), wait: true });
    expect([...(await edge.cairn.projects())].sort()).toEqual([linked, main].sort());
    expect((await call("checkpoint_list", { project_path: at("gone") })).total).toBe(0);
    await edge.cairn.close();
  });

  it("indexes each working tree by itself", async () => {
    writeFileSync(join(linked, "only_here.py"), "def only_in_the_linked_tree(): pass\n");
    for (const cwd of [join(main, "src"), join(linked, "deep")])
      expect((await cairn(["code", "index", "--wait"], { env, cwd })).stderr).toBe("");
    const found = async (cwd: string) =>
      (await cairn(["code", "usages", "only_in_the_linked_tree", "--json"], { env, cwd })).stdout.includes("only_here.py");
    expect(await found(linked)).toBe(true);
    expect(await found(main)).toBe(false);
  });
});

describe("a folder from elsewhere that claims another project", () => {
  let evil: string;
  let secret: string;
  beforeAll(async () => {
    secret = repository("secret");
    git(secret, "worktree", "add", "--quiet", "-b", "side", at("secret-side"));
    await save(secret, "the launch code");
    evil = at("evil");
    mkdirSync(evil);
  });
  const claims = (text: string | undefined) => {
    rmSync(join(evil, ".git"), { recursive: true, force: true });
    if (text !== undefined) writeFileSync(join(evil, ".git"), text);
    return identifyProject(evil);
  };
  const own = () => ({ repository: evil, tree: evil });

  it("is not a working tree because its .git file names one of that repository", async () => {
    expect(claims(`gitdir: ${secret}/.git/worktrees/secret-side\n`)).toEqual(own());
    expect(await summaries(evil)).toEqual([]);
    await save(evil, "planted");
    expect(await summaries(secret)).toEqual(["the launch code"]);
  });

  it("is not that repository because its .git file names the repository's folder", () => {
    expect(claims(`gitdir: ${secret}/.git\n`)).toEqual(own());
    expect(claims(`gitdir: ${secret}/.git/worktrees\n`)).toEqual(own());
  });

  it("is not a working tree because it brings a fake entry whose commondir names that repository", () => {
    mkdirSync(join(evil, "fake", "worktrees", "x"), { recursive: true });
    writeFileSync(join(evil, "fake", "worktrees", "x", "gitdir"), `${evil}/.git\n`);
    writeFileSync(join(evil, "fake", "worktrees", "x", "commondir"), `${secret}/.git\n`);
    expect(claims("gitdir: fake/worktrees/x\n")).toEqual(own());
  });

  it("is not a working tree because it brings links into that repository", () => {
    symlinkSync(join(secret, ".git"), join(evil, "store"));
    expect(claims("gitdir: store/worktrees/secret-side\n")).toEqual(own());
    rmSync(join(evil, ".git"));
    symlinkSync(join(secret, ".git"), join(evil, ".git"));
    expect(identifyProject(evil)).toEqual(own());
  });

  it("is not that project because the repository that it brings has core.worktree point there", () => {
    const store = join(evil, "modules");
    mkdirSync(join(store, "worktrees", "x"), { recursive: true });
    writeFileSync(join(store, "config"), `[core]\n\tworktree = ${secret}\n`);
    writeFileSync(join(store, "worktrees", "x", "gitdir"), `${evil}/.git\n`);
    writeFileSync(join(store, "worktrees", "x", "commondir"), "../..\n");
    expect(claims("gitdir: modules/worktrees/x\n")).toEqual({ repository: store, tree: evil });
  });

  it("does not hang or fail on a .git that is a FIFO, endless or nonsense", () => {
    expect(claims(undefined)).toEqual(own());
    execFileSync("mkfifo", [join(evil, ".git")]);
    expect(identifyProject(evil)).toEqual(own());
    rmSync(join(evil, ".git"));
    symlinkSync("/dev/zero", join(evil, ".git"));
    expect(identifyProject(evil)).toEqual(own());
    for (const text of ["", "gitdir:", "gitdir: \0", `gitdir: ${"x/".repeat(5_000)}`, "gitdir: ../../../../..", "\n".repeat(20_000)])
      expect(claims(text)).toEqual(own());
  });
});

describe("a temporary folder", () => {
  it("without a repository is a project of its own", () => {
    const alone = realpathSync(mkdtempSync(join(tmpdir(), "cairn-alone-")));
    expect(identifyProject(alone)).toEqual({ repository: alone, tree: alone });
    rmSync(alone, { recursive: true });
  });
});

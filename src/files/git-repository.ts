import { realpathSync, type Stats, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve, sep } from "node:path";
import { readRegularFile } from "./regular-file.ts";

/** The two paths that identify a project on the machine that has its files. */
export interface ProjectIdentity {
  /** Real path of the repository root: checkpoints and knowledge of all its working trees belong to it. */
  readonly repository: string;
  /** Real path of the working-tree root: the code index, the configuration file and `.mcp.json` belong to it. */
  readonly tree: string;
}

/** Bytes of a file of git that names another path: one line. */
const POINTER_BYTES = 16 * 1024;
const CONFIG_BYTES = 256 * 1024;

/**
 * Finds the project that a folder belongs to: the enclosing git working tree, or the folder itself. `folder` must exist. A repository that
 * contains the home directory is not the project of the folders in it.
 *
 * Git is not started: a repository from elsewhere can make git run programs.
 */
export function identifyProject(folder: string, home = homedir()): ProjectIdentity {
  const start = realpathSync(folder);
  const realHome = realPath(home);
  for (let at = start; ; at = dirname(at)) {
    if (at !== start && realHome !== undefined && contains(at, realHome)) break;
    const git = gitEntry(at);
    if (git === "folder") return { repository: at, tree: at };
    if (git !== undefined) return { repository: linkedRepository(at, git) ?? at, tree: at };
    if (isBare(at)) return { repository: at, tree: at };
    if (dirname(at) === at) break;
  }
  return { repository: start, tree: start };
}

/** Returns the data folder of git for the working tree at `root`. Linked working trees share it. */
export function gitDataFolder(root: string): string | undefined {
  const git = gitEntry(root);
  if (git === undefined || git === "folder") return git && join(root, ".git");
  return commonFolder(root, git) ?? realPath(resolve(root, git.gitdir));
}

/** The commit that is checked out, and its branch unless the head is detached. */
export interface GitHead {
  readonly commit: string;
  readonly branch?: string | undefined;
}

/** Returns what is checked out in the working tree at `root`; `undefined` without a repository or a commit. */
export function readHead(root: string): GitHead | undefined {
  const git = gitEntry(root);
  if (git === undefined) return undefined;
  const head = readPointer(join(git === "folder" ? join(root, ".git") : resolve(root, git.gitdir), "HEAD"));
  const branch = /^ref: refs\/heads\/(.+)$/.exec(head ?? "")?.[1];
  const commit = branch === undefined ? head : branchCommit(root, branch);
  return commit !== undefined && COMMIT.test(commit) ? { commit, branch } : undefined;
}

const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
/** References of a large repository: 100,000 branches and tags. */
const PACKED_REFS_BYTES = 16 * 1024 * 1024;

/** Returns the commit of a branch, or `undefined` if there is no such branch. */
export function branchCommit(root: string, branch: string): string | undefined {
  const common = gitDataFolder(root);
  if (common === undefined || branch.split("/").some((part) => part === "" || part.startsWith("."))) return undefined;
  const loose = readPointer(join(common, "refs", "heads", branch));
  if (loose !== undefined) return COMMIT.test(loose) ? loose : undefined;
  const packed = readPackedRefs(join(common, "packed-refs"));
  const end = packed.indexOf(` refs/heads/${branch}\n`);
  const commit = end < 0 ? "" : packed.slice(packed.lastIndexOf("\n", end) + 1, end);
  return COMMIT.test(commit) ? commit : undefined;
}

/** The last file of packed references that was read: an answer asks for several branches, and the file may have megabytes. */
let packedRefs = { path: "", version: "", text: "" };

function readPackedRefs(path: string): string {
  const stats = statsOf(path);
  if (!stats) return "";
  const version = `${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
  if (packedRefs.path !== path || packedRefs.version !== version)
    packedRefs = { path, version, text: `\n${readText(path, PACKED_REFS_BYTES) ?? ""}` };
  return packedRefs.text;
}

/** Reads `.git`: a folder, or a file that names the folder. Anything else is not a repository. */
function gitEntry(folder: string): "folder" | { readonly gitdir: string } | undefined {
  const path = join(folder, ".git");
  const stats = statsOf(path);
  if (stats?.isDirectory()) return "folder";
  const gitdir = stats && /^gitdir: ([^\0\r\n]+)/.exec(readPointer(path) ?? "")?.[1];
  return gitdir === undefined ? undefined : { gitdir };
}

/** Returns the repository of the linked working tree at `root`, or `undefined` if it is not a linked working tree. */
function linkedRepository(root: string, git: { readonly gitdir: string }): string | undefined {
  const common = commonFolder(root, git);
  if (common === undefined) return undefined;
  if (basename(common) === ".git") return dirname(common);
  const trees = [dirname(common), configuredTree(common)]; // next to a bare repository, or of a submodule
  return trees.find((tree) => tree !== undefined && pointsTo(tree, common)) ?? common;
}

/**
 * Returns the common folder of a linked working tree. A `.git` file may come with a download and can name any path. It is trusted only if
 * the repository confirms it: the named folder is in `worktrees` of the repository, and its `gitdir` file names this working tree. Symbolic
 * links are resolved first, so that neither can be forged from outside that repository.
 */
function commonFolder(root: string, { gitdir }: { readonly gitdir: string }): string | undefined {
  const folder = realPath(resolve(root, gitdir));
  if (folder === undefined || basename(dirname(folder)) !== "worktrees") return undefined;
  const common = dirname(dirname(folder));
  const named = readPointer(join(folder, "commondir"));
  if (named === undefined || realPath(resolve(folder, named)) !== common) return undefined;
  const back = readPointer(join(folder, "gitdir"));
  if (back === undefined || basename(back) !== ".git" || realPath(dirname(resolve(folder, back))) !== root) return undefined;
  return common;
}

/** Returns whether the `.git` file of a working tree names this folder. */
function pointsTo(tree: string, folder: string): boolean {
  const git = gitEntry(tree);
  return typeof git === "object" && realPath(resolve(tree, git.gitdir)) === folder;
}

/** Returns the working tree in `core.worktree` of a repository. */
function configuredTree(common: string): string | undefined {
  let section = "";
  for (const line of (readText(join(common, "config"), CONFIG_BYTES) ?? "").split("\n")) {
    const text = line.trim();
    if (text.startsWith("[")) section = text.toLowerCase();
    const named = section === "[core]" ? /^worktree *= *(.+)$/i.exec(text)?.[1] : undefined;
    if (named !== undefined) return realPath(resolve(common, named.replace(/^"(.*)"$/, "$1")));
  }
  return undefined;
}

/** Returns whether a folder is a bare repository: it has the content of `.git`. */
function isBare(folder: string): boolean {
  if (basename(folder) === ".git") return false;
  const is = (name: string, kind: "isFile" | "isDirectory") => statsOf(join(folder, name))?.[kind]() === true;
  return is("HEAD", "isFile") && is("objects", "isDirectory") && is("refs", "isDirectory");
}

function readPointer(path: string): string | undefined {
  return readText(path, POINTER_BYTES)?.split(/\r?\n/, 1)[0] || undefined;
}

/** Returns `undefined` for a file that is missing, not regular, too large or unreadable. */
function readText(path: string, limitBytes: number): string | undefined {
  try {
    return readRegularFile(path, limitBytes).toString("utf8");
  } catch {
    return undefined;
  }
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined; // no permission, a link to itself, or a name that is too long
  }
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function contains(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

import { lstat, readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { CairnError } from "../../model/errors.ts";
import { isBinaryName, isGeneratedName } from "./generated.ts";
import { type IgnoreRules, ignoreRules, NO_RULES } from "./ignore-rules.ts";
import { resolveRoot } from "./root.ts";

/** Size and times of a file. If they have not changed since the file was read, its content has not changed either. */
export interface FileStat {
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  /** Changes also when a program sets the modification time back. */
  readonly ctimeMs: number;
}

/** A file to read. */
export interface WalkedFile extends FileStat {
  readonly type: "file";
  /** Relative to the root, with `/`. */
  readonly path: string;
}

export type SkipReason = "ignored" | "too_large" | "binary" | "generated" | "symlink" | "special";

/** An entry that is not indexed. A folder is reported once, with a `/` at its end, and not entry by entry. */
export interface SkippedEntry {
  readonly type: "skipped";
  readonly path: string;
  readonly reason: SkipReason;
  readonly detail?: string;
}

/** An entry that should be indexed and could not be read. */
export interface FailedEntry {
  readonly type: "failed";
  readonly path: string;
  readonly reason: "unreadable" | "encoding" | "name";
  readonly detail: string;
}

export type WalkEntry = WalkedFile | SkippedEntry | FailedEntry;

/** Receives the absolute path of a folder and the ignore rules in it. */
export type OnFolder = (folder: string, rules: IgnoreRules) => void;

export interface WalkOptions {
  /** Larger files are skipped. Default: 1 MB. */
  readonly limitBytes?: number;
  /** False includes what `.gitignore`, `.cairnignore` and the built-in rules exclude. */
  readonly ignoreRules?: boolean;
  /** True allows a whole home directory or disk. */
  readonly anywhere?: boolean;
  /** Called for every folder before it is read, so that a watch that is set then misses no change. */
  readonly onFolder?: OnFolder | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Bytes. Hand-written files are smaller; larger files are data. */
export const DEFAULT_LIMIT_BYTES = 1_000_000;

/** Concurrent `lstat` calls: one at a time would mostly wait for the file system. */
const STATS_AT_ONCE = 32;

/** Data folders of version control systems. They are neither read nor reported. */
const VERSION_STORES = new Set([".git", ".hg", ".svn", ".jj"]);

/**
 * Walks a tree. Yields the files to index, and every excluded entry with its reason, in an order that depends only on the names.
 * Symbolic links are reported and never followed: a target inside the root is visited at its own path, and a target outside is not
 * indexed. So there are no cycles. Memory holds only the folders between the root and the current entry.
 */
export async function* walk(root: string, options: WalkOptions = {}): AsyncGenerator<WalkEntry, void, undefined> {
  const { limitBytes = DEFAULT_LIMIT_BYTES, onFolder = () => {}, signal } = options;
  const top = await resolveRoot(root, options);
  const rules = options.ignoreRules === false ? NO_RULES : await ignoreRules(top);
  const open: OpenFolder[] = [];

  onFolder(top, rules);
  const first = await openFolder(top, "", rules);
  if (first.type === "failed") yield first;
  else open.push(first);

  for (let folder = open.at(-1); folder; folder = open.at(-1)) {
    if (signal?.aborted) throw new CairnError("cancelled", "The walk was cancelled by its caller.", { cause: signal.reason });
    if (folder.found.length === 0) {
      const { path, rules } = folder;
      const names = folder.names.splice(0, STATS_AT_ONCE);
      const found = await Promise.all(names.map((name) => inspect(top, path + name, name, rules, limitBytes)));
      folder.found.push(...found.filter((entry) => entry !== undefined).reverse());
      if (folder.found.length === 0 && folder.names.length > 0) continue;
    }
    const entry = folder.found.pop();
    if (entry === undefined) {
      open.pop();
      continue;
    }
    if (entry.type !== "folder") {
      yield entry;
      continue;
    }
    const { path, name } = entry;
    const inner = await folder.rules.into(name);
    onFolder(join(top, path), inner);
    const next = await openFolder(join(top, path), `${path}/`, inner);
    if (next.type === "failed") yield next;
    else open.push(next);
  }
}

interface OpenFolder {
  readonly type: "open";
  /** Empty for the root, else with a `/` at the end. */
  readonly path: string;
  /** Names that have not been inspected. */
  readonly names: string[];
  /** Inspected entries that have not been yielded, in reverse order. */
  readonly found: (WalkEntry | FoundFolder)[];
  readonly rules: IgnoreRules;
}

interface FoundFolder {
  readonly type: "folder";
  readonly path: string;
  readonly name: string;
}

async function openFolder(absolute: string, path: string, rules: IgnoreRules): Promise<OpenFolder | FailedEntry> {
  try {
    const names = (await readdir(absolute)).filter((name) => !VERSION_STORES.has(name));
    // The default sort compares code units, so the order is the same on every machine and in every locale.
    return { type: "open", path, names: names.sort(), found: [], rules };
  } catch (error) {
    return { type: "failed", path: path || "./", reason: "unreadable", detail: reasonOf(error) };
  }
}

/** Returns `undefined` for an entry that was deleted after its folder was read. */
async function inspect(
  top: string,
  path: string,
  name: string,
  rules: IgnoreRules,
  limitBytes: number,
): Promise<WalkEntry | FoundFolder | undefined> {
  const absolute = join(top, path);
  const stat = await lstat(absolute).catch((error: unknown) => reasonOf(error));
  if (typeof stat === "string") {
    // Node replaces invalid UTF-8 in names, and the resulting name cannot be opened.
    if (name.includes("\uFFFD")) return { type: "failed", path, reason: "name", detail: "the name is not valid UTF-8" };
    return stat === "ENOENT" ? undefined : { type: "failed", path, reason: "unreadable", detail: stat };
  }
  const isFolder = stat.isDirectory();
  if (rules.ignores(name, isFolder)) {
    const detail = rules.explain(name, isFolder);
    return { type: "skipped", path: isFolder ? `${path}/` : path, reason: "ignored", ...(detail !== undefined && { detail }) };
  }
  if (isFolder) return { type: "folder", path, name };
  if (stat.isSymbolicLink()) return { type: "skipped", path, reason: "symlink", detail: await targetOf(top, absolute) };
  if (!stat.isFile()) return { type: "skipped", path, reason: "special" };
  if (isBinaryName(name)) return { type: "skipped", path, reason: "binary" };
  if (isGeneratedName(name)) return { type: "skipped", path, reason: "generated" };
  if (stat.size > limitBytes) return { type: "skipped", path, reason: "too_large", detail: `${stat.size} bytes` };
  return { type: "file", path, sizeBytes: stat.size, mtimeMs: stat.mtimeMs, ctimeMs: stat.ctimeMs };
}

async function targetOf(top: string, absolute: string): Promise<string> {
  const target = await realpath(absolute).catch(() => undefined);
  if (target === undefined) return "the target does not exist";
  return target === top || target.startsWith(top + sep) ? "the target is inside the root" : "the target is outside the root";
}

/** Returns the error code of the system, such as EACCES, ENOENT or ENAMETOOLONG. */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === "string" ? code : String(error);
}

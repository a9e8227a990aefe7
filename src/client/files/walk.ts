import { lstat, readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { CairnError } from "../../model/errors.ts";
import { isBinaryName, isGeneratedName } from "./generated.ts";
import { type IgnoreRules, ignoreRules, NO_RULES } from "./ignore-rules.ts";
import { resolveRoot } from "./root.ts";

/** A file worth reading. Where size and time of change are as they were last time, it need not be read again. */
export interface WalkedFile {
  readonly type: "file";
  /** From the root, with `/`. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  /** Changes also when a program sets the other time back. */
  readonly ctimeMs: number;
}

export type SkipReason = "ignored" | "too_large" | "binary" | "generated" | "symlink" | "special";

/** Left out on purpose. A folder is reported once, with a `/` at its end, not entry by entry. */
export interface SkippedEntry {
  readonly type: "skipped";
  readonly path: string;
  readonly reason: SkipReason;
  readonly detail?: string;
  /** How a file looked that had to be read to know that it is left out. */
  readonly look?: Pick<WalkedFile, "sizeBytes" | "mtimeMs" | "ctimeMs">;
}

/** Wanted, but not to be had. */
export interface FailedEntry {
  readonly type: "failed";
  readonly path: string;
  readonly reason: "unreadable" | "encoding" | "name";
  readonly detail: string;
}

export type WalkEntry = WalkedFile | SkippedEntry | FailedEntry;

/** The folder's absolute path, and the rules that hold in it. */
export type OnFolder = (folder: string, rules: IgnoreRules) => void;

export interface WalkOptions {
  /** Files above this are skipped. Default 1 MB. */
  readonly limitBytes?: number;
  /** False takes in what `.gitignore`, `.cairnignore` and the built-in rules leave out. */
  readonly ignoreRules?: boolean;
  /** True allows a whole home directory or disk. */
  readonly anywhere?: boolean;
  /** Told of every folder before it is read, so that a watch set then misses nothing. */
  readonly onFolder?: OnFolder | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** People write smaller files than this; what is bigger is data. */
export const DEFAULT_LIMIT_BYTES = 1_000_000;

/** Asking the file system one by one would be waiting most of the time. */
const LOOKS_AT_ONCE = 32;

/** The version stores themselves: nothing in them is meant to be read, so they are not even reported. */
const VERSION_STORES = new Set([".git", ".hg", ".svn", ".jj"]);

/**
 * Walks a tree: files to index, and everything left out with its reason, in an order that depends on the names alone.
 * Symbolic links are reported and never followed: what they name inside the root is met at its own path, and outside of it
 * is none of our business; so there are no cycles either. Only the folders on the way down are held in memory.
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
    if (folder.seen.length === 0) {
      const { path, rules } = folder;
      const names = folder.names.splice(0, LOOKS_AT_ONCE);
      const looks = await Promise.all(names.map((name) => look(top, path + name, name, rules, limitBytes)));
      folder.seen.push(...looks.filter((one) => one !== undefined).reverse());
      if (folder.seen.length === 0 && folder.names.length > 0) continue;
    }
    const found = folder.seen.pop();
    if (found === undefined) {
      open.pop();
      continue;
    }
    if (found.type !== "folder") {
      yield found;
      continue;
    }
    const { path, name } = found;
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
  /** What is left to look at. */
  readonly names: string[];
  /** What was looked at and not yet given out, last first. */
  readonly seen: (WalkEntry | FoundFolder)[];
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
    // The plain sort is by code unit, so that the order is the same on every machine and in every language.
    return { type: "open", path, names: names.sort(), seen: [], rules };
  } catch (error) {
    return { type: "failed", path: path || "./", reason: "unreadable", detail: reasonOf(error) };
  }
}

/** Nothing where the entry was deleted since its folder was read. */
async function look(
  top: string,
  path: string,
  name: string,
  rules: IgnoreRules,
  limitBytes: number,
): Promise<WalkEntry | FoundFolder | undefined> {
  const absolute = join(top, path);
  const stat = await lstat(absolute).catch((error: unknown) => reasonOf(error));
  if (typeof stat === "string") {
    // Names that are not UTF-8 come with replacement characters, under which nothing can be opened.
    if (name.includes("\uFFFD")) return { type: "failed", path, reason: "name", detail: "the name is not valid UTF-8" };
    return stat === "ENOENT" ? undefined : { type: "failed", path, reason: "unreadable", detail: stat };
  }
  const isFolder = stat.isDirectory();
  if (rules.ignores(name, isFolder)) return { type: "skipped", path: isFolder ? `${path}/` : path, reason: "ignored" };
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
  if (target === undefined) return "leads nowhere";
  return target === top || target.startsWith(top + sep) ? "leads to a place inside the root" : "leads out of the root";
}

/** The system's code says it shortest: EACCES, ENOENT, ENAMETOOLONG. */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === "string" ? code : String(error);
}

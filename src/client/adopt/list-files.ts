import type { Dirent } from "node:fs";
import { lstat, opendir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { ADOPT_LIMITS } from "./limits.ts";

/** A regular file, as it was when it was listed. */
export interface ListedFile {
  readonly path: string;
  readonly name: string;
  readonly bytes: number;
  readonly modifiedAt: Date;
  readonly fingerprint: string;
}

export interface ListOptions {
  /** Levels of folders below the root; 0 lists the root only. */
  readonly depth: number;
  readonly accepts: (name: string, folders: readonly string[]) => boolean;
  /** Folders that are entered; default all. */
  readonly enters?: (name: string, folders: readonly string[]) => boolean;
  readonly limit?: number;
}

/**
 * Lists the regular files below a root, sorted by path. The root may be a symbolic link of the user; links and special files below it are
 * skipped. A root that is missing or unreadable is empty.
 */
export async function listFiles(root: string, options: ListOptions, signal: AbortSignal): Promise<ListedFile[]> {
  const real = await realpath(root).catch(() => undefined);
  const found: ListedFile[] = [];
  if (real === undefined) return found;
  await visit(real, [], options, found, signal);
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function visit(folder: string, below: readonly string[], options: ListOptions, found: ListedFile[], signal: AbortSignal) {
  const { depth, accepts, enters = () => true, limit = ADOPT_LIMITS.files } = options;
  for (const entry of await entriesOf(folder)) {
    signal.throwIfAborted();
    if (found.length >= limit) return;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (below.length < depth && enters(entry.name, below)) await visit(path, [...below, entry.name], options, found, signal);
    } else if (entry.isFile() && accepts(entry.name, below)) {
      const listed = await listedFile(path, entry.name);
      if (listed) found.push(listed);
    }
  }
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  const entries: Dirent[] = [];
  try {
    for await (const entry of await opendir(folder)) if (entries.push(entry) >= ADOPT_LIMITS.directoryEntries) break;
  } catch {
    // The folder is missing, unreadable or not a folder any more.
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns a regular file with its fingerprint; `undefined` for anything else. A symbolic link is not followed. */
export async function listedFile(path: string, name: string): Promise<ListedFile | undefined> {
  const stats = await lstat(path, { bigint: true }).catch(() => undefined);
  if (!stats?.isFile()) return undefined;
  return {
    path,
    name,
    bytes: Number(stats.size),
    modifiedAt: new Date(Number(stats.mtimeMs)),
    fingerprint: `${stats.size}.${stats.mtimeNs}.${stats.ino}`,
  };
}
